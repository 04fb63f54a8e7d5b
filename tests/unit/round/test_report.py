"""What the client's numbers mean."""

import heapq
import random
from collections.abc import Sequence
from typing import Any

import pytest

from paceline.pods.round.answers import Answered, load_report
from paceline.pods.round.report import Steady, kept_rate, steady


def closed_loop(places: int, *answers: int | tuple[int, Sequence[float]], pause: float = 0.0) -> dict[str, Any]:
    """Answers of so many tokens, one every second, or of so many tokens in pieces after these times. Each place sends
    its next request `pause` seconds after an answer."""
    free, sent = [0.0] * places, []
    for answer in answers:
        tokens, came = (answer, [1.0] * answer) if isinstance(answer, int) else answer
        start = heapq.heappop(free)
        whole = sum(came)
        sent.append(Answered(start=start, first=came[0], gaps=tuple(came[1:]), whole=whole, tokens=tokens))
        heapq.heappush(free, start + whole + pause)
    return load_report(sent, max((one.start + one.whole for one in sent), default=0.0))


def test_one_at_a_time_is_steady_from_beginning_to_end() -> None:
    assert steady(closed_loop(1, 4, 6, 2), concurrency=1) == Steady(throughput=1.0, concurrency=1.0)


def test_the_tail_is_left_out() -> None:
    """Two places: 10 and 10 tokens side by side, then 40 alone. Both places are busy for the first ten seconds."""
    assert steady(closed_loop(2, 10, 10, 40), concurrency=2) == Steady(throughput=2.0, concurrency=2.0)


def test_nine_places_of_ten_are_steady_enough_and_the_evidence_says_how_many_there_were() -> None:
    """Ten requests of 10 tokens, the tenth of 5 alone: after five seconds nine places are taken."""
    found = steady(closed_loop(10, *[10] * 9, 5), concurrency=10)
    assert found
    assert (found.throughput, found.concurrency) == pytest.approx((9.5, 9.5))


def test_a_token_a_step_of_several() -> None:
    """Chunks of three tokens: the tokens of a request are spread over its chunks evenly."""
    assert steady(closed_loop(1, (12, [1.0] * 4)), concurrency=1) == Steady(throughput=3.0, concurrency=1.0)


def test_how_many_tokens_a_piece_has_is_of_all_answers() -> None:
    """Two places, a piece every second in each. Three answers of 10 pieces of 4 tokens, and one of 30 of a token each:
    the window ends after 20 seconds, with 40 of its pieces' 60 and 130 of the 150 tokens."""
    found = steady(closed_loop(2, *[(40, [1.0] * 10)] * 3, 30), concurrency=2)
    assert found
    assert found.throughput == pytest.approx(2 * 150 / 60)


def test_one_answer_that_begins_late_moves_nothing_else() -> None:
    """Ten places and a piece a second in each. One of the first requests gets its first piece when all is over."""
    late = (100, [700.0] + [1.0] * 99)
    found = steady(closed_loop(10, *[100] * 3, late, *[100] * 45, 200), concurrency=10)
    assert found
    assert found.throughput == pytest.approx(9.0)


def test_pieces_that_come_at_one_moment_have_a_rate_too() -> None:
    firsts = [1e-9, 0.0, 0.2, 0.1, 0.2]
    pieces = [[30.0, 30.0, 0.0, 0.1], [1.0, 1e-9, 0.0, 0.1]]
    found = steady(closed_loop(4, *((1, [first]) for first in firsts), *((4, came) for came in pieces)), concurrency=4)
    assert found is None or 0 < found.throughput < 1000


def test_what_the_client_took_between_requests_is_in_the_throughput_and_in_the_concurrency() -> None:
    """Four requests of 10 tokens, two at a time, and a second between an answer and the next request."""
    found = steady(closed_loop(2, 10, 10, 10, 10, pause=1.0), concurrency=2)
    assert found
    assert (found.throughput, found.concurrency) == pytest.approx((40 / 21, 2 * 20 / 21))


def test_the_window_begins_when_nine_places_of_ten_are_taken() -> None:
    """The tenth request is sent late, by a client that was busy: the window has begun by then."""
    sent = [Answered(start=0.1 * n, first=1.0, gaps=(1.0,) * 9, whole=10.0, tokens=10) for n in range(9)]
    late = Answered(start=8.0, first=1.0, gaps=(1.0,) * 9, whole=10.0, tokens=10)
    found = steady(load_report([*sent, late], 18.0), concurrency=10)
    assert found
    assert found.concurrency == pytest.approx((9 * (10.0 - 0.8) + (10.0 - 8.0)) / (10.1 - 0.8), rel=0.02)


def test_no_requests_have_no_window() -> None:
    assert steady(closed_loop(4), concurrency=4) is None


def arrived(growth: float, requests: int = 400) -> dict[str, object]:
    """Answers of 100 to 300 tokens at 50 a second, each `growth` seconds later than the one before, and some noise."""
    dice = random.Random(4)
    lengths = [dice.randint(100, 300) for _ in range(requests)]
    times = [n / 50 + growth * i + dice.gauss(0, 0.5) for i, n in enumerate(lengths)]
    sent = zip(times, lengths, strict=True)
    return load_report([Answered(first=time, whole=time, tokens=length) for time, length in sent], 60.0)


@pytest.mark.parametrize(
    ("growth", "kept"),
    [
        (0.0, 8.0),
        (-0.01, 8.0),  # the queue of the beginning is worked off: no more is kept than came
        (1 / 72, 7.2),  # one request every 1/8 + 1/72 seconds leaves it
        (1 / 8, 4.0),
    ],
)
def test_the_rate_that_is_kept_follows_from_how_much_longer_each_request_takes(growth: float, kept: float) -> None:
    assert kept_rate(arrived(growth), 8.0) == pytest.approx(kept, rel=0.02)


def test_of_few_requests_that_all_differ_nothing_is_said_to_be_late() -> None:
    """Sixteen answers, half a second up or down: a growth of a tenth of their spread is none that was shown."""
    assert kept_rate(arrived(0.01, requests=16), 8.0) == pytest.approx(8.0, rel=0.05)
    assert kept_rate(arrived(0.01, requests=15), 8.0) is not None
    assert kept_rate(arrived(0.01, requests=14), 8.0) is None


def test_of_answers_that_each_are_longer_by_as_much_nothing_is_said_of_the_rate() -> None:
    """Order and length are one and the same there: neither is to be blamed."""
    sent = [Answered(first=0.1, gaps=(0.1,), whole=0.2, tokens=length) for length in range(10, 26)]
    assert kept_rate(load_report(sent, 60.0), 2.0) == 2.0
