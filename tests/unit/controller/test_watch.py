"""What the watcher reads of servers, who is woken by it, and what it does not put up with."""

import asyncio
import random
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web
from prometheus_client import REGISTRY
from tests.support import memory
from tests.support.running import CALM, HEAD, QUICK, TARGET, Running, launch, model, tree, wait_ready

from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.controller.pages import LONGEST_PAGE, PAGE_TIMEOUT, session, url
from paceline.controller.watch import Watcher, ready_servers
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, POOL_LABEL
from paceline.kube import Manifest, WorkQueue
from paceline.render.serving import REVISION_LABEL
from paceline.watch import Expected, JudgementKind, Watched

KEY = ObjectKey("speculativedeployments", "models", "served")
PORT = 30000
WATCHED = Watched(
    revision="a1b2c3",
    arm="wide",
    engine="SGLang",
    version="0.5.23",
    verify_tokens=8,
    expected=(Expected(concurrency=8, accept_length=2.5),),
    acceptance_drop=0.25,
    window=timedelta(minutes=10),
)


def pod(address: str, name: str = "served-latency-0", uid: str = "1", **changed: Any) -> Manifest:
    labels = {**MANAGED_BY, DEPLOYMENT_LABEL: "served", POOL_LABEL: "latency", REVISION_LABEL: "a1b2c3"}
    metadata = {"name": name, "namespace": "models", "uid": uid, "resourceVersion": uid}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | {"labels": labels | {COMPONENT_LABEL: "server"}} | changed.pop("metadata", {}),
        "spec": {},
        "status": {"podIP": address, "conditions": [{"type": "Ready", "status": "True"}]} | changed,
    }


class Clock:
    """Minutes go by when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


class Pool:
    """One pool with its servers, as the operator knows it."""

    def __init__(self, *pods: Manifest, watched: Watched = WATCHED) -> None:
        self.cluster = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS)))
        self.cluster.queue = WorkQueue(together=0)
        self.clock = Clock()
        self.watcher = Watcher(self.cluster, clock=self.clock)
        self.cluster.watch(KEY, {"latency": watched})
        for each in pods:
            self.cluster.saw(each)
        while self.woken():  # by the pods themselves
            pass

    async def look(self, http: ClientSession) -> None:
        """Half a minute later."""
        self.clock.seconds += 30
        pods = ready_servers(self.cluster, KEY, "latency", "a1b2c3")
        await self.watcher.look(http, KEY, "latency", pods)

    @property
    def kind(self) -> JudgementKind:
        return self.cluster.judgements[KEY]["latency"].kind

    def woken(self) -> bool:
        key = self.cluster.queue.take()
        if key is not None:
            self.cluster.queue.done(key)
        return key is not None


def loopback() -> str:
    """An address of this machine that no other test has: engines have one port."""
    return f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[tuple[str, Running]]:
    """A server that speculates, at an acceptance length of 1.5."""
    address, head = loopback(), model(tmp_path / "head", HEAD)
    argv = ("--model-path", model(tmp_path / "target", TARGET), "--host", address, "--port", str(PORT),
            "--attention-backend", "triton", "--enable-metrics", *tree(head, 3, 4, 8))  # fmt: skip
    env = {**QUICK, **CALM, "SGLANG_SIMULATE_ACC_LEN": "1.5"}
    process = launch(argv, tmp_path / "log", env)
    running = Running(process, f"http://{address}:{PORT}", tmp_path / "log")
    try:
        wait_ready(running)
        yield address, running
    finally:
        process.kill()
        process.wait()


async def test_a_drop_of_acceptance_wakes_the_planner_once(emulated: tuple[str, Running]) -> None:
    """A server whose head accepts a third of what it was measured to; the clock alone makes minutes of its seconds."""
    address, server = emulated
    pool = Pool(pod(address))
    woken = list[bool]()
    async with session() as http:
        for _ in range(22):
            await asyncio.gather(*(ask(http, server.url) for _ in range(5)))
            await pool.look(http)
            woken.append(pool.woken())
    judgement = pool.cluster.judgements[KEY]["latency"]
    assert judgement.kind is JudgementKind.ACCEPTANCE_DROPPED
    assert judgement.numbers.accept_length == pytest.approx(1.5, abs=0.15)
    assert sum(woken) == 1
    labels = {"namespace": "models", "name": "served", "pool": "latency"}
    assert REGISTRY.get_sample_value("paceline_pool_accept_length", labels) == judgement.numbers.accept_length
    pool.cluster.watch(KEY, {})
    assert pool.watcher.due() == []
    assert pool.cluster.judgements == {}


async def ask(http: ClientSession, url: str) -> None:
    body = {"text": "def fib(n):", "sampling_params": {"max_new_tokens": 16, "ignore_eos": True}}
    async with http.post(f"{url}/generate", json=body) as answer:
        assert answer.status == 200
        await answer.read()


Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """A pod's address that answers so."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    address = loopback()
    await web.TCPSite(runner, address, PORT).start()
    try:
        yield address
    finally:
        await runner.cleanup()


async def elsewhere(request: web.Request) -> web.StreamResponse:
    assert request.path == "/metrics", "a redirect was followed"
    raise web.HTTPFound("/secret")


async def without_credentials(request: web.Request) -> web.StreamResponse:
    assert not {"Authorization", "Cookie"} & set(request.headers)
    response = web.Response(text="not found", status=404)
    response.set_cookie("a", "b")
    return response


async def endless(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(2 * LONGEST_PAGE // 2**16):
        await response.write(b"sglang:x 1\n" * (2**16 // 11))
    return response


async def swelling(_: web.Request) -> web.Response:
    """Some 100 KB that nobody asked to be compressed, and that become 100 MB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    body = b"".join([packer.compress(bytes(2**20)) for _ in range(100)]) + packer.flush()
    return web.Response(body=body, headers={"Content-Encoding": "gzip"})


async def of_no_number(_: web.Request) -> web.Response:
    return web.Response(text="sglang:num_running_reqs NaN\nsglang:generation_tokens_total NaN\n")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (elsewhere, "answered 302"),
        (without_credentials, "answered 404"),
        (endless, f"more than {LONGEST_PAGE} bytes"),
        (swelling, f"more than {LONGEST_PAGE} bytes"),
        (of_no_number, ""),
    ],
)
async def test_a_server_that_cannot_be_read_is_told_with_what_it_said(answer: Answer, why: str) -> None:
    async with session() as http, answering(answer) as address:
        pool = Pool(pod(address))
        for _ in range(12):
            await pool.look(http)
    judgement = pool.cluster.judgements[KEY]["latency"]
    assert judgement.kind is JudgementKind.UNREADABLE
    assert why in judgement.message
    assert pool.woken()


async def test_nobody_listens() -> None:
    async with session() as http:
        pool = Pool(pod(loopback()))
        for _ in range(12):
            await pool.look(http)
    assert pool.kind is JudgementKind.UNREADABLE
    assert PAGE_TIMEOUT.total == 10


async def test_what_was_read_of_a_pool_that_has_changed_meanwhile_does_not_count() -> None:
    async def promoted(_: web.Request) -> web.StreamResponse:
        pool.cluster.watch(KEY, {"latency": replace(WATCHED, revision="d4e5f6")})
        return web.Response(text="sglang:num_running_reqs 1\n")

    async with session() as http, answering(promoted) as address:
        pool = Pool(pod(address))
        await pool.look(http)
    assert pool.cluster.judgements == {}


def test_only_servers_that_answer_for_the_pool_are_read() -> None:
    """Of a server of two nodes the first; none that is not ready, or about to end."""
    worker = {"leaderworkerset.sigs.k8s.io/worker-index": "1"}
    labels = pod("")["metadata"]["labels"]
    pool = Pool(
        pod("10.0.0.1", "ready", "1"),
        pod("10.0.0.2", "starting", "2", conditions=[{"type": "Ready", "status": "False"}]),
        pod("10.0.0.3", "ending", "3", metadata={"deletionTimestamp": "2026-11-22T10:00:00Z"}),
        pod("10.0.0.4", "worker", "4", metadata={"labels": labels | worker}),
        pod("", "unplaced", "5"),
    )
    found = [ready_servers(pool.cluster, KEY, "latency", revision) for revision in ("a1b2c3", "another")]
    assert [[each["metadata"]["name"] for each in pods] for pods in found] == [["ready"], []]


def test_a_pools_first_look_is_within_its_period_and_the_next_ones_a_period_apart() -> None:
    pool = Pool(pod("10.0.0.1"))
    looks = list[float]()
    for second in range(120):
        pool.clock.seconds = float(second)
        for key, name, _ in pool.watcher.due():
            looks.append(second)
            pool.watcher.looked(key, name, second)
    assert looks[0] <= 30
    assert len(looks) >= 3
    assert [later - sooner for sooner, later in pairwise(looks)] == [30] * (len(looks) - 1)


@pytest.mark.parametrize(
    ("address", "expected"),
    [("10.0.0.1", "http://10.0.0.1:30000/metrics"), ("fd00::7", "http://[fd00::7]:30000/metrics")],
)
def test_where_a_page_is(address: str, expected: str) -> None:
    assert url(pod(address), PORT, "/metrics") == expected
