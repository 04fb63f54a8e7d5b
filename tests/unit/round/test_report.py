"""What the benchmark client's numbers mean."""

import pytest

from paceline.pods.round.report import steady_throughput


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
