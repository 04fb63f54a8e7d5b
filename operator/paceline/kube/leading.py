"""A Lease renewed by a separate thread with its own loop and connection, so that long work does not lose it.

A Lease that is renewed between steps of the work is lost whenever a step takes long, and the work may not notice. Here
the thread renews while the work computes, and ends the process if the work continues without the Lease.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from paceline.kube.interface import Api
from paceline.kube.lease import Lease

log = logging.getLogger(__name__)

GRACE = 3.0
"""Seconds from the loss of a Lease until a process that still works is ended. A Lease counts as lost 8 s after its last
renewal, and a rival may start 4 s after that."""


@dataclass(frozen=True, slots=True)
class Leading:
    """The state of a held lease: `lost` is set as soon as it is lost; `release` gives it to a rival at once, for a
    process that has stopped working but takes longer to exit."""

    lost: asyncio.Event
    release: Callable[[], None]


@asynccontextmanager
async def leading(
    reach: Callable[[], Awaitable[AbstractAsyncContextManager[Api]]],
    lease: Callable[[Api], Lease],
    *,
    grace: float = GRACE,
    end: Callable[[int], object] = os._exit,
) -> AsyncIterator[Leading]:
    """Enter once the lease is ours. Leaving releases the lease, unless `release` did so before. If the caller has not
    left `grace` seconds after the loss, `end` ends the process. `reach` and `lease` are called on the thread."""
    here = asyncio.get_running_loop()
    ours, lost, released = here.create_future(), asyncio.Event(), asyncio.Event()
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[None]]] = []

    def tell(call: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: no one listens any more
            here.call_soon_threadsafe(call, *args)

    async def keep() -> None:
        loops.append((asyncio.get_running_loop(), _this_task()))
        async with await reach() as api:
            candidate = lease(api)
            try:
                await candidate.acquire()
                tell(_settle, ours, None)
                await candidate.keep()
                tell(lost.set)
                await asyncio.sleep(grace)
                log.critical("work continues %g s after the lease was lost: this process exits now", grace)
                end(1)
            finally:
                await candidate.release()

    def run() -> None:
        failed: BaseException | None = None
        try:
            asyncio.run(keep())
        except asyncio.CancelledError:
            pass
        except Exception as error:
            log.exception("the lease is no longer kept")
            failed = error
        tell(_settle, ours, failed)
        if not released.is_set():
            tell(lost.set)

    def release() -> None:
        if released.is_set():
            return  # another cancellation would abort the write that releases the lease
        released.set()
        for loop, task in loops:
            with suppress(RuntimeError):  # the loop has ended already
                loop.call_soon_threadsafe(task.cancel)

    thread = threading.Thread(target=run, name="lease", daemon=True)
    thread.start()
    try:
        await ours
        yield Leading(lost, release)
    finally:
        release()
        await asyncio.to_thread(thread.join, 2 * grace)


def _this_task() -> "asyncio.Task[Any]":
    task = asyncio.current_task()
    assert task is not None
    return task


def _settle(future: "asyncio.Future[None]", failed: BaseException | None) -> None:
    if future.done():
        return
    if failed is None:
        future.set_result(None)
    else:
        future.set_exception(failed)
