"""Deployments of `field_edits` in the simulated cluster, and what can be seen of a spec there."""

from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from tests.support.field_edits import BASES
from tests.support.passes import changed_conditions
from tests.support.world import World

from paceline.plan.simulation.reconciler import OURS

Manifest = Mapping[str, Any]
FASTER = 1.4
"""Than the baseline: every candidate, at every load."""
NODES = {f"gpu-{number}": 8 for number in range(4)}
MOST_ROUNDS = 20
ASKED_ONCE = ("BenchmarkRun", "ControllerRevision", "Job")
"""Kinds of which something is left: evidence, what has served, and what has ended."""


class Speeds(dict[str, Mapping[str, float]]):
    """Every arm has one."""

    def __missing__(self, arm: str) -> Mapping[str, float]:
        return defaultdict(lambda: 170.0 if arm == "baseline" else 170.0 * FASTER)


@cache
def _at_rest(base: str) -> World:
    world = World(nodes=NODES, truths=defaultdict(Speeds))
    world.apply(BASES[base]())
    rest(world)
    return world


def at_rest(base: str) -> World:
    """One of its own in which all that can be done for the spec of that name has been."""
    return deepcopy(_at_rest(base))


def rest(world: World) -> None:
    """Everything ends that is under way, and what is asked next too."""
    for _ in range(MOST_ROUNDS):
        seen = len(world.told)
        if world.under_way("fetch"):
            world.prefetch_ends()
        world.servers_ready()
        if any("nodeName" in world.pod_of(job)["spec"] for job in world.under_way("round")):
            world.round_ends()
        if len(world.told) == seen:
            return
    raise AssertionError(f"never comes to rest: {world!r}")


def told(world: World) -> dict[str, str]:
    """Condition → status, reason and message."""
    return changed_conditions({}, world.status())


def objects(world: World) -> dict[str, Any]:
    """All but ours and pods, without what the API server writes into them."""
    return {
        f"{kind} {name}": _without(found, ("status", "uid", "generation", "creationTimestamp"))
        for (kind, name), found in world.cluster.objects.items()
        if kind not in ("SpeculativeDeployment", "Pod")
    }


def watched(world: World) -> Mapping[str, Any]:
    """What the servers are judged by, and when the planner looks again if nothing happens."""
    (key,) = (key for key in world.cluster.objects if key[0] == OURS[0])
    plan = world.plan(key)
    return {**plan.watched, "": plan.requeue_at}


def status(world: World) -> Any:
    """Without what tells of the way there."""
    return _without(world.status(), HOW_IT_CAME)


HOW_IT_CAME = (
    "history", "time", "since", "lastTransitionTime", "observedGeneration", "attempt", "notes", "dropped", "message",
)  # fmt: skip


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(inner, names) for key, inner in value.items() if key not in names}
    return [_without(inner, names) for inner in value] if isinstance(value, list | tuple) else value
