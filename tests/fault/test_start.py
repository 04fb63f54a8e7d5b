"""An operator that starts where there is much to do."""

import asyncio

from tests.fault.healthy import fault_of
from tests.fault.virtual import run
from tests.support.memory import Cluster, MemoryApi

from paceline.controller import shell
from paceline.controller.cluster import ObjectKey
from paceline.controller.cluster import WatchedCluster as View
from paceline.controller.health import STUCK_SECONDS
from paceline.kube import WorkQueue
from paceline.kube.throttle import Throttle

DEPLOYMENTS, RUNS, REQUESTS = 1000, 2000, 3
"""Together 9,000 requests, of which a throttle lets 20 a second pass: seven and a half minutes."""


def test_thousands_of_objects_at_once_are_work_and_no_hang() -> None:
    """The oldest key waits for longer than a hanging pass may take, and yet nobody should end the process: the next one
    would begin with as many."""

    async def starts() -> tuple[float, set[str | None]]:
        loop = asyncio.get_running_loop()
        throttle = Throttle(20, 30, clock=loop.time)
        view = View(MemoryApi(Cluster()))
        view.queue = WorkQueue(clock=loop.time)
        for plural, number in (("speculativedeployments", DEPLOYMENTS), ("benchmarkruns", RUNS)):
            for name in range(number):
                view.queue.add(ObjectKey(plural, "models", str(name)))

        async def one(_: ObjectKey) -> float | None:
            for _ in range(REQUESTS):
                await throttle.take()
            return None

        working = asyncio.create_task(view.queue.run(one, workers=shell.WORKERS))
        faults = set()
        while len(view.queue):
            await asyncio.sleep(20)
            faults.add(fault_of(view))
        took = loop.time()
        working.cancel()
        return took, faults

    took, faults = run(starts())
    assert took > STUCK_SECONDS
    assert faults == {None}
