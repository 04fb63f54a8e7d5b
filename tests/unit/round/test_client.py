"""The client: it measures what a stream shows, and counts what it cannot read as failed."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import uvloop
from aiohttp import web
from tests.oracles.stream import Script, streaming

from paceline.core import Dataset, Workload
from paceline.engines import Speculation
from paceline.pods.round import client, load
from paceline.pods.round.client import Requests
from paceline.pods.round.report import point

CLOSE = 0.02
"""Seconds: the machine is busy with other tests."""
SPECULATED: Script = [(150, 1), (190, 3), (230, 1), (240, 4), (300, 3)]
"""Milliseconds after a request, and tokens: a piece a verify step."""
FOUR = Workload(dataset=Dataset(name="code", source="builtin://code", requests=20, max_tokens=32), concurrency=4)


@pytest.fixture
def url() -> Iterator[str]:
    with streaming(SPECULATED) as url:
        yield url


def sent(url: str, folder: Path, **changed: Any) -> dict[str, Any]:
    """The report of 20 requests by the client as a process."""
    bodies = tuple({"messages": [{"role": "user", "content": f"{n}?"}]} for n in range(20))
    requests = Requests(**{"url": url, "bodies": bodies, "concurrency": 4, **changed})
    (folder / "load").write_text(requests.to_json())
    argv = [sys.executable, "-m", "paceline.pods.round.client", folder / "load", folder / "report"]
    subprocess.run(argv, check=True)
    found: dict[str, Any] = json.loads((folder / "report").read_text())
    return found


def test_what_a_stream_shows_is_what_is_measured(url: str, tmp_path: Path) -> None:
    """Four at a time, 0.3 s and 12 tokens each."""
    report = sent(url, tmp_path)
    assert report["errors"] == [""] * 20
    assert report["output_lens"] == [12] * 20
    assert report["input_lens"] == [20] * 20
    for number in range(20):
        assert report["starts"][number] == pytest.approx(number // 4 * 0.3, abs=5 * CLOSE)
        assert report["itls"][number] == pytest.approx([0.04, 0.04, 0.01, 0.06], abs=CLOSE)
    found = point(FOUR, report, Speculation())
    assert (found.completed, found.errors, found.output_tokens) == (20, 0, 240)
    assert found.mean_ttft == pytest.approx(0.15, abs=CLOSE)
    assert found.mean_tpot == pytest.approx(0.15 / 11, rel=0.1)
    assert found.mean_e2e == pytest.approx(0.3, abs=CLOSE)
    assert found.steady_throughput == pytest.approx(4 * 12 / 0.3, rel=0.1)
    assert found.fullness == pytest.approx(1.0, abs=0.1)


def test_what_arrives_at_a_time_starts_at_it(url: str, tmp_path: Path) -> None:
    arrivals = load.arrivals(20.0, 20)
    report = sent(url, tmp_path, arrivals=arrivals)
    assert report["starts"] == pytest.approx(list(arrivals), abs=1e-6)
    assert report["latencies"] == pytest.approx([0.3] * 20, abs=3 * CLOSE)


def test_how_busy_the_client_was_is_told(url: str, tmp_path: Path) -> None:
    report = sent(url, tmp_path)
    assert 0 < report["client_cpu"] < 0.5
    assert 0 <= report["client_lag"] < CLOSE


async def test_a_loop_that_is_kept_busy_is_told_by_its_lag() -> None:
    """A tenth of a second of work at a time, and a little rest: an event waits 50 ms on average."""

    async def work(_: web.Request) -> web.Response:
        for _ in range(10):
            time.sleep(0.1)  # noqa: ASYNC251 - the client is in this process, and cannot look meanwhile
            await asyncio.sleep(0.001)
        return web.Response(text=piece(content="a") + USAGE, content_type="text/event-stream")

    found = await asked(work)
    assert found["client_lag"] == pytest.approx(0.05, abs=0.02)


def test_arrivals_are_random_at_the_rate_and_the_same_for_every_arm() -> None:
    found = load.arrivals(8.0, 4000)
    assert found == load.arrivals(8.0, 4000)
    gaps = [later - earlier for earlier, later in pairwise(found)]
    assert sum(gaps) / len(gaps) == pytest.approx(1 / 8, rel=0.05)
    assert sum(gap > 1 / 8 for gap in gaps) / len(gaps) == pytest.approx(0.368, abs=0.03)


def event(said: Any) -> str:
    return f"data: {json.dumps(said)}\n\n"


def piece(**delta: Any) -> str:
    return event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})


def ending(reason: str) -> str:
    return event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}})
DONE = "data: [DONE]\n\n"
CALL = {"index": 0, "function": {"name": "search", "arguments": '{"of": "x"}'}}


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (piece(role="assistant", content="") + piece(content="a") + piece(content="b") + USAGE + DONE, "", "ab"),
        (piece(reasoning_content="hm ") + piece(content="a") + USAGE + DONE, "", "hm a"),
        (piece(content=None, tool_calls=[CALL]) + USAGE + DONE, "", 'search{"of": "x"}'),
        (": keep-alive\n\n" + piece(content="a") + USAGE, "", "a"),
        (piece(content="a"), "the answer broke off: it has no usage", ""),
        (piece(content="") + USAGE + DONE, "the response contained no generated tokens", ""),
        (piece(content="a") + event({"error": {"message": "out of room"}}), "in the stream: out of room", ""),
        (piece(content="a") + ending("abort") + USAGE + DONE, "the answer was ended by abort", ""),
        (piece(content="a") + ending("length") + USAGE + DONE, "", "a"),
        ("data: {\n\n", "JSONDecodeError", ""),
        ('data: ["a"]\n\n', "AttributeError", ""),
    ],
)
async def test_an_answer_is_read_to_its_end_or_has_failed(answer: str, error: str, text: str) -> None:
    async def complete(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer k"
        return web.Response(text=answer, content_type="text/event-stream")

    found = await asked(complete)
    assert found["errors"][0].startswith(error)
    assert bool(found["errors"][0]) == bool(error)
    assert found["generated_texts"] == [text]


@pytest.mark.parametrize(("body", "error"), [({}, "the response contained no"), ({"tools": [{}]}, "")])
async def test_an_answer_whose_call_was_cut_short_is_one(body: dict[str, Any], error: str) -> None:
    """A real vLLM 0.33.0 shows nothing of a call before its name is whole: its tokens are counted, and came at the
    end."""

    async def complete(_: web.Request) -> web.Response:
        return web.Response(text=piece(content="") + USAGE + DONE, content_type="text/event-stream")

    found = await asked(complete, body)
    assert found["errors"][0].startswith(error)
    assert found["output_lens"] == ([0] if error else [3])
    assert found["input_lens"] == [5], "which a template is known by"


@pytest.mark.parametrize(
    "body",
    [
        '{"object":"error","message":"no such adapter","type":"BadRequestError","param":null,"code":400}',  # SGLang
        '{"error":{"message":"no such adapter","type":"NotFoundError","param":"model","code":404}}',  # vLLM
        "no such adapter",
    ],
)
async def test_a_refusal_is_quoted(body: str) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(text=body, status=400)

    assert (await asked(refuse))["errors"] == ["400 Bad Request: no such adapter"]


async def test_a_request_that_is_sent_late_has_waited_since_it_was_due() -> None:
    """A client that is too busy to send is none that measures a fast server: its times begin when they should have."""

    async def keep_the_process(_: web.Request) -> web.Response:
        time.sleep(0.3)  # noqa: ASYNC251 - the client is in this process, and cannot send meanwhile
        return web.Response(text=piece(content="a") + USAGE, content_type="text/event-stream")

    found = await asked(keep_the_process, arrivals=(0.0, 0.02, 0.04))
    assert found["ttfts"][2] > 0.8
    assert sum(found["latencies"]) / 3 > 0.5


def test_a_request_that_a_closed_connection_did_not_take_is_sent_again(url: str) -> None:
    """The server's end of a connection comes between its choice and the write."""

    async def send_two() -> list[str]:
        requests = Requests(url=url, bodies=({"messages": []},) * 2, concurrency=1)
        async with client.Sender.begin(requests, "") as sender:
            await sender.ask(0)
            closing = aiohttp.TraceConfig()
            closing.on_connection_reuseconn.append(close_what_is_taken)
            closing.freeze()
            sender.session.trace_configs.append(closing)
            await sender.ask(1)
        return [answer.error for answer in sender.answers]

    assert uvloop.run(send_two()) == ["", ""]


async def close_what_is_taken(session: aiohttp.ClientSession, *_: Any) -> None:
    assert session.connector
    for taken in session.connector._acquired:
        assert taken.transport
        asyncio.get_running_loop().call_soon(taken.transport.close)  # the task that writes runs after it


async def asked(
    handler: Any, body: Mapping[str, Any] | None = None, arrivals: tuple[float, ...] | None = None
) -> Mapping[str, Any]:
    """The report of one request to this handler, or of those that arrive."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        bodies: tuple[Mapping[str, Any], ...] = ({"messages": [], **(body or {})},) * len(arrivals or (0.0,))
        return await client.send(Requests(url=url, bodies=bodies, concurrency=2, arrivals=arrivals), "k")
    finally:
        await runner.cleanup()
