"""Heads and targets in the format of vLLM's `speculators`: read as any other model, and what each engine makes of them.

Their config.json has the sizes under `transformer_layer_config`, and in `speculators_config` the verifier that the head
was made for. Sources: github.com/vllm-project/speculators c05b95b, `src/speculators/config.py`, `models/*/config.py`;
vLLM 0.33.0, `transformers_utils/configs/speculators/` and `transformers_utils/config.py:800`; SGLang 0.5.23, whose
wheel does not have the word.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.preflight.cases import Pool, Rule, Said, Speculation, listed, of_head

LAYER = "transformer_layer_config"
TYPE = "speculators_model_type"
READ = {"eagle3": "EAGLE3", "dflash": "DFLASH", "dflash2": "DFLASH", "dspark": "DSPARK"}
"""Types that vLLM 0.33.0 reads and serves with its second runner → the algorithm of each."""
VERSION = "0.33.0"
"""Of vLLM, in which that was read: another may read more."""
UNREAD = {
    "peagle": "it drafts in parallel, which the second model runner does not do (config/vllm.py:3072)",
}
EXPORTED = "DFlashLagunaForCausalLM"
"""The one export that SGLang 0.5.23 has a class for (models/dflash.py:1057)."""
NOT_HERE = "there is no reader of it (transformers_utils/configs/speculators/algos.py)"


def plain(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same as other heads say it; any other model as it is.

    A layer that is named there is the one *before* which a state is taken (`algos.py`: update_dflash); elsewhere it is
    the one whose output it is.
    """
    layer = config.get(LAYER)
    if TYPE not in config or not isinstance(layer, Mapping):
        return config
    above = {key: value for key, value in config.items() if value is not None and key != LAYER}
    eagle, block = (above.pop(key, None) for key in ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids"))
    named = {
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": _before(eagle)},
        "dflash_config": {"target_layer_ids": _before(block)},
    }
    return {**layer, **above, **named}


def kind(config: Mapping[str, Any]) -> str | None:
    """Its type, such as eagle3; None: not of this format."""
    found = config.get(TYPE)
    return found if isinstance(found, str) and found else None


def verifier(config: Mapping[str, Any]) -> str | None:
    """The repository of the target that it was made for."""
    said = config.get("speculators_config")
    made_for = said.get("verifier") if isinstance(said, Mapping) else None
    name = made_for.get("name_or_path") if isinstance(made_for, Mapping) else None
    return name if isinstance(name, str) and name else None


def _before(layers: Any) -> list[int] | None:
    if not isinstance(layers, list) or not all(isinstance(layer, int) for layer in layers):
        return None
    return [layer - 1 for layer in layers]


def target_is_no_speculator(case: Pool) -> Iterator[Said]:
    if case.target.speculators is None:
        return
    source = case.server.target.source
    verified = f"hf://{case.target.verifier}" if case.target.verifier else "the model that it verifies with"
    yield Said(
        path="target.source",
        found=f"{source} is a speculator ({case.target.speculators}), made for {case.target.verifier or 'some target'}",
        fix=f"write {verified} there, and {source} as source of the draft",
    )


def speculator_is_read(case: Speculation) -> Iterator[Said]:
    found, engine = case.head.speculators, case.server.engine
    if found is None or EXPORTED in case.head.architectures:
        return
    if engine.name != "VLLM":
        text = f"{case.name} is in the speculators format, which {engine.name} {engine.version} does not read"
        yield of_head(case, "source", text, "name a head in SGLang's format, or serve with VLLM")
    elif found not in READ:
        text = f"{case.name} is a speculator of type {found}: {UNREAD.get(found, NOT_HERE)}"
        fix = f"name one of type {listed(tuple(READ))}"
        yield of_head(case, "source", text, fix, blocks=engine.version == VERSION)


def speculator_fits_algorithm(case: Speculation) -> Iterator[Said]:
    made_for = READ.get(case.head.speculators or "")
    if made_for and case.draft.algorithm != made_for and case.draft.name is None:
        text = f"{case.draft.algorithm} with a speculator of type {case.head.speculators}"
        yield of_head(case, "algorithm", text, f"set the algorithm to {made_for}, or name another head")


POOL_RULES: tuple[Rule[Pool], ...] = (
    Rule(
        id="target-is-no-speculator",
        why="vLLM serves the model that it verifies with and speculates by itself, on the baseline too, so nothing "
        "could be compared (transformers_utils/config.py:800); the others do not know the class",
        check=target_is_no_speculator,
    ),
)
RULES: tuple[Rule[Speculation], ...] = (
    Rule(
        id="speculator-is-read",
        why="the server ends at its start: its config.json has no model_type that transformers knows (read, never run)",
        check=speculator_is_read,
    ),
    Rule(
        id="speculator-fits-algorithm",
        why="a head is made for one algorithm; vLLM loads it into whatever class the algorithm has",
        check=speculator_fits_algorithm,
    ),
)
