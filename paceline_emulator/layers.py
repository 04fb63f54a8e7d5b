"""Which hidden states of its target an EAGLE3 head is given, and what comes of others than it was made for.

A state is numbered by the layer before which it is taken. Read in the wheels of 0.4.5, 0.5.6 and 0.5.23
(`model_executor/model_runner.py`, `set_eagle3_layers_to_capture` in `models/*.py`) and in the fork of 0.5.6 for
Qwen3-Next (github.com/tails-mpt/sglang at db727c03), whose hook the emulated 0.5.6 has: upstream's has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline_emulator.models import Model

Layers = tuple[int, ...]

TRAINED_ON = "paceline_emulated_layers"
"""Key of a head's config.json; without it a head is content with what it is given."""
WORTH = 0.25
"""Assumed: of what a head proposes on states that it was not trained on, a quarter as much is accepted."""

MARKED = ("Qwen2MoeForCausalLM", "Qwen3MoeForCausalLM", "Qwen3NextForCausalLM")
"""A layer that is asked for is looked up and marked, and the mark stays."""
TAKES_THE_LAST = ("Gemma3ForCausalLM", "Gemma4ForCausalLM", "Gemma4ForConditionalGeneration")
BY_ENTRY = (
    "DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM", "DeepseekV32ForCausalLM", "Glm4MoeLiteForCausalLM",
    "KimiK25ForConditionalGeneration",
)  # fmt: skip
"""In 0.5.23 take a head's numbers as they are, unless the first is 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """`prefill` and `verify` are what the head is given there. `dies` are the scheduler's last words, if it comes to
    that: while it loads (`loading`), or when the first request has been prefilled."""

    prefill: Layers
    verify: Layers
    dies: str | None = None
    loading: bool = False


def states(version: str, target: Model, head: Model) -> States:
    """Raises nothing: what a target does not say of itself is not held against the head."""
    layers = int(target.text.get("num_hidden_layers") or 0)
    if not layers:
        return States(prefill=(), verify=())
    architecture = (target.architectures or [""])[0]
    default = _default(version, architecture, layers)
    named = _named(head) if version != "0.4.5" else ()
    asked = _asked(version, architecture, named) if named else default
    graphs = default if version == "0.5.6" else asked
    marks = architecture in MARKED and (version, architecture) != ("0.5.6", "Qwen3NextForCausalLM")
    prefill = tuple(sorted({*asked, *graphs})) if marks else asked
    there = range(layers + 1 if architecture in TAKES_THE_LAST and version == "0.5.23" else layers)
    lost = [layer for layer in asked if layer not in there]
    if marks and lost:
        said = f"IndexError: index {lost[0]} is out of range"
        return States(prefill=prefill, verify=graphs, dies=said, loading=True)
    given = len([layer for layer in prefill if layer in there])
    wanted = len(named) if version == "0.5.23" and named else 3
    if given != wanted:
        width = int(head.text.get("target_hidden_size") or head.text["hidden_size"])
        said = (
            f"RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x{given * width} and {wanted * width}x"
            f"{head.text['hidden_size']})"
        )
        return States(prefill=prefill, verify=graphs, dies=said)
    return States(prefill=prefill, verify=graphs)


def worth(given: States | None, head: Model | None) -> float:
    """Of what the head would be worth on the states that it was trained on."""
    trained = tuple(head.config.get(TRAINED_ON) or ()) if head else ()
    foreign = given is not None and trained and trained != given.verify
    return WORTH if foreign else 1.0


def _named(head: Model) -> Layers:
    """Nothing is looked for beside `eagle_config`."""
    found = (head.config.get("eagle_config") or {}).get("eagle_aux_hidden_state_layer_ids")
    return tuple(found or ())


def _asked(version: str, architecture: str, named: Layers) -> Layers:
    if version == "0.5.23" and architecture in BY_ENTRY and named[0] != 1:
        return named
    return tuple(layer + 1 for layer in named)


def _default(version: str, architecture: str, layers: int) -> Layers:
    if version == "0.5.6" and architecture == "Qwen3NextForCausalLM":
        attending: Sequence[int] = range(3, layers, 4)
        return attending[0], attending[len(attending) // 2], attending[-1]
    return 2, layers // 2, layers - 3
