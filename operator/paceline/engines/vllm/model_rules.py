"""What vLLM makes of a head, by what its files show (0.33.0; paths below `vllm/`)."""

from collections.abc import Iterator

from paceline.engines.model_rules import (
    EXPORTED,
    SPECULATOR_IS_READ,
    SPECULATOR_IS_READ_WHY,
    ModelFinding,
    ModelRule,
    PairFacts,
    listed,
    of_head,
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


MODEL_RULES: tuple[ModelRule[PairFacts], ...] = (
    ModelRule(id=SPECULATOR_IS_READ, why=SPECULATOR_IS_READ_WHY, check=speculator_is_read),
)
