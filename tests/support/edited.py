"""Deployments of `field_edits` in the simulated cluster, and what can be seen of a spec there."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from tests.support.answers import HEAD_FACTS, otherwise
from tests.support.field_edits import BASES, PROFILES
from tests.support.passes import changed_conditions
from tests.support.world import World

from paceline.core import ModelFacts
from paceline.plan.simulation.reconciler import OURS

Manifest = Mapping[str, Any]
FASTER = 1.4
"""Than the baseline: every candidate, at every load."""
NODES = {f"gpu-{number}": 8 for number in range(4)}
MOST_ROUNDS = 20
BLOCK_HEAD = ModelFacts(architectures=("DFlashDraftModel",), hidden_size=2048)
LEFT = ("BenchmarkRun", "ControllerRevision", "Job", "PersistentVolumeClaim")
"""Kinds of which something is left: evidence, what has served, what has ended, and models; a claim never shrinks."""


class Speeds(dict[str, Mapping[str, float]]):
    """Every arm has one."""

    def __missing__(self, arm: str) -> Mapping[str, float]:
        return defaultdict(lambda: 170.0 if arm == "baseline" else 170.0 * FASTER)


@cache
def _begun(base: str) -> World:
    world = World(nodes=NODES, truths=defaultdict(Speeds))
    for manifest in (*(PROFILES if base == "profiled" else ()), BASES[base]()):
        world.apply(manifest)
    MOMENTS.get(base, rest)(world)
    return world


def begun(base: str) -> World:
    """One of its own, at the moment at which that spec is edited: where it has no other, when all is done for it."""
    return deepcopy(_begun(base))


def rest(world: World) -> None:
    """Everything ends that is under way, and what is asked next too."""
    for _ in range(MOST_ROUNDS):
        seen = len(world.told)
        if world.under_way("fetch"):
            blocks = "DFLASH" in str(world.spec())
            world.prefetch_ends(head=BLOCK_HEAD if blocks else HEAD_FACTS)
        world.servers_ready()
        if any("nodeName" in world.pod_of(job)["spec"] for job in world.under_way("round")):
            world.round_ends()
        if len(world.told) == seen:
            if "Reconciling" not in told(world):
                return
            world.wait(2)
    raise AssertionError(f"never comes to rest: {world!r}")


def fetching(_: World) -> None:
    """Its prefetch is under way."""


def measuring(world: World) -> None:
    """Its first round is."""
    world.prefetch_ends()
    world.servers_ready()


def used(world: World) -> None:
    """It has served three images, each measured with other requests, and some hours have gone by."""
    for number in range(3):
        rest(world)
        world.edit("image", lambda spec, number=number: spec["engine"].update(image=f"sglang:{number}"))
        rest(world)
        world.edit("requests", lambda spec, number=number: more_requests(spec, 32 + number))
    rest(world)
    world.wait(120)


def more_requests(spec: dict[str, Any], number: int) -> None:
    spec["benchmark"]["datasets"][0]["requests"] = number


def asked_before(world: World) -> None:
    """The question of an hour ago."""
    world.edit("requests", lambda spec: more_requests(spec, 33))
    rest(world)


def another_head(world: World) -> None:
    world.edit("head", lambda spec: spec["draft"].update(source="hf://a/another"))


def another_image(world: World) -> None:
    world.edit("image", lambda spec: spec["engine"].update(image="another"))


def other_answers(world: World) -> None:
    """Another image answers otherwise than what serves."""
    another_image(world)
    while world.under_way("round"):
        world.round_ends(incumbent=otherwise)


MOMENTS: Mapping[str, Callable[[World], None]] = {
    "fetched_anew": fetching,
    "begins": fetching,
    "measured": measuring,
    "in_a_window": measuring,
    "used": used,
}
LATER: Mapping[str, Callable[[World], None]] = {
    "measured": rest,
    "used": asked_before,
    "fetched_later": another_head,
    "upgraded_later": another_image,
    "answered_otherwise": other_answers,
    "begins": measuring,
}
"""What then happens, with the edit or without it, before it is seen."""


def told(world: World) -> dict[str, str]:
    """Condition → status, reason and message; and the notes."""
    status = world.status()
    return {**changed_conditions({}, status), "notes": f": {status.get('notes')}"}


def objects(world: World) -> dict[str, Any]:
    """All but ours and pods, without what the API server writes into them."""
    return {
        f"{kind} {name}": _without(found, ("status", "uid", "generation", "creationTimestamp"))
        for (kind, name), found in world.cluster.objects.items()
        if kind not in ("SpeculativeDeployment", "Pod")
    }


def watched(world: World) -> Mapping[str, Any]:
    """What the servers are judged by."""
    (key,) = (key for key in world.cluster.objects if key[0] == OURS[0])
    return world.plan(key).watched


def status(world: World) -> Any:
    """Without what tells of the way there."""
    return _without(world.status(), HOW_IT_CAME)


HOW_IT_CAME = (
    "history", "time", "startTime", "since", "lastTransitionTime", "observedGeneration", "attempt", "notes",
    "dropped", "message", "attempts", "surge",
)  # fmt: skip


def _without(value: Any, names: tuple[str, ...]) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(inner, names) for key, inner in value.items() if key not in names}
    return [_without(inner, names) for inner in value] if isinstance(value, list | tuple) else value
