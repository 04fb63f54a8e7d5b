"""Two pools that search the same trees: each server of the first search is measured at the loads of both."""

from typing import Any

from tests.support.searched import Served, answered, searched, searching
from tests.support.world import World

SERVED = {"latency": Served("latency", 1), "throughput": Served("busy", 1)}


def begun(manifest: dict[str, Any] | None = None) -> World:
    world = World()
    world.apply(manifest or searching("latency", "throughput"))
    world.prefetch_ends()
    world.servers_ready()
    return world


def test_x() -> None:
    world = begun()
    print(world.runs("latency"), [r["metadata"]["name"] for r in world.runs("throughput")])
    print(world.runs("throughput")[0]["spec"].get("sharedWorkloads"))
    print(world.message("Measuring"))
    searched(world, SERVED)
    for pool in SERVED:
        for run in world.runs(pool):
            print(
                run["metadata"]["name"],
                run["spec"]["purpose"],
                run["spec"].get("roundsOf"),
                run["status"].get("verdict"),
                run["status"].get("search", {}).get("serverStarts"),
            )
    assert 0
