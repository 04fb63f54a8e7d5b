"""What vLLM makes of a head, by what its files show (0.33.0; paths below `vllm/`)."""

from collections.abc import Iterator

from paceline.engines.model_rules import (
    AUX_STATES,
    AUX_STATES_WHY,
    EXPORTED,
    SPECULATOR_IS_READ,
    SPECULATOR_IS_READ_WHY,
    USUAL_STATES,
    ModelFinding,
    ModelRule,
    PairFacts,
    aux_states,
    listed,
    of_head,
    reads_states,
)
from paceline.engines.vllm.arguments import VERSION
from paceline.engines.vllm.capabilities import CAPABILITIES

UNREAD = {
    "peagle": "it drafts in parallel, which the second model runner does not do (config/vllm.py:3072)",
}
"""Type of a speculator → why no server starts with it."""
NO_READER = "there is no reader of it (transformers_utils/configs/speculators/algos.py)"


def speculator_is_read(pair: PairFacts) -> Iterator[ModelFinding]:
    """Another release may read other types."""
    type_ = pair.head.speculators
    if type_ is None or EXPORTED in pair.head.architectures or type_ in CAPABILITIES.speculators:
        return
    problem = f"{pair.name} is a speculator of type {type_}: {UNREAD.get(type_, NO_READER)}"
    fix = f"name one of type {listed(CAPABILITIES.speculators)}"
    yield of_head(pair, "source", problem, fix, blocks=pair.server.engine.version == VERSION)


def aux_states_are_read(pair: PairFacts) -> Iterator[ModelFinding]:
    """Of a head in the speculators format vLLM does not hand the number on (algos.py: update_eagle3)."""
    return reads_states(pair, USUAL_STATES if pair.head.speculators else aux_states(pair.head))


MODEL_RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(id=SPECULATOR_IS_READ, why=SPECULATOR_IS_READ_WHY, check=speculator_is_read),
    ModelRule(id=AUX_STATES, why=AUX_STATES_WHY, check=aux_states_are_read),
)
