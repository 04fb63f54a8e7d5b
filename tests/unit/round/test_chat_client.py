"""Paceline's own client: it is held to SGLang's on what both can send, and counts what it cannot read as failed."""

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.support.rounds import PLAN
from tests.support.running import HEAD, Running, emulated, model, tree

from paceline.core import Dataset, Workload
from paceline.pods.round import chat_client, load
from paceline.pods.round.chat_client import ChatLoad
from paceline.pods.round.report import steady

CODE = Workload(dataset=Dataset(name="code", source="builtin://code", requests=64, max_tokens=32), concurrency=4)
AT_A_RATE = dataclasses.replace(CODE, dataset=dataclasses.replace(CODE.dataset, requests=40, rate=10.0))
CLOSE = 0.15
"""Of a mean, as a ratio to what the server measured of the same requests: a busy machine slows a server, its clock and
its clients alike."""
SHORT = 0.05
"""Seconds: a first token comes after some hundredths, and a process may wait that long for its turn."""
BY_THE_SERVER = {
    "ttft": "sglang:time_to_first_token_seconds",
    "tpot": "sglang:request_time_per_output_token_seconds",
    "e2e_latency": "sglang:e2e_request_latency_seconds",
}


@pytest.fixture
def server(models: Path, tmp_path: Path) -> Iterator[Running]:
    head = model(tmp_path / "draft", HEAD)
    options = ("--served-model-name", "pair", "--tp-size", "4", *tree(head, 3, 4, 8))
    with emulated(str(models / "target"), tmp_path / "log", *options) as running:
        yield running


@dataclass(frozen=True)
class Sent:
    """A client's report of a load, and the server's means of the same requests in seconds, by metric."""

    report: Mapping[str, Any]
    by_the_server: Mapping[str, float]

    def ratio(self, metric: str) -> float:
        return float(self.report[f"mean_{metric}_ms"]) / 1000 / self.by_the_server[metric]

    @property
    def window(self) -> float:
        """Tokens in flight by Little's law, from the steady throughput, as a ratio to those that there were."""
        found = steady(self.report, CODE.concurrency)
        assert found is not None
        return found.throughput * self.by_the_server["e2e_latency"] / (CODE.concurrency * CODE.dataset.max_tokens)


def by_both(server: Running, models: Path, workload: Workload) -> tuple[Sent, Sent]:
    """The same requests by SGLang's client and by ours, one after the other."""
    plan = dataclasses.replace(PLAN, tokenizer=str(models / "target"), port=int(server.url.rpartition(":")[2]))
    texts = load.prompts(plan, workload)
    bodies = [json.dumps({"messages": [{"role": "user", "content": text}]}) for text in texts]
    options: dict[str, Any] = {"name": "code", "tokens": workload.dataset.max_tokens, "rate": workload.rate}
    chats = load.chat_load(plan, workload, bodies, **options)
    return (
        seen(server, lambda: load.send(plan, workload, models, "", warm_up=False).report),
        seen(server, lambda: asyncio.run(chat_client.send(chats, ""))),
    )


def seen(server: Running, send: Callable[[], Mapping[str, Any]]) -> Sent:
    before = sums(server)
    report = send()
    grown = {name: value - before.get(name, 0.0) for name, value in sums(server).items()}
    means = {metric: grown[f"{name}_sum"] / grown[f"{name}_count"] for metric, name in BY_THE_SERVER.items()}
    return Sent(report, means)


def sums(server: Running) -> Mapping[str, float]:
    return {name.partition("{")[0]: value for name, value in server.metrics().items() if "_bucket" not in name}


def test_of_the_same_requests_both_clients_report_the_same(server: Running, models: Path) -> None:
    theirs, ours = by_both(server, models, CODE)
    for name in ("completed", "total_output_tokens", "output_lens", "errors"):
        assert ours.report[name] == theirs.report[name], name
    for metric in ("tpot", "e2e_latency"):
        assert ours.ratio(metric) == pytest.approx(theirs.ratio(metric), rel=CLOSE), metric
    assert ours.window == pytest.approx(theirs.window, rel=CLOSE)
    for one in (theirs, ours):
        assert one.report["mean_ttft_ms"] / 1000 == pytest.approx(one.by_the_server["ttft"], rel=CLOSE, abs=SHORT)
        tokens, requests = one.report["total_output_tokens"], one.report["completed"]
        pieces = sum(map(len, one.report["itls"])) + requests
        gaps = (one.report["mean_e2e_latency_ms"] - one.report["mean_ttft_ms"]) * requests
        assert one.report["mean_itl_ms"] * (pieces - requests) == pytest.approx(gaps, rel=CLOSE)
        assert 1.5 < tokens / pieces < 4, "a piece a verify step"
    missing = {key for key in theirs.report if key.endswith("_ms")} - set(ours.report)
    assert missing <= {"max_itl_ms"}


def test_at_a_rate_both_clients_report_the_same(server: Running, models: Path) -> None:
    theirs, ours = by_both(server, models, AT_A_RATE)
    assert ours.report["completed"] == theirs.report["completed"] == 40
    for metric in ("tpot", "e2e_latency"):
        assert ours.ratio(metric) == pytest.approx(theirs.ratio(metric), rel=CLOSE), metric
    assert ours.report["duration"] >= load.arrivals(10.0, 40)[-1], "no request is sent before its time"


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
    assert found["completed"] == (not error)


@pytest.mark.parametrize(("body", "error"), [({}, "the response contained no"), ({"tools": [{}]}, "")])
async def test_an_answer_whose_call_was_cut_short_is_one(body: dict[str, Any], error: str) -> None:
    """A real vLLM 0.33.0 shows nothing of a call before its name is whole: its tokens are counted, and came at the
    end."""

    async def complete(_: web.Request) -> web.Response:
        return web.Response(text=piece(content="") + USAGE + DONE, content_type="text/event-stream")

    found = await asked(complete, body)
    assert found["errors"][0].startswith(error)
    assert (found["completed"], found["output_lens"]) == ((0, [0]) if error else (1, [3]))


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
    assert found["mean_e2e_latency_ms"] > 500


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
        return await chat_client.send(ChatLoad(url=url, bodies=bodies, concurrency=2, arrivals=arrivals), "k")
    finally:
        await runner.cleanup()
