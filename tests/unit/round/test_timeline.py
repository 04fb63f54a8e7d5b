"""When requests began, which the benchmark client does not tell: what is worked out from its details, held to the clock
of a server that saw them come. The compiled client itself, over loopback."""

import dataclasses
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import pytest
from tests.support.rounds import PLAN

from paceline.core import Dataset, Workload
from paceline.pods.round import load, report

TOKEN_SECONDS = 0.01
CLOSE = 0.1
"""Seconds: the machine is busy with other tests, and arrivals wait for a thread of the server."""


class Clock(BaseHTTPRequestHandler):
    """Answers of 4 to 19 tokens; the first word of each is when its request came and the number it came as."""

    protocol_version = "HTTP/1.1"
    lock: ClassVar[Any] = threading.Lock()
    arrived: ClassVar[list[float]] = []

    def do_POST(self) -> None:
        came = time.monotonic()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.lock:
            number = len(Clock.arrived)
            Clock.arrived.append(came)
        tokens = 4 + len(body["messages"][-1]["content"]) % 16
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for word in (f"{number}:{came}", *["word"] * (tokens - 1)):
            time.sleep(TOKEN_SECONDS)
            self.event({"choices": [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}]})
        self.event({"choices": [], "usage": {"completion_tokens": tokens, "prompt_tokens": 5, "total_tokens": 9}})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, said: dict[str, Any]) -> None:
        self.wfile.write(f"data: {json.dumps(said)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[int]:
    Clock.arrived.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Clock) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running.server_address[1]
        running.shutdown()


def sent(models: Path, port: int, workload: Workload) -> tuple[dict[str, Any], list[float], list[int]]:
    """The client's report; in the order of its details, when each request came by the server's clock, and as which."""
    plan = dataclasses.replace(PLAN, tokenizer=str(models / "target"), port=port)
    found = dict(load.send(plan, workload, models, "", warm_up=False).report)
    said = [text.split()[0].split(":") for text in found["generated_texts"]]
    first = min(Clock.arrived)
    return found, [float(came) - first for _, came in said], [int(number) for number, _ in said]


def test_the_starts_that_follow_from_a_closed_loop_are_those_that_the_server_saw(models: Path, server: int) -> None:
    code = Workload(dataset=Dataset(name="code", source="builtin://code", requests=120, max_tokens=32), concurrency=6)
    found, came, _ = sent(models, server, code)
    answered = list(report._timeline(found, code.concurrency))
    stretch = found["duration"] / max(one.end for one in answered)
    off = [abs(stretch * one.start - seen) for one, seen in zip(answered, came, strict=True)]
    assert median(off) < CLOSE, off
    assert max(came) > 20 * CLOSE, "or the comparison says nothing"


def test_at_a_rate_details_are_in_the_order_in_which_requests_were_sent(models: Path, server: int) -> None:
    """What the rate that was kept is worked out from. A server's threads may see two of them the other way round."""
    dataset = Dataset(name="chat", source="builtin://chat", requests=40, max_tokens=32, rate=15.0)
    _, came, numbers = sent(models, server, Workload(dataset=dataset, concurrency=6))
    assert max(max(came[:number]) - came[number] for number in range(1, 40)) < CLOSE, came
    assert max(abs(place - number) for place, number in enumerate(numbers)) <= 3, numbers
    assert max(came) > 10 * CLOSE
