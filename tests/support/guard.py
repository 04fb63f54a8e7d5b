"""What the watcher finds of the servers of a story, and pools that are watched."""

from typing import Any

from tests.support.campaigns import BASELINE_1, LATENCY
from tests.support.edits_of_specs import AS_THE_BASELINE, added
from tests.support.planned import deployment_pools
from tests.support.runs import made_by
from tests.support.stories import measured
from tests.support.world import World, example

from paceline.core import Trigger
from paceline.plan.step import timestamp
from paceline.watch import Judgement, JudgementKind, WindowNumbers

DAY = 24 * 60
"""Minutes."""


def judged(world: World, kind: JudgementKind, revision: str = "", **numbers: float) -> None:
    """The watcher has judged what latency serves, or another revision."""
    judgement = Judgement(
        kind=kind,
        message=", ".join([str(kind), *(f"{name} {number:g}" for name, number in numbers.items())]),
        revision=revision or str(world.pool("latency")["serving"]["revision"]),
        since=timestamp(world.cluster.now),
        numbers=WindowNumbers(**numbers),
    )
    world.judgements = {**world.judgements, "latency": judgement}
    world.settle(f"latency is judged: {kind}", 0)


def dropped(world: World) -> None:
    judged(world, JudgementKind.ACCEPTANCE_DROPPED, accept_length=1.4, expected_accept_length=2.8)


def hung(world: World) -> None:
    judged(world, JudgementKind.HUNG, running_requests=3)


def operator_restarts(world: World) -> None:
    world.judgements = {}
    world.settle("the operator starts anew", 1)


def guarded(action: str = "Fallback", *pools: str, world: World | None = None, **guard: Any) -> World:
    """The candidates of latency, or of these pools, serve and are watched."""
    world = world or World()
    manifest = example(*(pools or ("latency",)))
    manifest["spec"]["guard"] = {"action": action, **guard}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    world.told.clear()
    return world


def holds(world: World) -> list[Any]:
    """Runs of latency that a hold has started."""
    return [run for run in world.runs("latency") if made_by(run)["trigger"] == Trigger.HOLD]


NARROW_IS_SLOWER = {"latency": {**LATENCY, "narrow": {name: 0.98 * speed for name, speed in BASELINE_1.items()}}}


def promoted_anyway(world: World | None = None) -> World:
    """Wide is held, as it has stopped paying, and a person has promoted narrow whatever the verdict."""
    world = world or World(truths=NARROW_IS_SLOWER)
    manifest = example("latency")
    manifest["spec"]["guard"] = {"action": "Fallback"}
    manifest["spec"]["engine"]["env"] = AS_THE_BASELINE
    added(manifest["spec"])
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    measured(world)
    dropped(world)
    world.servers_ready()
    (pool,) = deployment_pools(world)
    world.annotate("promote-anyway.paceline.dev/latency", f"{pool.revision(pool.arms['narrow'])}@monday")
    world.servers_ready()
    world.told.clear()
    return world
