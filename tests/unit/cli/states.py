"""States of a deployment, each told as a story once."""

from functools import cache
from typing import Any

from tests.plan.test_changes import by, rounds, upgraded
from tests.support.answers import half_failed, noisy
from tests.support.campaigns import LATENCY
from tests.support.guard import dropped
from tests.support.imported import allowing, apply, file
from tests.support.searched import Served, answered, searching
from tests.support.stories import by_hand, measuring, promoted
from tests.support.world import World, example

SLOWER = {
    arm: {name: speed * (0.8 if arm == "wide" else 1) for name, speed in of.items()} for arm, of in LATENCY.items()
}


@cache
def not_seen() -> World:
    """Applied, and no operator is there."""
    world = World(away=True)
    world.apply(example())
    return world


@cache
def prefetching() -> World:
    """The operator has read it; models are downloaded."""
    world = World()
    world.apply(example())
    return world


@cache
def measuring_round_2_of_3() -> World:
    """One pool is in its second round, the other in its first; five minutes into each."""
    world = World()
    measuring(world)
    world.round_ends("latency")
    return world


@cache
def searching_round_4() -> World:
    """The pool searches for its candidate, and is in the fourth round of that."""
    world = World()
    world.apply(searching("latency"))
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        answered(world, {"latency": Served("latency", 1)})
    return world


@cache
def searched_and_measuring() -> World:
    """The search has found a tree; whether that is faster, a gate decides now."""
    world = World()
    world.apply(searching("latency"))
    world.prefetch_ends()
    world.servers_ready()
    while len(world.runs("latency")) == 1:
        answered(world, {"latency": Served("latency", 1)})
    return world


@cache
def no_room() -> World:
    """Both pools serve, and no node has room for a round."""
    world = World(nodes={"gpu-0": 8})
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    return world


@cache
def both_promoted() -> World:
    """Two pools, two winners."""
    world = World()
    promoted(world)
    return world


@cache
def promoted_without_a_cluster() -> World:
    """On what somebody has measured and applied."""
    world = allowing()
    apply(world, file())
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    return world


@cache
def rejected() -> World:
    """The candidate is slower: the baseline stays."""
    world = World(truths={"latency": SLOWER})
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    return world


@cache
def held() -> World:
    """A promoted candidate keeps crashing: it is taken off."""
    world = World()
    promoted(world, "latency")
    world.wait(600)
    world.server_loops("latency", 1, "torch.OutOfMemoryError: CUDA out of memory.")
    world.servers_ready()
    return world


@cache
def awaiting_promote() -> World:
    """promotion.mode is Manual: a verdict waits for a person."""
    world = by_hand()
    for _ in range(3):
        world.round_ends()
    return world


@cache
def stalled() -> World:
    """The models cannot be downloaded."""
    world = World()
    world.apply(example())
    world.prefetch_fails("hf://thoughtworks/Qwen3-Coder-Next-Eagle3: 401 Unauthorized")
    return world


@cache
def suspended() -> World:
    """spec.suspend is set in the middle of a run."""
    world = World()
    measuring(world, "latency")
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    return world


@cache
def rolled_back() -> World:
    """A person went back from a promoted candidate."""
    world = World()
    promoted(world, "latency")
    world.annotate("rollback.paceline.dev/latency", "@ticket-4711")
    world.servers_ready()
    return world


@cache
def aborted() -> World:
    """A person ended the run."""
    world = World()
    measuring(world, "latency")
    world.annotate("abort.paceline.dev/latency", "too-expensive")
    return world


def full(replicas: int = 2, min_serving: int = 1) -> World:
    """The only node is full, and the pool's run has just begun to wait."""
    world, manifest = World(nodes={"gpu-0": 4 * replicas}), example("latency")
    manifest["spec"]["pools"][0]["replicas"] = replicas
    manifest["spec"]["benchmark"] |= {"capacityPolicy": "Borrow", "minServing": min_serving}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world


@cache
def lent() -> World:
    """The only node is full: the pool lends one of its two servers to its run."""
    world = full()
    world.wait(1)
    return world


@cache
def degraded() -> World:
    """The acceptance of what was promoted dropped, and the guard only tells."""
    world = World()
    promoted(world, "latency")
    dropped(world)
    return world


STATES = (
    not_seen,
    prefetching,
    measuring_round_2_of_3,
    no_room,
    searching_round_4,
    searched_and_measuring,
    both_promoted,
    promoted_without_a_cluster,
    rejected,
    held,
    rolled_back,
    aborted,
    lent,
    degraded,
    awaiting_promote,
    stalled,
    suspended,
)


def changed(**rounds_with: Any) -> World:
    """Another release beside what serves, to the end."""
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(0.5), **rounds_with)
    return world


@cache
def change_rejected() -> World:
    return changed()


@cache
def change_not_measured() -> World:
    return changed(baseline=half_failed, wide=half_failed, incumbent=half_failed)


@cache
def change_undecided() -> World:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(1.0), wide=noisy, incumbent=noisy, baseline=noisy)
    return world


@cache
def change_measured() -> World:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    return world
