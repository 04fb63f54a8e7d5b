"""What is read of each request of a load: goodput, lengths, and how fast a prompt was beside the baseline."""

import math
from typing import Any

import pytest

from paceline.core import Slo
from paceline.evidence import Point
from paceline.pods.round.answers import Answered, load_report
from paceline.pods.round.per_request import at, good, length_fields, request_speeds, speed_spread, with_prompt_speedups


def load(*requests: tuple[float, int, float], errors: tuple[str, ...] = (), step: int = 1) -> dict[str, Any]:
    """Of each request: seconds to the first token, tokens, seconds per further piece of `step` tokens."""
    answered = [
        Answered(
            first=first, gaps=(gap,) * (pieces := -(-(tokens - 1) // step)), whole=first + pieces * gap, tokens=tokens
        )
        for first, tokens, gap in requests
    ]
    return {**load_report(answered, 60.0), "errors": list(errors or [""] * len(requests))}


PROMPT, LATE, SLOW = (0.4, 101, 0.04), (0.6, 101, 0.04), (0.4, 11, 0.06)


@pytest.mark.parametrize(
    ("slo", "met"),
    [
        (Slo(ttft=0.5, itl=0.05), (1, 101)),
        (Slo(ttft=0.5), (2, 112)),
        (Slo(itl=0.05), (2, 202)),
        (Slo(ttft=0.4, itl=0.06), (2, 112)),  # as fast as asked for is fast enough
        (Slo(ttft=0.1), (0, 0)),
    ],
)
def test_goodput_counts_the_requests_that_met_both(slo: Slo, met: tuple[int, int]) -> None:
    assert good(load(PROMPT, LATE, SLOW), slo) == met


def test_the_time_per_token_is_a_requests_mean_whatever_comes_at_once() -> None:
    """Four tokens every 160 ms are one every 40 ms: what vLLM calls tpot, and not its itl, of pieces."""
    assert good(load((0.4, 101, 0.16), step=4), Slo(itl=0.0401)) == (1, 101)


def test_what_failed_or_is_empty_is_no_goodput() -> None:
    assert good(load(PROMPT, PROMPT, (0.1, 0, 0.0), errors=("", "HTTP 500", "")), Slo(ttft=0.5)) == (1, 101)


def test_an_answer_of_one_token_has_no_time_per_token() -> None:
    assert good(load((0.4, 1, 9.0)), Slo(itl=0.001)) == (1, 1)


@pytest.mark.parametrize(("share", "found"), [(0.0, 1), (0.1, 1), (0.11, 2), (0.5, 5), (0.9, 9), (0.99, 10)])
def test_a_percentile_is_a_value_that_was_measured(share: float, found: int) -> None:
    assert at(range(1, 11), share) == found


def test_no_values_have_no_percentile() -> None:
    assert at([], 0.5) is None


def test_lengths_are_of_prompts_and_answers() -> None:
    told = load(*[(0.1, tokens, 0.01) for tokens in (10, 30, 20)]) | {"input_lens": [700, 40, 100]}
    assert length_fields(told) == {
        "mean_input": 280.0, "p50_input": 100, "p99_input": 700, "p50_output": 20, "p99_output": 30,
    }  # fmt: skip


def test_of_a_server_that_does_not_count_prompts_nothing_is_said_of_them() -> None:
    found = length_fields(load(PROMPT))
    assert (found["mean_input"], found["p50_input"], found["p50_output"]) == (None, None, 101)


POINT = Point(workload="code@1", asked=10, completed=10, errors=0)


def test_a_mean_of_110_percent_may_be_a_tenth_of_the_prompts_at_80() -> None:
    found = with_prompt_speedups(POINT, [80.0] + [100.0 + 7 * n for n in range(9)], [100.0] * 10)
    assert (found.worst_decile, found.median_prompt, found.best_decile) == pytest.approx((0.8, 1.21, 1.49))
    assert found.slower_prompts == 0.1


def test_prompts_are_compared_by_their_place_and_not_at_all_where_one_is_missing() -> None:
    assert with_prompt_speedups(POINT, [1.0, 4.0], [2.0, 2.0]).worst_decile == 0.5
    assert with_prompt_speedups(POINT, [1.0, 4.0], [2.0]) == POINT
    assert with_prompt_speedups(POINT, [], []) == POINT
    assert request_speeds(load(PROMPT, PROMPT, errors=("", "HTTP 500"))) == ()
    assert request_speeds(load((0.4, 0, 0.0))) == ()
    assert request_speeds(load((0.5, 6, 0.1))) == pytest.approx((6.0,))


def test_how_far_apart_requests_are_is_told_of_eight_and_more() -> None:
    """Six tokens in a second, or in two: half of the logarithm of 2 around their mean, times sqrt(8 / 7)."""
    fast, slow = (0.5, 6, 0.1), (1.0, 6, 0.2)
    assert speed_spread(load(*[fast] * 4, *[slow] * 4)) == pytest.approx(math.log(2) / 2 * math.sqrt(8 / 7))
    assert speed_spread(load(*[fast] * 8)) == pytest.approx(0.0)
    assert speed_spread(load(*[fast] * 7)) is None
    assert speed_spread(load(*[fast] * 8, errors=("",) * 7 + ("HTTP 500",))) is None
