"""What the API server refuses of one pool is nothing to the others, and is told; once granted, it is over."""

import asyncio

from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAME, World
from tests.support.memory import MemoryApi, Write

from paceline.kube import Forbidden
from paceline.kube.resources import DEPLOYMENT, SERVICE

QUOTA = "exceeded quota: services=10, used: services=10, limited: services=10"


def test_one_pools_quota_is_told_and_the_other_pool_serves() -> None:
    async def story() -> None:
        full = True

        def before(write: Write) -> None:
            if full and write.ref.resource == SERVICE and write.ref.name.endswith("-latency"):
                raise Forbidden(403, "Forbidden", QUOTA)

        world = World()
        async with world:
            world.operate(lambda there: MemoryApi(there.cluster, before=before))
            world.apply(example())
            await asyncio.sleep(600)
            there = [found["metadata"]["name"] for found in world.cluster.list(DEPLOYMENT).items]
            assert there == [f"{NAME}-latency", f"{NAME}-throughput"]
            stalled = said(world, "Stalled")
            assert stalled.startswith("Refused")
            assert QUOTA in stalled

            full = False
            await asyncio.sleep(600)
            assert said(world, "Stalled") == ""

    run(story())


def said(world: World, kind: str) -> str:
    """Reason and message of a condition of the deployment; "" where there is none."""
    conditions = world.found()["status"]["conditions"]
    return next((f"{one['reason']}: {one['message']}" for one in conditions if one["type"] == kind), "")
