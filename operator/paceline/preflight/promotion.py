"""What requests lose once a candidate serves: noted before measuring, never a refusal."""

from collections.abc import Iterator, Sequence

from paceline.core import Arm, Server, server_of
from paceline.engines import ENGINES
from paceline.engines.model_rules import ModelFinding, ModelRule, PoolFacts

CHECK = "check that no client needs this, or remove the pool's candidates"


def losses(server: Server, arms: Sequence[Arm]) -> tuple[str, ...]:
    """Features that requests lose with any arm, without duplicates."""
    lost = (ENGINES[server_of(server, arm).engine.type].loses(arm) for arm in arms)
    return tuple(dict.fromkeys(filter(None, lost)))


def requests_are_answered(pool: PoolFacts) -> Iterator[ModelFinding]:
    for lost in losses(pool.server, pool.arms):
        yield ModelFinding(path="engine.type", problem=lost, fix=CHECK, blocks=False)


RULES: tuple[ModelRule[PoolFacts], ...] = (
    ModelRule(
        id="requests-are-answered",
        why="measured prompts use none of this, so only a promotion would show it",
        check=requests_are_answered,
    ),
)
