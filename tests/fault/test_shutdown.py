"""Who has lost the Lease must stop, whatever comes at the same moment."""

import asyncio

from tests.fault.virtual import run

from paceline.kube import WorkQueue


def test_a_cancelled_worker_ends_also_if_work_comes_at_that_moment() -> None:
    async def ends(turns: int) -> bool:
        queue = WorkQueue[str](clock=asyncio.get_running_loop().time)

        async def reconcile(key: str) -> float | None:
            return 600.0

        queue.add("a")  # so that there is a time to wait for
        working = asyncio.create_task(queue.run(reconcile))
        await asyncio.sleep(1)
        queue.add("b")
        for _ in range(turns):
            await asyncio.sleep(0)
        working.cancel()
        done, _ = await asyncio.wait([working], timeout=1)
        return bool(done)

    assert all(run(ends(turns)) for turns in range(5))
