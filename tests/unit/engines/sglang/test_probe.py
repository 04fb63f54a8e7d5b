"""What SGLang's pages say of its speculation."""

import json
from pathlib import Path

import pytest

from paceline.engines import ENGINES, Scrape, Speculation
from paceline.engines.sglang.probe import accept_length

CAPTURES = Path(__file__).parents[3] / "contract" / "captures"
PROBE = ENGINES["SGLang"].probe("0.5.23")
START = Scrape(pages={"/metrics": "", "/server_info": "{}"})


def scrape(metrics: str, *states: dict[str, float]) -> Scrape:
    return Scrape(pages={"/metrics": metrics, "/server_info": json.dumps({"internal_states": states})})


def captured(name: str) -> Scrape:
    return scrape((CAPTURES / name / "metrics.txt").read_text())


def test_counters_of_the_real_server() -> None:
    assert PROBE.speculation(START, captured("eagle3")) == Speculation(verify_calls=406, retractions=0)
    assert PROBE.speculation(START, captured("base")) == Speculation(retractions=0)


def test_only_what_was_added_since_counts() -> None:
    before = scrape("sglang:spec_verify_calls_total 40.0\n", {"avg_spec_accept_length": 1.0})
    after = scrape("sglang:spec_verify_calls_total 245.0\n", {"avg_spec_accept_length": 2.81})
    assert PROBE.speculation(before, after) == Speculation(accept_length=2.81, verify_calls=205, retractions=0)


def test_counters_are_summed_over_ranks() -> None:
    page = """\
# HELP sglang:num_retracted_requests_total Number of retracted requests.
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{tp_rank="0",note="a } b"} 2.0
sglang:num_retracted_requests_total{tp_rank="1"} 1.0
sglang:num_retracted_requests_input_tokens_total{tp_rank="1"} 900.0
"""
    assert PROBE.speculation(START, scrape(page)).retractions == 3


def test_a_page_that_is_not_the_servers_counts_nothing() -> None:
    assert PROBE.speculation(START, scrape("Not Found")) == Speculation()


@pytest.mark.parametrize(
    ("states", "length"),
    [
        ([{"avg_spec_accept_length": 2.5}], 2.5),
        ([{"avg_spec_accept_length": 2.5}, {"avg_spec_accept_length": 3.5}], 3.0),
        ([{}], None),
        ([], None),
        (None, None),
    ],
)
def test_acceptance_length(states: object, length: float | None) -> None:
    assert accept_length({"internal_states": states}) == length


def test_0_4_5_says_everything_at_one_level() -> None:
    probe = ENGINES["SGLang"].probe("0.4.5")
    info = json.dumps({"page_size": 1, "avg_spec_accept_length": 2.5})
    seen = Scrape(pages={"/metrics": "sglang:gen_throughput 1.0\n", "/get_server_info": info})
    assert probe.speculation(seen, seen) == Speculation(accept_length=2.5)
    assert probe.resolved(seen)["decode_attention_backend"] is None


def test_0_5_6_counts_retractions_in_a_histogram() -> None:
    probe = ENGINES["SGLang"].probe("0.5.6")
    before = scrape("sglang:num_retractions_sum 1.0\n")
    assert probe.speculation(before, scrape("sglang:num_retractions_sum 3.0\n")).retractions == 2


def test_0_5_17_counts_as_0_5_23_does() -> None:
    probe = ENGINES["SGLang"].probe("0.5.17")
    counted = "sglang:spec_verify_calls_total {calls}\nsglang:num_retracted_requests_total {retracted}\n"
    read = probe.speculation(scrape(counted.format(calls=1, retracted=1)), scrape(counted.format(calls=9, retracted=3)))
    assert (read.verify_calls, read.retractions) == (8, 2)
    assert (probe.histogram, probe.unseen) == (None, ("accepted_at",))


def test_gemmas_assistant_runs_as_what_was_asked() -> None:
    said = Scrape(pages={"/metrics": "", "/server_info": json.dumps({"speculative_algorithm": "FROZEN_KV_MTP"})})
    assert PROBE.resolved(said)["speculative_algorithm"] == "EAGLE"
