"""What changes for those who send requests once a candidate serves: told before it is measured, never a refusal."""

from collections.abc import Iterator, Sequence

from paceline.core import Arm, Server
from paceline.engines import ENGINES
from paceline.preflight.cases import Pool, Rule, Said

CHECK = "see that no client needs it, or leave this pool without candidates"


def losses(server: Server, arms: Sequence[Arm]) -> tuple[str, ...]:
    """What requests no longer get, of any arm, each once."""
    adapter = ENGINES.get(server.engine.name)
    return tuple(dict.fromkeys(lost for arm in arms if adapter and (lost := adapter.loses(arm))))


def requests_are_answered(case: Pool) -> Iterator[Said]:
    for lost in losses(case.server, case.arms):
        yield Said(path="engine.name", found=lost, fix=CHECK, blocks=False)


RULES: tuple[Rule[Pool], ...] = (
    Rule(
        id="requests-are-answered",
        why="no prompt that is measured has any of it, so a promotion would be the first to show it",
        check=requests_are_answered,
    ),
)
