"""What people do to a deployment, and how a world looks when it is over."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from tests.fault.nature import what
from tests.fault.oracle import Ending, broken_promises, differences, ending
from tests.fault.virtual import run
from tests.fault.world import Life, World
from tests.support import world as plan

from paceline.controller.kinds import BENCHMARK_RUN
from paceline.core import BASELINE
from paceline.kube import Manifest
from paceline.render.serving import ARM_LABEL


@dataclass(frozen=True)
class Story:
    """`act` is done to a new world, or to one in which `after` has happened."""

    act: Callable[[World], object]
    after: "Story | None" = None
    until: Callable[[World], bool] | None = None
    """When it is over; else, when nothing changes any more."""


def example(*pools: str) -> Manifest:
    """The example with one dataset and two rounds: enough, as the noise is small."""
    manifest = plan.example(*pools)
    manifest["spec"] |= {
        "benchmark": {"datasets": [{"name": "chat", "source": "builtin://chat"}]},
        "gate": {"decideAfterRounds": [2]},
        "promotion": {"progressDeadline": "10m"},
    }
    return manifest


def too_strict() -> Manifest:
    """Nothing is twice as fast."""
    manifest = example("latency")
    manifest["spec"]["gate"] |= {"minImprovement": "90%"}
    return manifest


def only_the_baseline_starts(world: World) -> None:
    world.nature.ready = lambda pod: what(pod) != "server" or pod["metadata"]["labels"][ARM_LABEL] == BASELINE


def only_the_old_image_starts(world: World) -> None:
    """The servers of the new one never get ready, candidate and baseline alike."""
    old = example()["spec"]["engine"]["image"]
    world.nature.ready = lambda pod: what(pod) != "server" or pod["spec"]["containers"][0]["image"] == old


def decided(world: World) -> bool:
    """A run has a verdict, and nobody has acted on it yet."""
    return any("verdict" in run.get("status", {}) for run in world.cluster.list(BENCHMARK_RUN).items)


def upgraded(spec: dict[str, Any]) -> None:
    spec["engine"]["image"] = "lmsysorg/sglang:v0.5.23.post1"


def another_image(spec: dict[str, Any]) -> None:
    """It serves before it is measured."""
    upgraded(spec)
    spec["promotion"] = {**spec.get("promotion", {}), "changes": "Immediate"}


def the_published_image(spec: dict[str, Any]) -> None:
    spec["engine"]["image"] = example()["spec"]["engine"]["image"]
    spec["promotion"] = {**spec.get("promotion", {}), "changes": "Immediate"}


def a_looser_gate(spec: dict[str, Any]) -> None:
    spec["gate"] |= {"minImprovement": "4%"}


PROMOTED = Story(lambda world: world.apply(example("latency")))
BOTH_PROMOTED = Story(lambda world: world.apply(example()))
CHANGED = Story(lambda world: world.edit(another_image), after=PROMOTED)
UPGRADED = Story(lambda world: world.edit(upgraded), after=PROMOTED)
JUDGED_AGAIN = Story(lambda world: world.edit(a_looser_gate), after=PROMOTED)
DECIDED = replace(PROMOTED, until=decided)
HELD = Story(only_the_baseline_starts, after=DECIDED)
BACK = Story(lambda world: (only_the_old_image_starts(world), world.edit(another_image)), after=PROMOTED)
ROLLED_BACK = Story(lambda world: world.annotate("rollback.paceline.dev/latency", "@monday"), after=PROMOTED)
DELETED = Story(lambda world: world.delete(), after=PROMOTED)


def tell(story: Story, *lives: Life) -> World:
    """The world when all is over: the operator lives these lives, then one without faults."""

    before = tell_once(story.after) if story.after else None

    async def told() -> World:
        world = before.twin() if before else World()
        async with world:
            world.operate(*lives)
            story.act(world)
            await (world.reach(story.until) if story.until else world.settle())
        return world

    return run(told())


@cache
def tell_once(story: Story) -> World:
    """Without faults."""
    return tell(story)


@cache
def should(story: Story) -> Ending:
    world = tell_once(story)
    assert not broken_promises(world.cluster), broken_promises(world.cluster)
    return ending(world.cluster)


def same_end(story: Story, told: bool) -> Callable[[World], list[str]]:
    """What is wrong with a world in which the story was told, whatever else happened. `told`: with Events too."""
    return lambda world: differences(ending(world.cluster), should(story), told) + broken_promises(world.cluster)
