"""Who has lost the Lease must stop, whatever comes at the same moment."""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.fault.healthy import leads
from tests.fault.virtual import run
from tests.support import memory
from tests.support.answered import talking_to
from tests.support.edits import example

from paceline.controller import shell
from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.health import STUCK_SECONDS, Health
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.controller.settings import from_environment
from paceline.kube import Contact, Leading, Recorder, WorkQueue
from paceline.kube.queue import TOGETHER


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


async def an_empty_cluster(request: web.Request) -> web.StreamResponse:
    """As far as Kopf asks: the kind is there, and nothing of it."""
    if request.query.get("watch"):
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.sleep(3600)
    kind = {"name": "speculativedeployments", "singularName": "speculativedeployment", "kind": "SpeculativeDeployment"}
    kind |= {"namespaced": True, "verbs": ["get", "list", "watch", "patch"], "shortNames": []}  # type: ignore[dict-item]
    version = {"groupVersion": "paceline.dev/v1alpha1", "version": "v1alpha1"}
    answers: dict[str, Any] = {
        "/apis": {"groups": [{"name": "paceline.dev", "versions": [version], "preferredVersion": version}]},
        "/apis/paceline.dev/v1alpha1": {"resources": [kind]},
    }
    empty = {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": [], "groups": [], "resources": []}
    return web.json_response(answers.get(request.path, empty | {"versions": ["v1"]}))


def told_to_stop(_: asyncio.Event) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("end", [asyncio.Event.set, told_to_stop], ids=["the-lease-is-lost", "told-to-stop"])
async def test_nobody_works_on_while_kopf_waits_for_its_tasks(
    end: Callable[[asyncio.Event], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kopf takes every task that it finds for its own and waits for them for five seconds, as long as a rival. The
    lease is released as soon as nobody works, and not before."""
    beats: list[float] = []
    released: list[float] = []

    async def worker() -> None:
        while True:
            beats.append(time.monotonic())
            await asyncio.sleep(0.02)

    async def work(*_: object) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(worker())

    monkeypatch.setattr(shell, "_work", work)
    settings = from_environment({"PACELINE_IMAGE": "x", "POD_NAME": "p"})
    async with talking_to(an_empty_cluster, tmp_path) as api:
        lost = asyncio.Event()
        recorder = Recorder(api, controller="operator", instance="operator")
        led = Leading(lost, lambda: released.append(time.monotonic()))
        operating = asyncio.create_task(shell._operate(WatchedCluster(api), api, settings, recorder, led))
        await asyncio.sleep(2)
        assert beats
        assert not operating.done()
        ended = time.monotonic()
        end(lost)
        async with asyncio.timeout(30):
            await operating
    assert beats[-1] <= released[0] < ended + 1


async def test_who_stands_by_has_all_in_view_when_its_turn_comes() -> None:
    """Lists of thousands of objects take seconds; a standby has read them, and goes on hearing."""
    server = memory.Cluster(kinds=RECONCILED_KINDS)
    api = memory.MemoryApi(server)
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}})
    cluster = WatchedCluster(api)
    async with shell.watching(cluster), asyncio.timeout(10):
        for reflector in cluster.reflectors:
            await reflector.synced.wait()
        manifest = example()
        manifest["metadata"] = {"name": "served", "namespace": "models"}
        await api.create(manifest)
        while cluster.get(manifest["kind"], "models", "served") is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(TOGETHER)
        assert len(cluster.queue) == 0, "nobody works"
        assert cluster.queue.take() == ObjectKey("speculativedeployments", "models", "served")


def test_a_standby_whose_queue_waits_for_its_turn_is_healthy() -> None:
    """Only who works can be stuck."""
    cluster = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS)))
    now = 0.0
    cluster.queue = WorkQueue(clock=lambda: now)
    cluster.queue.add(ObjectKey("speculativedeployments", "models", "served"))
    now = 2 * STUCK_SECONDS
    health = Health(cluster=cluster, contact=Contact())
    assert health.fault() is None
    health.led = leads()
    assert health.fault() == "no pass has finished for 600 s"
