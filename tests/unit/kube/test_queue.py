"""The work queue, on a clock that stands still until told."""

import asyncio
from contextlib import suppress

import pytest
from tests.fault import virtual

from paceline.kube import Forbidden, Invalid, TooManyRequests, WorkQueue
from paceline.kube.queue import LONGEST_CALL, SPARE_ALARMS


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def a_queue() -> tuple[WorkQueue[str], Clock]:
    clock = Clock()
    return WorkQueue[str](clock=clock, jitter=lambda: 0.0), clock


def test_a_key_waits_once():
    queue, _ = a_queue()
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert [queue.take(), queue.take(), queue.take()] == ["a", "b", None]


def test_hints_of_a_moment_make_one_pass():
    """A round's end: its pod, then its Job, then our own status and the next Job come within 80 ms."""
    queue, clock = a_queue()
    for seconds in (0.0, 0.03, 0.05, 0.08):
        clock.now = seconds
        queue.hint("a")
        assert queue.take() is None
    clock.now = 0.1
    queue.hint("b")
    assert [queue.take(), queue.take()] == ["a", None]
    queue.hint("a")
    queue.done("a", again=600)
    clock.now = 0.2
    assert [queue.take(), queue.take()] == ["b", "a"], "what came meanwhile is looked at, not forgotten"


def test_a_hint_of_a_key_that_waits_already_adds_no_pass():
    queue, clock = a_queue()
    queue.add("a")
    queue.hint("a")
    assert queue.take() == "a"
    queue.done("a")
    clock.now = 10
    assert queue.take() is None


def test_a_namespace_with_a_thousand_keys_keeps_another_waiting_for_one_of_them():
    queue = WorkQueue[str](group=lambda key: key.partition("/")[0], clock=Clock())
    for number in range(1000):
        queue.add(f"flood/{number}")
    queue.add("quiet/a")
    queue.add("quiet/b")
    queue.add("calm/a")
    order = [queue.take() for _ in range(6)]
    assert order == ["flood/0", "quiet/a", "calm/a", "flood/1", "quiet/b", "flood/2"]
    assert len(queue) == 997


def test_a_key_added_while_in_work_is_worked_on_once_more():
    queue, _ = a_queue()
    queue.add("a")
    assert queue.take() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.take() is None, "never two at a time"
    queue.done("a")
    assert queue.take() == "a"
    queue.done("a")
    assert queue.take() is None


def test_the_earlier_of_two_times_counts_and_an_add_ends_the_wait():
    queue, clock = a_queue()
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    assert queue.due == 5
    clock.now = 5
    assert queue.take() == "a"
    queue.done("a")
    clock.now = 30
    assert queue.take() is None
    queue.add_after("a", 5)
    queue.add("a")
    assert queue.take() == "a"
    assert queue.due is None


def test_failures_are_tried_again_later_and_later_until_a_success():
    queue, clock = a_queue()
    waits = []
    queue.add("a")
    for _ in range(20):
        queue.take()
        queue.done("a", failed=True)
        assert queue.due is not None
        waits.append(queue.due - clock.now)
        clock.now = queue.due
    assert [round(wait, 3) for wait in waits[:4]] == [0.005, 0.01, 0.02, 0.04]
    assert waits[-1] == 300
    queue.take()
    queue.done("a", again=60)
    assert queue.due == clock.now + 60
    clock.now += 60
    queue.take()
    queue.done("a", failed=True)
    assert queue.due is not None
    assert round(queue.due - clock.now, 3) == 0.005


async def test_after_an_outage_nobody_waits_for_minutes_and_what_is_wrong_itself_does():
    queue, clock = a_queue()

    async def reconcile(key: str) -> float | None:
        raise Forbidden(403, "Forbidden", "") if key == "cut off" else Invalid(422, "Invalid", "")

    longest = dict.fromkeys(("cut off", "wrong"), 0.0)
    for key in longest:
        queue.add(key)
        for _ in range(20):
            clock.now = queue.due or 0.0
            assert queue.take() == key
            await queue.work(key, reconcile)
            assert queue.due is not None
            longest[key] = max(longest[key], queue.due - clock.now)
        clock.now = queue.due or 0.0
        queue.take()
        queue.done(key)
    assert longest == {"cut off": 30, "wrong": 300}


def test_a_queue_is_stuck_when_no_pass_ends_and_not_when_it_is_long():
    queue, clock = a_queue()
    assert queue.stuck == 0
    for number in range(100):
        queue.add(str(number))
    for _ in range(50):
        key = queue.take()
        clock.now += 10
        queue.done(str(key))
    assert (len(queue), queue.stuck) == (50, 0), "500 seconds old, but work goes on"
    clock.now += 7
    assert queue.stuck == 7, "nobody takes the next one"
    hanging = queue.take()
    clock.now += 5
    while key := queue.take():
        queue.done(key)
    assert queue.stuck == 0, "others have ended"
    clock.now += 6
    assert queue.stuck == 6, "one hangs, and none has ended since"
    queue.done(str(hanging))
    assert queue.stuck == 0


async def test_who_takes_over_after_hours_is_not_stuck_with_what_has_waited_for_it():
    queue, clock = a_queue()
    queue.add("a")
    queue.add("b")
    clock.now = 7200.0
    working = asyncio.create_task(queue.run(lambda _: asyncio.Event().wait(), workers=1))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    assert queue.stuck == 0
    clock.now += 3
    assert queue.stuck == 3
    working.cancel()
    with suppress(asyncio.CancelledError):
        await working


def test_a_pass_that_hangs_is_cancelled_and_tried_again():
    queue = WorkQueue[str](jitter=lambda: 0.0)
    began: list[float] = []

    async def reconcile(key: str) -> float | None:
        began.append(asyncio.get_running_loop().time())
        if len(began) == 1:
            await asyncio.Event().wait()
        return None

    async def works() -> None:
        queue._clock = asyncio.get_running_loop().time
        queue.add("a")
        with suppress(TimeoutError):
            async with asyncio.timeout(2 * LONGEST_CALL):
                await queue.run(reconcile)

    virtual.run(works())
    assert began == [0.0, pytest.approx(LONGEST_CALL, abs=1)]


async def test_workers_call_reconcile_and_come_back_when_it_says():
    queue = WorkQueue[str]()
    calls: list[str] = []
    finished = asyncio.Event()

    async def reconcile(key: str) -> float | None:
        calls.append(key)
        if calls.count("a") == 3:
            finished.set()
        match calls.count("a"):
            case 1:
                raise RuntimeError("at first")
            case 2:
                return 0.01
            case _:
                return None

    queue.add("a")
    task = asyncio.create_task(queue.run(reconcile, workers=2))
    async with asyncio.timeout(30):
        await finished.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert calls == ["a", "a", "a"]


async def test_a_server_that_asks_to_wait_is_heard():
    queue, _ = a_queue()

    async def reconcile(key: str) -> float | None:
        raise TooManyRequests(429, "TooManyRequests", "", retry_after=9.0)

    queue.add("a")
    assert queue.take() == "a"
    await queue.work("a", reconcile)
    assert queue.due == 9


async def test_many_events_make_few_passes_and_never_two_of_a_key():
    """2100 events for 100 keys, four workers."""
    queue = WorkQueue[int]()
    busy: set[int] = set()
    passes = 0

    async def reconcile(key: int) -> float | None:
        nonlocal passes
        assert key not in busy
        busy.add(key)
        passes += 1
        await asyncio.sleep(0)
        busy.remove(key)
        return None

    task = asyncio.create_task(queue.run(reconcile))
    for _ in range(21):
        for key in range(100):
            queue.add(key)
    async with asyncio.timeout(30):
        while len(queue) or busy:  # noqa: ASYNC110
            await asyncio.sleep(0)
    task.cancel()
    assert passes == 100


def test_a_key_that_is_looked_at_often_leaves_no_alarms_behind():
    """Each pass puts the next look an hour off, and something wakes the key long before."""
    queue, clock = a_queue()
    queue.add_after("rests", 3600)
    for number in range(1000):
        clock.now = float(number)
        queue.add("busy")
        assert queue.take() == "busy"
        queue.done("busy", again=3600)
    assert len(queue._alarms) <= 2 * 2 + SPARE_ALARMS
    clock.now = 3600.0
    assert [queue.take(), queue.take()] == ["rests", None]
    queue.done("rests")
    assert queue.due == 999 + 3600
