"""The emulator beside captures of the real SGLang 0.5.23: the same metrics, and the same keys in every JSON answer."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.running import Running, emulated, events, tree

from paceline.pods.round.parity import read_answer

CAPTURES = Path(__file__).parent / "captures"
ARMS = ("base", "ngram", "eagle", "eagle3")

CHAT = {"model": "m", "messages": [{"role": "user", "content": "What is a mutex?"}], "max_tokens": 48}

# Seen in one capture and not in another only because of what was asked before it was taken.
BY_USE = {
    "sglang:get_loads_duration_seconds",
    "sglang:cached_tokens_total",
    "sglang:inter_token_latency_seconds",
}


@pytest.fixture(scope="module", params=ARMS)
def arm(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(arm: str, target: str, head: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of the capture's kind after requests of every kind, two of them alike."""
    flags = {
        "base": (),
        "ngram": ("--speculative-algorithm", "NGRAM", "--speculative-num-draft-tokens", "4"),
        "eagle": tree(head, 3, 1, 4, "EAGLE"),
        "eagle3": tree(head, 3, 1, 4),
    }[arm]
    with emulated(target, tmp_path_factory.mktemp(arm) / "log", "--decode-log-interval", "5", *flags) as running:
        for path, body in (
            ("/v1/chat/completions", CHAT),
            ("/v1/chat/completions", {**CHAT, "stream": True}),
            ("/v1/completions", {"prompt": "def f(", "max_tokens": 8, "stream": True}),
            ("/generate", {"text": "abc", "sampling_params": {"max_new_tokens": 4}}),
        ):
            assert running.post(path, body).status == 200
        running.get("/v1/loads")
        yield running


def captured(arm: str, name: str) -> Any:
    return json.loads((CAPTURES / arm / name).read_text())


def families(text: str) -> dict[str, tuple[str, frozenset[tuple[str, ...]]]]:
    """Metric → its type and the sets of label names of its samples."""
    types: dict[str, str] = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    labels: dict[str, set[tuple[str, ...]]] = {name: set() for name in types}
    for sample, inside in re.findall(r"^([\w:]+)(?:\{(.*)\})? \S+$", text, re.M):
        name = sample if sample in types else re.sub(r"_(bucket|sum|count)$", "", sample)
        labels[name].add(tuple(re.findall(r'(\w+)="', inside)))
    return {name: (kind, frozenset(labels[name])) for name, kind in types.items()}


def test_metrics_have_the_same_names_types_and_labels(arm: str, server: Running) -> None:
    real = families((CAPTURES / arm / "metrics.txt").read_text())
    ours = families(server.get("/metrics").text)
    assert set(real) ^ set(ours) <= BY_USE
    assert {name: ours[name] for name in real if name in ours} == {name: real[name] for name in real if name in ours}


def test_histograms_have_the_same_buckets(arm: str, server: Running) -> None:
    def buckets(text: str) -> set[tuple[str, str]]:
        return set(re.findall(r'^([\w:]+)_bucket\{.*?le="([^"]+)"', text, re.M))

    real = buckets((CAPTURES / arm / "metrics.txt").read_text())
    missing = real - buckets(server.get("/metrics").text)
    assert {name for name, _ in missing} <= BY_USE


STEP = re.compile(r"\[[^]]*\] (Prefill batch|Decode batch|The server is fired up)")


def kinds(log: str) -> set[str]:
    """Lines of steps and of the start, without numbers. A GPU's graph has another name than a CPU's, and is used."""
    told = [line for line in log.splitlines() if STEP.match(line)]
    return {re.sub(r"\d+(\.\d+)?", "0", re.sub(r"(cpu|cuda) graph: \w+", "graph", line)) for line in told}


def test_its_log_tells_of_steps_as_that_of_the_real_one(arm: str, server: Running) -> None:
    """Of `eagle` none was captured: it speculates as eagle3 does."""
    real = (CAPTURES / ("eagle3" if arm == "eagle" else arm) / "steps.log").read_text()
    assert kinds(server.log.read_text()) == kinds(real)
    assert len(kinds(real)) == 3


def test_server_info_has_the_same_keys(arm: str, server: Running) -> None:
    real, ours = captured(arm, "server_info.json"), server.get("/server_info").json
    assert set(ours) == set(real)
    # Whether a length is there depends on whether a whole report was made before the capture.
    state_keys = set(ours["internal_states"][0]) ^ set(real["internal_states"][0])
    assert state_keys <= {"avg_spec_accept_length"}
    assert ("avg_spec_accept_length" in ours["internal_states"][0]) == (arm != "base")


def test_server_info_resolves_speculation_as_the_real_one(arm: str, server: Running) -> None:
    real, ours = captured(arm, "server_info.json"), server.get("/server_info").json
    keys = ("algorithm", "num_steps", "eagle_topk", "num_draft_tokens", "draft_model_revision")
    assert [ours[f"speculative_{key}"] for key in keys] == [real[f"speculative_{key}"] for key in keys]
    assert ours["version"] == f"{real['version']}+emulated"
    assert ours["status"] == real["status"] == "ready"


@pytest.mark.parametrize("name", ["model_info", "v1_models", "v1_loads"])
def test_other_answers_have_the_same_keys(arm: str, server: Running, name: str) -> None:
    real = captured(arm, f"{name}.json")
    ours = server.get("/" + name.replace("v1_", "v1/")).json
    if arm == "eagle":  # captured before its first report
        ours.get("loads", [{}])[0].pop("speculative", None)
    assert shape(ours) == shape(real)


def shape(value: Any) -> Any:
    """Keys, in depth; lists by their first entry."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [shape(value[0])]
    return None


def test_answers_to_requests_have_the_same_keys(arm: str, server: Running) -> None:
    chat = server.post("/v1/chat/completions", CHAT).json
    assert shape(chat) == shape(captured("base", "chat.json"))
    generated = server.post("/generate", {"text": "a b c", "sampling_params": {"max_new_tokens": 4}}).json
    generated["meta_info"] = {key: v for key, v in generated["meta_info"].items() if not key.startswith("spec_")}
    assert shape(generated) == shape(captured("base", "generate.json"))


LOGPROBS = {**CHAT, "max_tokens": 12, "temperature": 0, "logprobs": True, "top_logprobs": 5}


def test_logprobs_are_written_as_the_real_ones(server: Running) -> None:
    ours = server.post("/v1/chat/completions", LOGPROBS).json
    real = captured("base", "chat_logprobs.json")
    assert shape(ours) == shape(real)
    for answer in (ours, real):
        listed = answer["choices"][0]["logprobs"]["content"]
        assert len(listed) == answer["usage"]["completion_tokens"] == 12
        for entry in listed:
            top = entry["top_logprobs"]
            assert len(top) == 5
            assert top[0] == {key: entry[key] for key in ("token", "bytes", "logprob")}
            assert [one["logprob"] for one in top] == sorted((one["logprob"] for one in top), reverse=True)
    assert "".join(one["token"] for one in ours["choices"][0]["logprobs"]["content"]) == read_answer(ours).text


def test_a_rounds_client_reads_the_real_ones() -> None:
    """Of a model with random weights, whose tokens are pieces of characters as often as not."""
    answer = read_answer(captured("base", "chat_logprobs.json"))
    assert (answer.cut, len(answer.tokens)) == (True, 12)
    pieces = [one.chosen for one in answer.tokens if one.chosen.text == "\ufffd"]
    assert pieces
    assert all(one.bytes and len(one.bytes) == 1 for one in pieces)


def test_streamed_completion_is_written_as_the_real_one(server: Running) -> None:
    body = {"model": "x", "prompt": "ab", "max_tokens": 4, "stream": True, "stream_options": {"include_usage": True}}
    ours = server.post("/v1/completions", body).text
    real = (CAPTURES / "base" / "completions_stream.txt").read_text()
    assert {json.dumps(shape(event)) for event in events(ours)} == {json.dumps(shape(event)) for event in events(real)}
    assert events(ours)[-1]["usage"]["completion_tokens"] == events(real)[-1]["usage"]["completion_tokens"] == 4
    assert events(ours)[-2]["choices"][0]["finish_reason"] == "length"
    assert ours.endswith("data: [DONE]\n\n")


def test_streamed_chat_says_its_role_first_and_why_it_ended_last(server: Running) -> None:
    found = events(server.post("/v1/chat/completions", {**CHAT, "stream": True}).text)
    assert found[0]["choices"][0]["delta"] == {"reasoning_content": None, "role": "assistant", "content": ""}
    text = "".join(event["choices"][0]["delta"].get("content", "") for event in found)
    assert text == server.post("/v1/chat/completions", CHAT).json["choices"][0]["message"]["content"]
    assert found[-1]["choices"][0]["finish_reason"] == "length"
