"""Servers of which every tree's speed is known: for stories of searches."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.answers import Spoiled
from tests.support.campaigns import WORKLOADS
from tests.support.rooflines import REGIMES, Server
from tests.support.world import World, example

RANGES = {"numSteps": {"min": 1, "max": 7}, "topK": {"min": 1, "max": 8}, "numDraftTokens": {"min": 2, "max": 32}}
Shape = tuple[int, int, int]


def searching(*pools: str, **ranges: Any) -> dict[str, Any]:
    """The example with these pools, which search for their candidates."""
    manifest: dict[str, Any] = dict(example(*pools))
    manifest["spec"]["engine"]["env"] = [{"name": "SGLANG_ENABLE_SPEC_V2", "value": "0"}]
    del manifest["spec"]["candidates"]
    for pool in manifest["spec"]["pools"]:
        pool.pop("candidates", None)
        pool["search"] = {**RANGES, **ranges}
    return manifest


def begun(manifest: dict[str, Any]) -> World:
    """Up to the first round of its search."""
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world


def shape_of(arm: str) -> Shape:
    """`tree-3-4-8`."""
    steps, top_k, tokens = map(int, arm.removeprefix("tree-").split("-"))
    return steps, top_k, tokens


class Served:
    """A made-up server of a regime (`rooflines`), for every tree that a search may try."""

    def __init__(self, regime: str, seed: int, speed: float = 170.0) -> None:
        self.server, self.speed = Server.drawn(REGIMES[regime], len(WORKLOADS), seed), speed

    def speeds(self, arms: Sequence[str], load: str = "") -> dict[str, dict[str, float]]:
        """Arm → dataset, at a `load` such as `@32` → tokens per second."""
        names = [f"{name}{load}" for name in WORKLOADS]
        return {arm: {name: self.speed * self.ratio(arm, i) for i, name in enumerate(names)} for arm in arms}

    def ratio(self, arm: str, workload: int) -> float:
        if arm == "baseline":
            return 1.0
        return self.server.accepted(shape_of(arm), workload) / self.server.step(shape_of(arm))

    def mean(self, arm: str) -> float:
        """Over the baseline, geometric over the datasets."""
        product = 1.0
        for i in range(len(WORKLOADS)):
            product *= self.ratio(arm, i)
        return float(product ** (1 / len(WORKLOADS)))

    def length(self, arm: str, dataset: str) -> float:
        return 1.0 if arm == "baseline" else self.server.accepted(shape_of(arm), WORKLOADS.index(dataset))


def arms_of(world: World, pool: str) -> list[str]:
    """Of the pool's first search."""
    return [arm["name"] for arm in world.runs(pool)[0]["spec"]["arms"]]


def searched(world: World, served: Mapping[str, Served], **spoiled: Spoiled) -> None:
    """Rounds end until none is under way."""
    while world.under_way("round"):
        answered(world, served, **spoiled)


def answered(world: World, served: Mapping[str, Served], **spoiled: Spoiled) -> None:
    """The rounds under way end."""
    for job in world.under_way("round"):
        pool = job["metadata"]["labels"]["paceline.dev/pool"]
        server = served[pool]
        arms = sorted({arm["name"] for run in world.runs(pool) for arm in run["spec"]["arms"]})
        world.round_ends(pool, truth=server.speeds(arms), lengths=server.length, **spoiled)
