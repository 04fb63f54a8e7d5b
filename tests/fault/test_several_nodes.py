"""Servers of several nodes on the real controller: the kind that makes them may come late."""

from typing import Any

from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import World
from tests.support.memory import Cluster

from paceline.controller.kinds import LEADER_WORKER_SET
from paceline.kube import Manifest
from paceline.kube.reflector import ABSENT_DELAY
from paceline.kube.resources import DEPLOYMENT


def over_two_nodes() -> Manifest:
    manifest = example("latency")
    manifest["spec"]["accelerator"] |= {"nodes": 2, "tensorParallelSize": 8}
    return manifest


def stalled(world: World) -> str:
    said = (world.found().get("status") or {}).get("conditions", ())
    return next((str(one["reason"]) for one in said if one["type"] == "Stalled"), "")


def groups(cluster: Cluster) -> list[dict[str, Any]]:
    return cluster.list(LEADER_WORKER_SET).items


def test_it_is_installed_while_somebody_waits_for_it() -> None:
    """No event of a deployment's own tells of it; it is found all the same, and before the resync."""

    async def told() -> float:
        async with World() as world:
            world.cluster.absent.add(LEADER_WORKER_SET)
            world.operate()
            world.apply(over_two_nodes())
            await world.settle()
            assert stalled(world) == "NoLeaderWorkerSet"
            assert world.cluster.list(DEPLOYMENT).items == []

            world.cluster.absent.clear()
            installed = world.loop.time()
            await world.reach(lambda world: bool(groups(world.cluster)) and stalled(world) == "")
            return world.loop.time() - installed

    assert run(told()) <= ABSENT_DELAY + 5


def test_a_cluster_without_it_serves_from_one_node_as_any_other() -> None:
    async def told() -> None:
        async with World() as world:
            world.cluster.absent.add(LEADER_WORKER_SET)
            world.operate()
            world.apply(example("latency"))
            await world.settle()
            summary = (world.found().get("status") or {})["summary"]
            assert summary.startswith("latency=wide"), summary

    run(told())
