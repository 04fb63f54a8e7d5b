"""What people, the servers and new releases do to a deployment: the rows of the matrix of faults."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.fault.nature import what
from tests.fault.stories import (
    BACK,
    BOTH_PROMOTED,
    CHANGED,
    DELETED,
    HELD,
    JUDGED_AGAIN,
    PROMOTED,
    ROLLED_BACK,
    UPGRADED,
    Story,
    another_image,
    example,
    too_strict,
)
from tests.fault.test_borrow import BORROWED, lent_one_for_a_while, suspended
from tests.fault.world import COUNTED_SECONDS, START, World
from tests.support.searched import Served, searching

from paceline.core import BASELINE
from paceline.kube.resources import JOB
from paceline.plan.step import timestamp
from paceline.render import Settings
from paceline.watch import Judgement, JudgementKind, Watched, WindowNumbers


@dataclass(frozen=True)
class Scenario:
    """`promised` says what else is wrong with a world in which the story was told; `either` is a field that may end
    both ways; `late`: seconds by which any fault may delay it."""

    story: Story
    promised: Callable[[World], list[str]] = lambda world: []
    either: str = "\0"
    late: float = 0.0


def measures(world: World) -> bool:
    return any(what(job) == "round" for job in world.cluster.list(JOB).items)


def another_release(world: World) -> None:
    """Of the operator: its image is that of the rounds, too."""
    world.settings = Settings(image="paceline:next")


class Trees(dict[str, Mapping[str, float]]):
    """How fast each tree is that a search may try."""

    def __missing__(self, arm: str) -> Mapping[str, float]:
        return SERVED.speeds([arm])[arm]


SERVED = Served("latency", 1)
FEW_TREES = {
    "numSteps": {"min": 1, "max": 3},
    "topK": {"min": 1, "max": 2},
    "numDraftTokens": {"min": 2, "max": 6},
}


def search(world: World) -> None:
    manifest = searching("latency", **FEW_TREES)
    manifest["spec"] |= {name: example()["spec"][name] for name in ("benchmark", "promotion")}
    world.nature.truths = {"latency": Trees()}
    world.apply(manifest)


def guarded(world: World) -> None:
    manifest = example("latency")
    manifest["spec"]["guard"] = {"action": "Fallback"}
    world.apply(manifest)


def accepts_little(world: World) -> None:
    """What the candidate drafts is taken no more: its servers' counters say so from now on."""

    def judge(watched: Watched) -> Judgement:
        served = watched.arm != BASELINE
        kind = JudgementKind.ACCEPTANCE_DROPPED if served else JudgementKind.AS_EXPECTED
        numbers = WindowNumbers(accept_length=1.4, expected_accept_length=2.8) if served else WindowNumbers()
        return Judgement(
            kind=kind, message=str(kind), revision=watched.revision, since=timestamp(START), numbers=numbers
        )

    world.judge = judge


MEASURED = replace(PROMOTED, until=measures)
GUARDED = Story(guarded)
SEARCHED = Story(search)
FELL_BACK = Story(accepts_little, after=GUARDED)


def edited(change: Callable[[dict[str, Any]], None], after: Story) -> Story:
    return Story(lambda world: world.edit(change), after=after)


SCENARIOS: Mapping[str, Scenario] = {
    "first deploy and promotion": Scenario(PROMOTED),
    "first deploy of two pools": Scenario(BOTH_PROMOTED),
    "promotion of another image": Scenario(CHANGED),
    "an upgrade is compared with what serves": Scenario(UPGRADED),
    "rejection": Scenario(Story(lambda world: world.apply(too_strict()))),
    "judged again": Scenario(JUDGED_AGAIN),
    "held": Scenario(HELD),
    "back to the image before": Scenario(BACK),
    "loan": Scenario(BORROWED, lent_one_for_a_while),
    "rollback by a person": Scenario(ROLLED_BACK),
    "fallback by the guard": Scenario(FELL_BACK, late=COUNTED_SECONDS),
    "search and promotion": Scenario(SEARCHED),
    "superseded in its first round": Scenario(
        edited(another_image, MEASURED),
        either=".status.node: None instead of",  # of the run whose round was not seen there before it was superseded
    ),
    "suspended in its first round": Scenario(
        edited(suspended, MEASURED),
        either=".status.node: ",  # whether its round was seen there before it was stopped
    ),
    "suspended while a candidate serves": Scenario(edited(suspended, PROMOTED)),
    "deleted": Scenario(DELETED),
    "another release of the operator in a round": Scenario(Story(another_release, after=MEASURED)),
    "another release of the operator at rest": Scenario(Story(another_release, after=PROMOTED)),
}
