"""Counters by way of a real Prometheus server: what it answers is what the servers' own pages say."""

import asyncio
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from tests.support.running import CALM, HEAD, QUICK, TARGET, Running, free_port, launch, model, tree, wait_ready

from paceline.controller.pages import from_pods, session
from paceline.controller.prometheus import NOWHERE, from_prometheus, query
from paceline.engines import ENGINES, Counts
from paceline.kube import Manifest
from paceline.watch import Process

CACHE = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline"))
MONITOR = ENGINES["SGLang"].monitor("0.5.23")
PORT = ENGINES["SGLang"].port
PATIENCE = 30.0


def program() -> str:
    found = shutil.which("prometheus") or str(CACHE / "prometheus" / "usr" / "bin" / "prometheus")
    assert Path(found).exists(), "no Prometheus: dev/install-prometheus"
    return found


def pod(name: str, address: str) -> Manifest:
    return {"metadata": {"name": name, "namespace": "models", "uid": name}, "status": {"podIP": address}}


@contextmanager
def prometheus(directory: Path, targets: Mapping[str, str]) -> Iterator[str]:
    """Its URL. It reads each pod every second, twice: two monitors may well have the same target."""
    port = free_port()
    jobs = "".join(
        f"- job_name: {job}\n  static_configs:\n"
        + "".join(
            f"  - targets: ['{address}:{PORT}']\n    labels: {{namespace: models, pod: {name}}}\n"
            for name, address in targets.items()
        )
        for job in ("one", "other")
    )
    (directory / "prometheus.yml").write_text(f"global: {{scrape_interval: 1s}}\nscrape_configs:\n{jobs}")
    process = subprocess.Popen(
        [program(), f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'data'}",
         f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL,
        stderr=(directory / "prometheus.log").open("wb"),
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()


async def ask(http: ClientSession, server: Running) -> None:
    body = {"text": "def fib(n):", "sampling_params": {"max_new_tokens": 30, "ignore_eos": True}}
    async with http.post(f"{server.url}/generate", json=body) as answer:
        await answer.read()


async def test_a_real_one_has_the_counts_of_the_pages(tmp_path: Path) -> None:
    address = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
    head = tree(model(tmp_path / "head", HEAD), 3, 4, 8)
    argv = ("--model-path", model(tmp_path / "target", TARGET), "--host", address, "--port", str(PORT),
            "--attention-backend", "triton", "--enable-metrics", *head)  # fmt: skip
    process = launch(argv, tmp_path / "log", {**QUICK, **CALM})
    server, pods = Running(process, f"http://{address}:{PORT}", tmp_path / "log"), [pod("a-0", address)]
    try:
        wait_ready(server)
        with prometheus(tmp_path, {"a-0": address}) as url:
            async with session() as http:
                await asyncio.gather(*(ask(http, server) for _ in range(4)))
                (own,) = (await from_pods(http, asyncio.Semaphore(1), MONITOR, pods, PORT)).values()
                assert isinstance(own, Counts)
                assert own.requests == 4
                assert await eventually(http, url, pods) == own
                both = await from_prometheus(http, url, MONITOR, [*pods, pod("unread-0", "127.0.0.1")])
                assert [(of.pod, why) for of, why in both.items() if isinstance(why, str)] == [
                    (
                        "unread-0",
                        "unread-0: Prometheus has no series sglang:* whose labels namespace and pod name this pod",
                    )
                ]
    finally:
        process.kill()
        process.wait()


async def eventually(http: ClientSession, url: str, pods: list[Manifest]) -> Counts | str:
    """When the server has read the page that has the last request."""
    deadline = time.monotonic() + PATIENCE
    while True:
        (found,) = (await from_prometheus(http, url, MONITOR, pods)).values()
        if (isinstance(found, Counts) and found.requests == 4) or time.monotonic() > deadline:
            return found
        await asyncio.sleep(0.2)


def test_one_query_has_all_pods_of_a_pool() -> None:
    asked = query(ENGINES["vLLM"].monitor("0.33.0"), "models", {"a-1": None, "a-0": None})
    assert asked.startswith('{__name__=~"vllm:generation_tokens_total|vllm:inter_token_latency_seconds_sum|')
    assert asked.endswith(r',namespace="models",pod=~"a\\-0|a\\-1"}')


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (web.Response(status=302, headers={"Location": "/login"}), "answered 302"),
        (web.Response(status=503, text="too busy"), "answered 503: too busy"),
        (web.Response(text="<html>"), "did not answer with an instant vector"),
        (
            web.Response(text='{"status":"success","data":{"result":[{"metric":{}}]}}'),
            "did not answer with an instant vector",
        ),
        (web.Response(text="[" * 100_000), "did not answer with an instant vector"),
    ],
)
async def test_what_is_no_prometheus_is_told_with_what_it_said(answer: web.Response, why: str) -> None:
    assert why in str(await told_by(answer))


async def test_requests_under_way_are_counted_once_where_priorities_break_them_down() -> None:
    """Prometheus drops labels without a value: the total has none."""
    shown = [{}, {"priority": "0"}, {"priority": "7"}]
    running = {"__name__": "sglang:num_running_reqs", "pod": "a-0"}
    result = [{"metric": {**running, **labels}, "value": [0, "5"]} for labels in shown]
    told = await told_by(web.json_response({"status": "success", "data": {"result": result}}))
    assert isinstance(told, Counts)
    assert told.under_way == 5


async def told_by(answer: web.Response) -> Counts | str:
    """What is known of one pod from a server that answers so."""

    async def handler(_: web.Request) -> web.Response:
        return answer

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner, port = web.AppRunner(app), free_port()
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with session() as http:
            (told,) = (await from_prometheus(http, f"http://127.0.0.1:{port}", MONITOR, [pod("a-0", "")])).values()
            return told
    finally:
        await runner.cleanup()


async def test_nowhere() -> None:
    async with session() as http:
        assert await from_prometheus(http, "", MONITOR, [pod("a-0", "")]) == {
            Process(pod="a-0", started="a-0 "): NOWHERE
        }
