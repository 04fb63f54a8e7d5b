"""The decode loop on a clock that the tests hold."""

import heapq
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline_emulator.engine import HOLD, Engine, Request
from paceline_emulator.profile import Pace

SLOW = Pace(acceptance=1.0, points={1: 160.0, 32: 2000.0}, slope_beyond=0.7, width=1)
WIDE = Pace(acceptance=2.6, points={1: 230.0, 32: 2060.0}, slope_beyond=0.7, width=8)


def engine(pace: Pace, *, limit: int = 64, log_interval: int = 10) -> Engine:
    return Engine(
        paces={None: pace, "other": SLOW},
        limit=limit,
        speculative=pace.width > 1,
        width=pace.width,
        log_interval=log_interval,
    )


def request(
    length: int,
    deliver: Callable[[int, str | None], None] = lambda tokens, finish: None,
    dataset: str | None = None,
) -> Request:
    return Request(
        id="r", dataset=dataset, prompt_tokens=10, cached_tokens=0, length=length, finish="length", deliver=deliver
    )


def closed_loop(
    running: Engine, concurrency: int, lengths: list[int], turn_around: float, late: float = 0.0
) -> tuple[float, int]:
    """Seconds and tokens of so many clients, who answer after `turn_around` and are woken `late`."""
    clock, received = 0.0, 0
    left = iter(lengths)
    arrivals: list[tuple[float, int]] = [(0.0, index) for index in range(concurrency)]
    counter = itertools.count(concurrency)
    last = 0.0

    def deliver(tokens: int, finish: str | None) -> None:
        nonlocal received, last
        received, last = received + tokens, clock
        if finish:
            heapq.heappush(arrivals, (clock + turn_around, next(counter)))

    while True:
        deadline = running.advance(clock)
        if arrivals and (deadline is None or arrivals[0][0] <= deadline + late):
            clock = max(clock, heapq.heappop(arrivals)[0])
            running.advance(clock)
            if (length := next(left, None)) is not None:
                running.submit(request(length, deliver), clock)
        elif deadline is None:
            return last, received
        else:
            clock = deadline + late


@pytest.mark.parametrize("pace", [SLOW, WIDE], ids=["baseline", "wide"])
@pytest.mark.parametrize("concurrency", [1, 8, 32, 48])
@pytest.mark.parametrize("length", [96, 97, 333])
def test_a_closed_loop_gets_the_throughput_of_its_batch(pace: Pace, concurrency: int, length: int) -> None:
    seconds, tokens = closed_loop(engine(pace), concurrency, [length] * 8 * concurrency, turn_around=0.003)
    assert tokens == 8 * concurrency * length
    assert tokens / seconds == pytest.approx(pace.throughput(concurrency), rel=0.01)


@pytest.mark.parametrize("late", [0.0, 0.004, 0.02])
def test_being_woken_late_costs_nothing(late: float) -> None:
    seconds, tokens = closed_loop(engine(WIDE), 32, [96] * 256, turn_around=0.002, late=late)
    assert tokens / seconds == pytest.approx(WIDE.throughput(32), rel=0.01)


@settings(max_examples=50, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 200), min_size=1, max_size=40),
    concurrency=st.integers(1, 12),
    limit=st.integers(1, 8),
    turn_around=st.floats(0, 0.3),
)
def test_every_token_is_delivered_once(lengths: list[int], concurrency: int, limit: int, turn_around: float) -> None:
    running = engine(WIDE, limit=limit)
    _, tokens = closed_loop(running, concurrency, lengths, turn_around)
    assert tokens == sum(lengths)
    assert running.idle
    assert running.totals.prefills == len(lengths)


def test_verify_steps_yield_the_acceptance_length() -> None:
    running, asked = engine(WIDE, log_interval=1), request(200)
    running.submit(asked, 0.0)
    running.advance(100.0)
    assert asked.accepted / asked.verify_calls == pytest.approx(2.6, rel=0.01)
    assert running.average_accept_length == asked.accepted / asked.verify_calls
    assert asked.produced - 1 <= asked.accepted <= asked.produced - 1 + 2


def test_there_is_no_acceptance_length_before_the_first_whole_report() -> None:
    running = engine(WIDE, log_interval=40)
    running.submit(request(60), 0.0)
    running.advance(100.0)
    assert running.average_accept_length is None


def test_requests_beyond_the_limit_wait() -> None:
    running = engine(SLOW, limit=2)
    for _ in range(5):
        running.submit(request(10), 0.0)
    running.advance(0.01)  # past the first step, which began with the first of them alone
    assert (len(running.running), len(running.waiting)) == (2, 3)
    assert closed_loop(engine(SLOW, limit=2), 5, [96] * 40, 0.001)[0] == pytest.approx(
        40 * 96 / SLOW.throughput(2), rel=0.01
    )


def test_the_first_token_is_alone_and_the_rest_comes_in_steps() -> None:
    chunks: list[int] = []
    running = engine(WIDE)
    running.submit(request(12, lambda tokens, finish: chunks.append(tokens)), 0.0)
    running.advance(100.0)
    assert chunks == [1, 2, 3, 2, 3, 1]


def test_a_slot_is_held_for_its_clients_next_request_and_no_longer() -> None:
    def second_answer(turn_around: float) -> float:
        """When the second of two requests ends, after it was asked."""
        running = engine(SLOW)
        running.submit(request(160), 0.0)
        freed = 160 / SLOW.throughput(1)
        running.advance(freed)
        ended: list[float] = []
        asked_at = freed + turn_around
        running.advance(asked_at)
        clock = asked_at
        running.submit(request(160, lambda tokens, finish: ended.append(clock) if finish else None), asked_at)
        while (deadline := running.advance(clock)) is not None:
            clock = deadline
        return ended[0] - asked_at

    alone = 160 / SLOW.throughput(1)
    assert second_answer(HOLD / 2) == pytest.approx(alone - HOLD / 2)
    assert second_answer(2 * HOLD) == pytest.approx(alone)


def test_datasets_share_a_batch_each_at_its_own_pace() -> None:
    running = Engine(
        paces={"fast": Pace(acceptance=1.0, points={1: 200, 32: 4000}, slope_beyond=0.7, width=1), "slow": SLOW},
        limit=64,
        speculative=False,
        width=1,
        log_interval=10,
    )
    running.submit(request(100, dataset="fast"), 0.0)
    running.submit(request(100, dataset="slow"), 0.0)
    running.advance(0.0)
    first = running.advance(1 / 200 + 1e-9)
    assert first is not None
    step = first - 1 / 200
    paces = running.paces
    assert step == pytest.approx(1 / paces["fast"].throughput(2) + 1 / paces["slow"].throughput(2))


def test_flush_is_refused_while_anything_runs_and_then_forgets() -> None:
    running = engine(WIDE, log_interval=1)
    running.submit(request(50), 0.0)
    assert not running.flush(1.0)
    running.advance(100.0)
    assert running.flush(1.01)
    assert (running.average_accept_length, running.factor) == (None, 1.01)


def test_noise_scales_throughput() -> None:
    running = engine(SLOW)
    running.flush(1.1)
    seconds, tokens = closed_loop(running, 4, [96] * 32, 0.001)
    assert tokens / seconds == pytest.approx(1.1 * SLOW.throughput(4), rel=0.01)


def test_an_aborted_request_hears_nothing_more() -> None:
    heard: list[int] = []
    running, asked = engine(SLOW), request(100, lambda tokens, finish: heard.append(tokens))
    running.submit(asked, 0.0)
    running.advance(0.1)
    before = sum(heard)
    running.abort(asked)
    assert running.advance(10.0) is None
    assert sum(heard) == before == asked.produced > 0


def test_a_head_that_has_gone_stale_accepts_less_and_a_step_takes_as_long() -> None:
    seconds = {}
    for left, length in ((1.0, 2.6), (0.25, 1.4)):
        running, asked = engine(WIDE), request(400)
        running.accepting = left
        running.submit(asked, 0.0)
        clock = 0.0
        while (deadline := running.advance(clock)) is not None:
            clock = deadline
        seconds[left] = clock
        assert asked.accepted / asked.verify_calls == pytest.approx(length, rel=0.02)
    assert seconds[0.25] / seconds[1.0] == pytest.approx(2.6 / 1.4, rel=0.02)


def test_a_server_that_hangs_keeps_its_requests_and_goes_on_where_it_was() -> None:
    running, asked = engine(WIDE), request(100)
    running.submit(asked, 0.0)
    running.advance(0.1)
    before, running.hung = asked.produced, True
    assert running.advance(60.0) is None
    assert (asked.produced, running.idle) == (before, False)
    running.hung = False
    assert running.advance(60.0) == pytest.approx(60.0, abs=0.1)
    running.advance(120.0)
    assert asked.produced == 100
