"""What the benchmark client's numbers and the server's counters mean."""

from pathlib import Path

import pytest

from paceline.pods.round.report import Counters, accept_length, counters, steady_throughput

CAPTURES = Path(__file__).parents[2] / "contract" / "captures"


def test_counters_of_the_real_server() -> None:
    assert counters((CAPTURES / "eagle3" / "metrics.txt").read_text()) == Counters(406.0, 0.0)
    assert counters((CAPTURES / "base" / "metrics.txt").read_text()) == Counters(None, 0.0)


def test_counters_are_summed_over_ranks() -> None:
    page = """\
# HELP sglang:num_retracted_requests_total Number of retracted requests.
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{tp_rank="0",note="a } b"} 2.0
sglang:num_retracted_requests_total{tp_rank="1"} 1.0
sglang:num_retracted_requests_input_tokens_total{tp_rank="1"} 900.0
"""
    assert counters(page) == Counters(None, 3.0)


def test_a_page_that_is_not_the_servers_counts_nothing() -> None:
    assert counters("Not Found") == Counters(None, None)


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


def closed_loop(*tokens: int) -> dict[str, object]:
    """Requests of so many tokens, one every second, the first after one."""
    return {"ttfts": [1.0 for _ in tokens], "itls": [[1.0] * (n - 1) for n in tokens], "output_lens": list(tokens)}


def test_one_at_a_time_is_steady_from_beginning_to_end() -> None:
    assert steady_throughput(closed_loop(4, 6, 2), concurrency=1) == pytest.approx(1.0)


def test_the_tail_is_left_out() -> None:
    """Two places: 10 and 10 tokens side by side, then 40 alone. Both places are busy for the first ten seconds."""
    assert steady_throughput(closed_loop(10, 10, 40), concurrency=2) == pytest.approx(2.0)


def test_a_token_a_step_of_several() -> None:
    """Chunks of three tokens: the tokens of a request are spread over its chunks evenly."""
    report = {"ttfts": [1.0], "itls": [[1.0, 1.0, 1.0]], "output_lens": [12]}
    assert steady_throughput(report, concurrency=1) == pytest.approx(3.0)


def test_no_requests_have_no_window() -> None:
    assert steady_throughput(closed_loop(), concurrency=4) is None
