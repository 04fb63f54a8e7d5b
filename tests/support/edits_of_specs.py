"""What people do to a spec in stories, and the truths of what they then ask."""

from typing import Any

from tests.support.campaigns import BASELINE_1, LATENCY
from tests.support.world import World, example

from paceline.plan.simulation.reconciler import SETTINGS
from paceline.render import Settings

CODE_ALONE = [{"name": "code", "source": "builtin://code"}]


NARROW = {"name": "narrow", "tree": {"numSteps": 2, "topK": 2, "numDraftTokens": 4}}


AS_THE_BASELINE = [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"}]
"""So that a pool may have a chain alone."""


THREE = {**LATENCY, "narrow": {name: 1.02 * speed for name, speed in BASELINE_1.items()}}


BETTER = {**LATENCY, "narrow": {name: 1.9 * speed for name, speed in BASELINE_1.items()}}


def loosened(spec: dict[str, Any]) -> None:
    spec["gate"] |= {"minImprovement": "4%"}


def added(spec: dict[str, Any]) -> None:
    spec["candidates"].append(NARROW)


def removed(spec: dict[str, Any]) -> None:
    """The one that was rejected."""
    del spec["candidates"][0]


def in_production(pool: str, promotion: str = "Automatic", replicas: int = 1, settings: Settings = SETTINGS) -> World:
    world = World(settings=settings)
    manifest = example(pool)
    manifest["spec"]["promotion"] = {"mode": promotion}
    manifest["spec"]["pools"][0]["replicas"] = replicas
    manifest["spec"]["engine"]["env"] = AS_THE_BASELINE
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(3):
        world.round_ends()
    for request in world.requests("promote"):
        world.annotate(*request)
    for _ in range(replicas):  # one after another
        world.servers_ready()
    world.told.clear()
    return world
