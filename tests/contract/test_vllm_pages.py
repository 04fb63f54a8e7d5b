"""Every page of the emulated vLLM against that of the real 0.33.0, and which of its routes and metrics there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.contract import answers
from tests.contract import vllm_facts as facts
from tests.contract.vllm_running import EAGLE3, Serve, Vllm

from paceline.engines import probe as pages

ANSWERS = {answers.name(row): row for row in answers.rows(facts.CAPTURES / "answers.jsonl")}
CHAT = ANSWERS["chat"]["body"]
NAME = ("--served-model-name", "models/target", "--max-model-len", "2048")
THREE = {**EAGLE3, "num_speculative_tokens": 3}


@pytest.fixture
def named(serve: Serve) -> Vllm:
    return serve(*NAME).ready()


def test_it_answers_as_the_real_one(named: Vllm) -> None:
    for row in ANSWERS.values():
        if row["name"] != "unauthorized":
            answers.compare(named.url, row)


def test_a_speculating_server_answers_as_the_real_one(serve: Serve) -> None:
    """Its captures were the same but for how many tokens a chunk holds."""
    url = serve(*NAME, speculative=THREE).ready().url
    for name in ("chat", "chat_logprobs", "chat_stream", "min_p", "completions_logprobs", "refused_salt"):
        answers.compare(url, ANSWERS[name])


def test_without_the_key_it_answers_as_the_real_one(serve: Serve) -> None:
    answers.compare(serve(*NAME, VLLM_API_KEY="sk-1").ready().url, ANSWERS["unauthorized"])


@pytest.mark.parametrize(
    ("sampling", "status"),
    [
        ({"min_p": 0.1, "temperature": 0}, 200),
        ({"min_p": 0.1, "temperature": 0.7}, 400),
        ({"min_p": 0.1}, 400),
        ({"logit_bias": {"5": 1}, "temperature": 0.7}, 400),
    ],
)
def test_what_does_not_go_with_speculation_is_refused_where_it_is_sampled(
    serve: Serve, sampling: dict[str, object], status: int
) -> None:
    body = {key: value for key, value in CHAT.items() if key != "temperature"}
    for speculative, expected in ((None, 200), (THREE, status)):
        server = serve(*NAME, speculative=speculative).ready()
        found, text = server.ask("/v1/chat/completions", {**body, **sampling})
        assert found == expected, text


def test_an_answer_ends_with_the_context(serve: Serve) -> None:
    """Where prompt and answer do not fit together the answer is cut short, and nobody is told. A prompt that does not
    fit by itself is refused."""
    server = serve(*NAME[:2], "--max-model-len", "60").ready()
    body = {**CHAT, "max_tokens": 50}
    usage = json.loads(server.ask("/v1/chat/completions", body)[1])["usage"]
    assert usage["total_tokens"] == 60 < usage["prompt_tokens"] + 50
    status, text = server.ask("/v1/chat/completions", {**body, "messages": [{"role": "user", "content": "x" * 400}]})
    assert (status, json.loads(text)["error"]["param"]) == (400, "input_tokens")


def test_every_route_of_the_real_one_is_there_or_left_out_on_purpose(named: Vllm) -> None:
    log = (facts.CAPTURES / "base" / "routes.log").read_text()
    real = {
        (method, path)
        for path, methods in re.findall(r"Route: (\S+), Methods: (.*)", log)
        for method in methods.split(", ")
        if method != "HEAD"
    }
    assert len(real) == 36
    answered = {(method, path) for method, path in real if named.ask(path, {} if method == "POST" else None)[0] != 404}
    assert real - answered == facts.LEFT_OUT


def series(page: str) -> Iterator[tuple[str, frozenset[tuple[str, str]]]]:
    """Name and labels of every sample, the bounds of buckets included."""
    for sample in pages.samples(page):
        yield sample.name, frozenset(sample.labels.items())


def test_every_metric_of_the_real_one_is_there(serve: Serve) -> None:
    """Name, type, help, labels, buckets and order, and the type of the page (uvicorn's header of the captured one); of
    the cache's configuration the values are its own."""
    real = (facts.CAPTURES / "eagle3" / "metrics_start.txt").read_text()
    real = "\n".join(line for line in real.splitlines() if "vllm:" in line)
    url = serve(*NAME, speculative=THREE).ready().url
    status, kind, page = answers.asked(url, {"method": "GET", "path": "/metrics"})
    assert (status, kind) == (200, "text/plain; version=1.0.0; charset=utf-8")
    found, expected = ([line for line in text.splitlines() if line.startswith("#")] for text in (page, real))
    assert found == expected
    ours, theirs = (list(series(text)) for text in (page, real))
    assert [name for name, _ in ours] == [name for name, _ in theirs]
    config = {"vllm:cache_config_info"}
    assert [one for one in ours if one[0] not in config] == [one for one in theirs if one[0] not in config]
    keys = [{key for key, _ in labels} for name, labels in (*ours, *theirs) if name in config]
    assert keys[0] == keys[1]
    assert len(keys[0]) == 38


def test_histograms_hold_every_request(named: Vllm) -> None:
    for _ in range(3):
        assert named.ask("/v1/chat/completions", CHAT)[0] == 200
    assert named.total("vllm:e2e_request_latency_seconds_count") == 3
    assert named.total("vllm:time_to_first_token_seconds_count") == 3
    assert named.total("vllm:request_generation_tokens_sum") == 3 * 24
    assert named.total("vllm:inter_token_latency_seconds_count") == 3 * 23, "one a step"
    whole, parts = (
        [named.total(f"vllm:{part}_seconds_sum") for part in found]
        for found in (
            ["e2e_request_latency"],
            ["request_queue_time", "request_prefill_time", "request_decode_time"],
        )
    )
    assert sum(parts) == pytest.approx(whole[0])


def test_the_load_is_counted_where_it_is_asked_for(serve: Serve) -> None:
    assert json.loads(serve("--enable-server-load-tracking").ready().ask("/load")[1]) == {"server_load": 0}


def test_a_request_has_a_line_as_the_real_one_writes_it(named: Vllm) -> None:
    named.ask("/nowhere")
    assert named.process.stderr
    line = next(line for line in named.process.stderr if "/nowhere" in line)
    assert re.fullmatch(r'INFO:     127\.0\.0\.1:\d+ - "GET /nowhere HTTP/1\.1" 404 Not Found\n', line)


def test_captures_hold_no_place_of_a_machine() -> None:
    for path in Path(facts.CAPTURES).rglob("*"):
        assert path.is_dir() or not re.search(r"/(home|work|root|tmp)/", path.read_text()), path
