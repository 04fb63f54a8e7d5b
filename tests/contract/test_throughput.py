"""The published throughputs, measured from outside in real time; and the noise on them.

A closed loop with at least four times as many requests as its concurrency; the steady-state window goes from the moment
all clients are busy to the moment the first of them has nothing left to ask.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from tests.support.published import NARROW, POINTS, WIDE, Point, Tree
from tests.support.running import Running, emulated, tree

from paceline.pods import datasets
from paceline_emulator import noise

REQUESTS = {1: 6, 32: 128}
TOKENS = 96
CLOSE = 0.03
SAME_STEP = 0.01
TRIES = 3
"""A busy machine takes throughput away and never adds any: a point that came out low is measured again."""


class Load:
    """What a closed loop of clients saw: tokens by the time they came."""

    def __init__(self) -> None:
        self.received: list[tuple[float, int]] = []
        self.began = 0.0
        self.first_idle = 0.0

    @property
    def steady_throughput(self) -> float:
        """Output tokens/s in the window in which every client was busy.

        It ends with the step that ends it: what came with a client's last token came at the same moment.
        """
        window = [(at, count) for at, count in self.received if at <= self.first_idle + SAME_STEP]
        return sum(count for _, count in window) / (window[-1][0] - self.began)


async def closed_loop(url: str, prompts: list[str], concurrency: int, tokens: int) -> Load:
    """`concurrency` clients, each asking its next prompt when its last is answered."""
    load, left, busy = Load(), iter(prompts), 0

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal busy
        for prompt in left:
            busy += prompt is not None
            if busy == concurrency and not load.began:
                load.began = time.perf_counter()
            await ask(session, prompt)
            busy -= 1
        load.first_idle = load.first_idle or time.perf_counter()

    async def ask(session: aiohttp.ClientSession, prompt: str) -> None:
        body = {
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        async with session.post(url + "/v1/chat/completions", json=body) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    event = json.loads(line[6:])
                    if usage := event.get("usage"):
                        assert usage["completion_tokens"] == tokens
                    elif text := event["choices"][0]["delta"].get("content"):
                        load.received.append((time.perf_counter(), text.count(" ") + text.count(",")))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await asyncio.gather(*(client(session) for _ in range(concurrency)))
    assert sum(count for _, count in load.received) == tokens * len(prompts)
    return load


def prompts_of(dataset: str, count: int) -> list[str]:
    """Of a set, in order and from the start again. Every answer has at least 150 tokens, so the cap is what ends it."""
    found = datasets.load_dataset(dataset)
    return [found[index % len(found)] for index in range(count)]


def arm(which: Tree | None, head: str) -> tuple[str, ...]:
    return () if which is None else tree(head, *which)


@pytest.fixture(scope="module", params=[None, WIDE, NARROW], ids=["baseline", "wide", "narrow"])
def server(
    request: pytest.FixtureRequest, target: str, head: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Tree | None, Running]]:
    with emulated(target, tmp_path_factory.mktemp("speed") / "log", *arm(request.param, head)) as running:
        yield request.param, running


async def test_published_throughputs_within_three_per_cent(server: tuple[Tree | None, Running]) -> None:
    which, running = server
    points = [point for point in POINTS if point.tree == which]
    measured = {}
    for point in points:
        measured[point] = await measure(running, point)
    off = {where(point): round(measured[point] / point.throughput - 1, 4) for point in points}
    print(off)
    assert len(points) == {None: 8, WIDE: 8, NARROW: 4}[which]
    assert all(abs(error) < CLOSE for error in off.values()), off


async def measure(running: Running, point: Point) -> float:
    """Output tokens/s; the best of TRIES at most."""
    prompts, best = prompts_of(point.dataset, REQUESTS[point.batch]), 0.0
    for _ in range(TRIES):
        assert running.post("/flush_cache").status == 200
        load = await closed_loop(running.url, prompts, point.batch, TOKENS)
        best = max(best, load.steady_throughput)
        if best > (1 - CLOSE) * point.throughput:
            break
    return best


def where(point: Point) -> str:
    return f"{point.dataset}@{point.batch}"


async def test_a_point_repeated_varies_by_its_noise_and_nothing_else(target: str, log: Path) -> None:
    """The factor of each flush follows from the pod's uid and the argv, so what the machine adds can be told apart.

    What is left is far below the noise in the middle half of the repeats: a busy machine may take from the others.
    """
    uid, cv, repeats, tokens = "00000000-0000-0000-0000-000000000001", 0.2, 12, 150
    with emulated(target, log, POD_UID=uid, PACELINE_EMULATE_NOISE_CV=str(cv)) as running:
        argv = tuple(running.process.args[3:])  # type: ignore[index]
        rest = []
        for flush in range(1, repeats + 1):
            assert running.post("/flush_cache").status == 200
            load = await closed_loop(running.url, prompts_of("code", 1), 1, tokens)
            rest.append(load.steady_throughput / noise.factor(cv, uid, argv, flush))
    factors = [noise.factor(cv, uid, argv, flush) for flush in range(1, repeats + 1)]
    assert len(set(factors)) == repeats
    assert middle_half(factors) > cv / 2
    assert middle_half(rest) < cv / 4, "what the machine adds"


def middle_half(values: list[float]) -> float:
    """The distance between the quartiles, as a share of the median."""
    lower, median, upper = statistics.quantiles(values, n=4)
    return (upper - lower) / median
