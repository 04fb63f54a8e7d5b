"""Servers that an autoscaler scales, too: the real controller on the API in memory, whose test is the autoscaler."""

import asyncio
from typing import Any

import pytest
from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAME, NAMESPACE, World
from tests.support.memory import MemoryApi

from paceline.kube import Forbidden, Listing, Manifest, Ref, Resource
from paceline.kube.resources import AUTOSCALER, DEPLOYMENT

LATENCY = f"{NAME}-latency"


def autoscaler(target: str = LATENCY) -> Manifest:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "by-queue", "namespace": NAMESPACE},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "minReplicas": 2,
            "maxReplicas": 4,
        },
    }


def replicas(world: World) -> int:
    found = world.cluster.get(Ref(DEPLOYMENT, NAMESPACE, LATENCY))
    assert found is not None
    return int(found["spec"]["replicas"])


def scale(world: World, to: int) -> None:
    servers = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": LATENCY, "namespace": NAMESPACE}}
    world.cluster.apply({**servers, "spec": {"replicas": to}}, manager="autoscaler")


def ready(world: World) -> tuple[str, str]:
    (said,) = (one for one in world.found()["status"]["conditions"] if one["type"] == "Ready")
    return said["status"], said["reason"]


async def served(world: World) -> None:
    world.apply(example("latency"))
    world.operate()
    await world.settle()
    assert (replicas(world), ready(world)) == (1, ("True", "Serving"))


def test_it_comes_scales_and_goes() -> None:
    """It is heard of when it comes and when it goes; in between its number stays, though the spec has another one."""

    async def told() -> None:
        async with World() as world:
            await served(world)
            world.apply(autoscaler())
            await world.settle()
            assert ready(world) == ("True", "ReplicasIgnored")
            scale(world, 3)
            await world.settle()
            assert (replicas(world), ready(world)) == (3, ("True", "ReplicasIgnored"))
            world.cluster.delete(Ref(AUTOSCALER, NAMESPACE, "by-queue"))
            await world.settle()
            assert (replicas(world), ready(world)) == (1, ("True", "Serving"))

    run(told())


def test_its_status_wakes_nobody() -> None:
    """It is written every fifteen seconds."""

    async def told() -> None:
        async with World() as world:
            world.apply(autoscaler())
            await served_by_it(world)
            passes: list[object] = []
            world.lives[-1].view.queue.hint = passes.append  # type: ignore[method-assign]
            for number in range(3):
                (found,) = world.cluster.list(AUTOSCALER).items
                world.cluster.set_status(found, {"currentReplicas": number})
                await asyncio.sleep(15)
            assert passes == []

    run(told())


async def served_by_it(world: World) -> None:
    world.apply(example("latency"))
    world.operate()
    await world.settle()
    assert ready(world) == ("True", "ReplicasIgnored")


class Older(MemoryApi):
    """The rights of a release that knew no autoscalers."""

    async def list(self, resource: Resource, namespace: str | None = None, *more: Any, **others: Any) -> Listing:
        if resource == AUTOSCALER:
            raise Forbidden(403, "Forbidden", f"{resource.plural} is forbidden")
        return await super().list(resource, namespace, *more, **others)


@pytest.mark.parametrize("present", [True, False])
def test_without_the_right_to_see_it_the_spec_decides(present: bool) -> None:
    async def told() -> None:
        async with World() as world:
            if present:
                world.apply(autoscaler())
            world.apply(example("latency"))
            world.operate(lambda of: Older(of.cluster))
            await world.settle()
            assert (replicas(world), ready(world)) == (1, ("True", "Serving"))

    run(told())
