"""An answer that is aborted: the real SGLang 0.5.23 ends its stream as any other, and counts it, but times it not."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract.answers import shape
from tests.support.running import Running, emulated, events

REAL = Path(__file__).parent / "captures" / "base" / "aborted.jsonl"
COUNTED, TIMED = "sglang:num_requests_total", "sglang:request_time_per_output_token_seconds_count"
CHAT = {"messages": [{"role": "user", "content": "Say many things."}], "stream": True, "ignore_eos": True}


@pytest.fixture
def server(target: str, log: Path) -> Iterator[Running]:
    with emulated(target, log) as running:
        yield running


def counters(server: Running) -> list[float]:
    found = server.metrics()
    return [
        sum(value for name, value in found.items() if name.startswith(f"{metric}{{")) for metric in (COUNTED, TIMED)
    ]


def test_it_ends_as_the_real_one_does(server: Running) -> None:
    before = counters(server)
    body = json.dumps({**CHAT, "max_tokens": 2000, "stream_options": {"include_usage": True}}).encode()
    request = urllib.request.Request(f"{server.url}/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as answer:
        for _ in range(6):  # three events and the lines between them
            answer.readline()
        server.post("/abort_request", {"abort_all": True})
        rest = answer.read().decode()
    assert rest.endswith("data: [DONE]\n\n")
    real = [json.loads(line) for line in REAL.read_text().splitlines()]
    assert [shape(event) for event in events(rest)[-2:]] == [shape(event) for event in real]
    assert [after - was for after, was in zip(counters(server), before, strict=True)] == [1, 0]
