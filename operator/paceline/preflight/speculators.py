"""Heads and targets in the format of vLLM's `speculators`, read into the same facts as any other model.

Their config.json has the sizes under `transformer_layer_config`, and the head's verifier in `speculators_config`.
Sources: github.com/vllm-project/speculators c05b95b, `src/speculators/config.py`, `models/*/config.py`; vLLM 0.33.0,
`transformers_utils/configs/speculators/` and `transformers_utils/config.py:800`; SGLang 0.5.23, whose wheel does not
contain the word.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core import SPECULATORS
from paceline.engines import engines_with
from paceline.engines.model_rules import (
    EXPORTED,
    SPECULATOR_IS_READ,
    SPECULATOR_IS_READ_WHY,
    ModelFinding,
    ModelRule,
    PairFacts,
    PoolFacts,
    of_head,
)

_LAYER = "transformer_layer_config"
TYPE = "speculators_model_type"


def plain_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration with the keys of other heads; unchanged for any other model.

    Here a named layer is the one *before* which a state is taken (`algos.py`: update_dflash), elsewhere the one whose
    output the state is.
    """
    layer = config.get(_LAYER)
    if TYPE not in config or not isinstance(layer, Mapping):
        return config
    above = {key: value for key, value in config.items() if value is not None and key != _LAYER}
    eagle, block = (above.pop(key, None) for key in ("eagle_aux_hidden_state_layer_ids", "aux_hidden_state_layer_ids"))
    named = {
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": _before(eagle)},
        "dflash_config": {"target_layer_ids": _before(block)},
    }
    return {**layer, **above, **named}


def kind(config: Mapping[str, Any]) -> str | None:
    """The type, such as eagle3; None for a model in another format."""
    type_ = config.get(TYPE)
    return type_ if isinstance(type_, str) and type_ else None


def verifier(config: Mapping[str, Any]) -> str | None:
    """The repository of the target for which a speculator was made."""
    table = config.get("speculators_config")
    made_for = table.get("verifier") if isinstance(table, Mapping) else None
    name = made_for.get("name_or_path") if isinstance(made_for, Mapping) else None
    return name if isinstance(name, str) and name else None


def _before(layers: Any) -> list[int] | None:
    if not isinstance(layers, list) or not all(isinstance(layer, int) for layer in layers):
        return None
    return [layer - 1 for layer in layers]


def target_is_no_speculator(pool: PoolFacts) -> Iterator[ModelFinding]:
    if pool.target.speculators is None:
        return
    source = pool.server.target.source
    verifier = pool.target.verifier
    verified = f"hf://{verifier}" if verifier else "the model that it verifies with"
    yield ModelFinding(
        path="target.source",
        problem=f"{source} is a speculator ({pool.target.speculators}), made for {verifier or 'some target'}",
        fix=f"write {verified} there, and {source} as source of the draft",
    )


def _speculator_is_read(pair: PairFacts) -> Iterator[ModelFinding]:
    if pair.head.speculators is None or EXPORTED in pair.head.architectures:
        return
    readers = " or ".join(engines_with(lambda capabilities: capabilities.speculators))
    problem = f"{pair.name} is in the speculators format, which {pair.release} does not read"
    yield of_head(pair, "source", problem, f"name a head in the engine's own format, or serve with {readers}")


def speculator_fits_algorithm(pair: PairFacts) -> Iterator[ModelFinding]:
    made_for = SPECULATORS.get(pair.head.speculators or "")
    if made_for and pair.draft.algorithm != made_for and pair.draft.name is None:
        problem = f"{pair.draft.algorithm} with a speculator of type {pair.head.speculators}"
        yield of_head(pair, "algorithm", problem, f"set the algorithm to {made_for}, or name another head")


SPECULATOR_RULES: tuple[ModelRule[PoolFacts], ...] = (
    ModelRule(
        id="target-is-no-speculator",
        why="an engine that knows the class serves the model that the speculator verifies with, and speculates by "
        "itself, also on the baseline: nothing could be compared (vLLM 0.33.0, transformers_utils/config.py:800)",
        check=target_is_no_speculator,
    ),
)
RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(
        id=SPECULATOR_IS_READ,
        why=SPECULATOR_IS_READ_WHY,
        check=_speculator_is_read,
    ),
    ModelRule(
        id="speculator-fits-algorithm",
        why="a head is made for one algorithm, and the engine loads it into the class of the chosen algorithm",
        check=speculator_fits_algorithm,
    ),
)
