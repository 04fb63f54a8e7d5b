"""Events are written beside the work: who records one does not wait for the API server."""

import asyncio
from typing import Any

import pytest
from tests.support import memory

from paceline.kube import Manifest, Outbox, Recorder
from paceline.kube.events import MOST_WAITING

REGARDING = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": "a", "uid": "u"}}


class Slow(memory.MemoryApi):
    """Answers to no Event until it is told to."""

    def __init__(self) -> None:
        super().__init__(memory.Cluster())
        self.opened = asyncio.Event()

    async def create(self, manifest: Manifest, *more: Any) -> Manifest:
        await self.opened.wait()
        return await super().create(manifest, *more)


async def test_events_are_written_in_order_while_nobody_waits(caplog: pytest.LogCaptureFixture) -> None:
    api = Slow()
    outbox = Outbox(Recorder(api, controller="c", instance="i"))
    writing = asyncio.create_task(outbox.run())
    for number in range(MOST_WAITING + 1):
        outbox.put(REGARDING, "Normal", "Said", f"{number}")
    assert "1000" in caplog.text, "one too many is told in the log, and stops nobody"
    api.opened.set()
    async with asyncio.timeout(30):
        while len(api.writes) < MOST_WAITING:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    writing.cancel()
    names = [write.ref.name for write in api.writes]
    assert len(names) == len(set(names)) == MOST_WAITING
