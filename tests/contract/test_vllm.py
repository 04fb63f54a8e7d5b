"""What is read of a vLLM, what it counts and how fast it is: the emulated one against captures of the real one and what
its wheel says."""

import dataclasses
import json
import re
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.contract import vllm_facts as facts
from tests.contract.make_vllm_profiles import PUBLISHED, STEPS, gb10
from tests.contract.vllm_running import EAGLE3, PATIENCE, Serve

import paceline_emulator
from paceline.engines import ENGINES
from paceline.engines import probe as pages
from paceline.engines.vllm.arguments import COMPARED
from paceline.engines.vllm.probe import (
    ACCEPTED,
    ACCEPTED_AT,
    CACHE_CONFIG,
    CONFIGURATION,
    DRAFTS,
    OF_THE_CACHE,
    PREEMPTIONS,
    body,
    outermost_fields,
)
from paceline_emulator import profile
from paceline_emulator.positions import by_position

PROBE = ENGINES["vLLM"].probe("0.33.0")
DATA = Path(paceline_emulator.__file__).parent / "vllm" / "data"

# What is read of a server


def test_what_a_round_reads_is_there() -> None:
    assert {DRAFTS, ACCEPTED, ACCEPTED_AT, PREEMPTIONS, CACHE_CONFIG} <= set(facts.METRICS)
    assert set(OF_THE_CACHE) <= facts.METRICS[CACHE_CONFIG][1]
    said = {*facts.FIELDS, *OF_THE_CACHE}
    assert set(COMPARED) <= said


def test_metrics_that_are_read_have_the_names_types_and_labels_of_the_wheel(serve: Serve) -> None:
    server = serve(speculative=EAGLE3).ready()
    page = server.ask("/metrics")[1]
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    read = facts.METRICS
    assert {name: types[name] for name in read} == {name: kind for name, (kind, _, _) in read.items()}
    for sample in server.samples():
        if sample.name in read:
            assert set(sample.labels) == labels(sample.name) or sample.name in facts.UNNAMED, sample.name
    reasons = {one.labels["finished_reason"] for one in server.samples() if one.name == "vllm:request_success_total"}
    assert reasons == facts.REASONS


def labels(name: str) -> set[str]:
    common = {"engine"} if name in facts.UNNAMED else facts.COMMON
    return set(common | facts.METRICS[name][1])


@pytest.mark.parametrize("arm", ["base", "eagle3"])
def test_a_real_server_has_these_types_and_labels(arm: str) -> None:
    page = (facts.CAPTURES / arm / "metrics_start.txt").read_text()
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.MULTILINE))
    there = set(facts.METRICS) - (facts.OF_SPECULATION if arm == "base" else set())
    assert {name: types[name] for name in there} == {name: facts.METRICS[name][0] for name in there}
    assert not facts.OF_SPECULATION & set(types) or arm == "eagle3"
    found = list(pages.samples(page))
    for sample in found:
        if sample.name in there:
            real = set(sample.labels)
            assert labels(sample.name) == real or (sample.name in facts.UNNAMED and labels(sample.name) < real)
    assert {one.labels["finished_reason"] for one in found if one.name == "vllm:request_success_total"} == facts.REASONS


# What is read of a real one


def captured(arm: str, page: str) -> pages.Scrape:
    version = json.dumps({"version": "0.33.0"})
    metrics, log = (facts.CAPTURES / arm / name for name in (f"{page}.txt", "start.log"))
    return pages.Scrape(pages={"/version": version, "/metrics": metrics.read_text()}, log=log.read_text())


@pytest.mark.parametrize(("arm", "tokens"), [("base", 524_288), ("eagle3", 465_920)])
def test_what_the_cache_of_a_real_server_holds(arm: str, tokens: int) -> None:
    """On a CPU, where its log says `CPU KV cache size`; in both of its places."""
    scrape = captured(arm, "metrics")
    assert PROBE.kv_tokens(scrape) == tokens
    assert PROBE.kv_tokens(dataclasses.replace(scrape, pages={**scrape.pages, "/metrics": ""})) == tokens


def test_what_a_real_server_says_it_runs_with() -> None:
    said = PROBE.resolved(captured("eagle3", "metrics"))
    assert set(COMPARED) <= set(said)
    assert (said["method"], said["num_spec_tokens"], said["draft_positions"]) == ("eagle3", 3, 3)
    configured = CONFIGURATION.search(captured("eagle3", "metrics").log)
    assert configured
    assert tuple(outermost_fields(configured["fields"])) == facts.FIELDS


def test_what_a_real_server_counts() -> None:
    """Of a head with random weights: nothing is accepted."""
    before, after = captured("eagle3", "metrics_start"), captured("eagle3", "metrics")
    assert PROBE.work(before, after) == pages.Work(requests=15, prompt_tokens=473, cached_tokens=0)
    seen = PROBE.speculation(before, after)
    assert (seen.accept_length, seen.verify_calls, seen.retractions) == (1.0, 297, 0)
    assert seen.accepted_at == (0.0, 0.0, 0.0)


GENERATED = "vllm:generation_tokens_total"


@pytest.mark.parametrize(("arm", "generated"), [("base", 18), ("eagle3", 14)])
def test_of_a_client_that_has_left_a_real_server_counts_the_tokens_and_no_request(arm: str, generated: int) -> None:
    before, after = captured(arm, "metrics"), captured(arm, "metrics_after_abort")
    assert PROBE.work(before, after) == pages.Work(requests=0, prompt_tokens=39, cached_tokens=0)
    then, now = (pages.totals(scrape.pages["/metrics"])[GENERATED] for scrape in (before, after))
    assert now - then == generated


def test_counters_of_speculation_are_there_from_the_start_and_only_with_it(serve: Serve) -> None:
    base, four = serve(), serve(speculative=EAGLE3)
    assert not {sample.name for sample in base.ready().samples()} & facts.OF_SPECULATION
    found = [sample for sample in four.ready().samples() if sample.name in facts.OF_SPECULATION]
    assert {sample.name for sample in found} == facts.OF_SPECULATION
    assert {sample.value for sample in found} == {0.0}
    assert sorted(sample.labels["position"] for sample in found if "position" in sample.labels) == ["0", "1", "2", "3"]


def test_the_start_log_names_its_fields_as_the_wheel_does(serve: Serve) -> None:
    server = serve(speculative=EAGLE3)
    assert server.process.stderr
    asked, line = server.process.stderr.readline(), server.process.stderr.readline()
    assert "non-default args: {" in asked
    configured = CONFIGURATION.search(line)
    assert configured
    found = list(outermost_fields(configured["fields"]))
    assert found == [name for name in facts.FIELDS if name in found]
    assert set(COMPARED) - set(OF_THE_CACHE) <= set(found)


# What it counts


def test_counters_agree_with_what_clients_got(serve: Serve) -> None:
    server = serve(speculative=EAGLE3).ready()
    got = [json.loads(server.chat(f"prompt {number}")[1])["usage"]["completion_tokens"] for number in range(5)]
    assert server.total("vllm:generation_tokens_total") == sum(got)
    drafts, accepted = server.total(DRAFTS), server.total(ACCEPTED)
    assert server.total("vllm:spec_decode_num_draft_tokens_total") == 4 * drafts
    assert server.total(ACCEPTED_AT) == accepted
    # A request's first token is not a draft's; what a last draft yields beyond the end is counted.
    assert 0 <= drafts + accepted - (sum(got) - len(got)) <= 4 * len(got)


def test_counters_grow_while_a_request_runs_and_one_whose_client_left_is_no_request(serve: Serve) -> None:
    """As captured of the real one, above."""
    server = serve(speculative=EAGLE3).ready()
    body = {"model": "pair", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 20000, "stream": True}
    asked = {"Content-Type": "application/json"}
    request = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(body).encode(), asked)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        for _ in range(8):
            answer.readline()
        grown = [server.total(name) for name in (GENERATED, DRAFTS, "vllm:prompt_tokens_total")]
        assert all(grown)
    deadline = time.monotonic() + PATIENCE
    while server.total("vllm:num_requests_running"):
        assert time.monotonic() < deadline
    assert server.total("vllm:request_success_total") == 0
    assert server.total("vllm:prompt_tokens_total") == grown[2]
    assert server.chat()[0] == 200
    assert server.total("vllm:request_success_total") == 1


def test_a_later_position_is_accepted_no_more_often_than_an_earlier_one(serve: Serve) -> None:
    server = serve(speculative=EAGLE3).ready()
    for _ in range(3):
        server.chat()
        at = [sample.value for sample in server.samples() if sample.name == ACCEPTED_AT]
        assert at == sorted(at, reverse=True)
        assert sum(at) == server.total(ACCEPTED)
        assert at[0] <= server.total(DRAFTS)


@pytest.mark.parametrize(
    ("accepted", "verify_calls", "shares"),
    [(0, 100, [0, 0, 0, 0]), (400, 100, [100, 100, 100, 100]), (150, 100, [64, 42, 27, 17]), (3, 1, [1, 1, 1, 0])],
)
def test_what_a_request_accepted_is_spread_over_positions(accepted: int, verify_calls: int, shares: list[int]) -> None:
    """With the one probability a token that gives so many."""
    assert by_position(accepted, verify_calls, 4) == shares


def test_wherever_it_is_spread_nothing_is_lost() -> None:
    for positions in (1, 2, 5, 16):
        for verify_calls in range(1, 40):
            for accepted in range(verify_calls * positions + 1):
                shares = by_position(accepted, verify_calls, positions)
                assert (len(shares), sum(shares)) == (positions, accepted)
                assert verify_calls >= shares[0]
                assert shares == sorted(shares, reverse=True)
                assert shares[-1] >= 0


def test_a_salt_shuts_off_what_the_cache_holds(serve: Serve) -> None:
    server = serve().ready()
    text = "a prompt of more than one block " * 10
    hits = []
    for salt in ("code-1", "code-1", "code-8"):
        before = server.total("vllm:prefix_cache_hits_total")
        assert server.chat(text, cache_salt=salt)[0] == 200
        hits.append(server.total("vllm:prefix_cache_hits_total") - before > 0)
    assert hits == [False, True, False]


def test_a_workloads_own_name_is_no_salt(serve: Serve) -> None:
    """`code@1` has a character that vLLM refuses; what the round sends instead is taken."""
    server = serve().ready()
    assert server.chat(cache_salt="code@1")[0] == 400
    assert server.chat(**body("code-1-warm-up"))[0] == 200


# Streams


def test_a_stream_has_usage_only_where_it_was_asked_for(serve: Serve) -> None:
    server = serve(speculative=EAGLE3).ready()
    plain = server.chat(stream=True)[1]
    counted = server.chat(stream=True, stream_options={"include_usage": True})[1]
    assert "usage" not in plain
    events = [json.loads(line.removeprefix("data: ")) for line in counted.splitlines() if line.startswith("data: {")]
    assert events[-1]["usage"]["completion_tokens"] == 24
    assert len(events) < 24, "a chunk of a speculating server holds more than one token"
    assert counted.endswith("data: [DONE]\n\n")


# Pages and keys


def test_pages(serve: Serve) -> None:
    server = serve("--max-model-len", "32k").ready()
    assert json.loads(server.ask("/version")[1]) == {"version": "0.33.0+emulated"}
    (card,) = json.loads(server.ask("/v1/models")[1])["data"]
    assert (card["id"], card["max_model_len"], card["owned_by"]) == ("pair", 32000, "vllm")
    for path in ("/server_info", "/reset_prefix_cache"):  # entrypoints/launchers/api_server/routers.py:46
        assert server.ask(path)[0] == 404


def test_a_key_guards_v1_alone(serve: Serve) -> None:
    server = serve(VLLM_API_KEY="sk-1").ready()
    assert [server.ask(path)[0] for path in ("/health", "/version", "/metrics", "/v1/models")] == [200, 200, 200, 401]
    assert server.chat()[0] == 401
    assert server.ask("/v1/models", Authorization="Bearer sk-1")[0] == 200


def test_another_model_is_not_found(serve: Serve) -> None:
    assert serve().ready().chat(model="other")[0] == 404


# Speed


def test_the_published_throughputs() -> None:
    found = profile.read(json.loads((DATA / "profiles" / "qwen3-coder-30b-gb10.json").read_text()))
    chain = profile.Shape(steps=STEPS, branches=1, width=STEPS + 1)
    for name, shape in {"baseline": None, "speculative": chain}.items():
        pace = profile.pace(found.datasets["code"], shape)
        assert {batch: pace.throughput(batch) for batch in (1, 8)} == pytest.approx(PUBLISHED[name])


def test_the_profile_is_current() -> None:
    made = json.loads(json.dumps(gb10()))
    assert json.loads((DATA / "profiles" / f"{made['name']}.json").read_text()) == made
