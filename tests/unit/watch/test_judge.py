"""What a pool's counters are judged to show, minute by minute."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.messages import Says

from paceline.core import GuardSource
from paceline.engines import Counts
from paceline.watch import Expected, JudgementKind, PoolWatch, Watched, observe, period_seconds
from paceline.watch.expected import at_load
from paceline.watch.judge import least_accept_length
from paceline.watch.observe import Process

WATCHED = Watched(
    revision="a1b2c3",
    arm="wide",
    engine="SGLang",
    version="0.5.23",
    verify_tokens=8,
    expected=(
        Expected(concurrency=1, accept_length=2.6, ttft_seconds=0.1, itl_seconds=0.004),
        Expected(concurrency=1, accept_length=2.4, ttft_seconds=0.1, itl_seconds=0.005),
        Expected(concurrency=9, accept_length=2.4, ttft_seconds=0.3, itl_seconds=0.008),
    ),
    acceptance_drop=0.25,
    window=timedelta(minutes=10),
    speculates_up_to=8,
)
START = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)
NOTHING = dict.fromkeys(Counts.__slots__, 0.0)
TOKENS = 100
"""Of each answer, after its first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one server is sent for so many minutes, and what it does with it."""

    minutes: float
    length: float = 2.5
    requests_a_minute: float = 60
    under_way: float = 4
    hangs: bool = False
    restarts: bool = False
    unread: bool = False
    """Its counters are back at zero, in the same process as far as anybody tells us."""


def readings(traffic: tuple[Traffic, ...], period: float) -> Iterator[Counts | str]:
    counts = NOTHING
    for phase in traffic:
        if phase.restarts:
            counts = NOTHING
        for _ in range(round(phase.minutes * 60 / period)):
            requests = 0.0 if phase.hangs else phase.requests_a_minute * period / 60
            tokens = requests * TOKENS
            grown = {
                "requests": requests,
                "tokens": tokens,
                "verify_steps": tokens / phase.length,
                "accepted": tokens - tokens / phase.length,
                "ttft_seconds": 0.2 * requests,
                "first_tokens": requests,
                "itl_seconds": 0.006 * tokens,
                "later_tokens": tokens,
                "moved": tokens,
            }
            counts = {**NOTHING, **{name: counts[name] + more for name, more in grown.items()}}
            counts["under_way"] = phase.under_way
            yield "wide-0: timeout" if phase.unread else Counts(**counts)


def watch(*traffic: Traffic, watched: Watched = WATCHED) -> Iterator[PoolWatch]:
    """Each look at one server."""
    known: PoolWatch | None = None
    period = period_seconds(watched)
    for number, counts in enumerate(readings(traffic, period)):
        seen = {Process(pod="wide-0", started="1"): counts}
        known = observe(known, watched, seen, number * period, START + timedelta(seconds=number * period))
        yield known


def flips(*traffic: Traffic, watched: Watched = WATCHED) -> list[tuple[float, str]]:
    """Each kind that the judgement had, with the minute that it began in."""
    found: list[tuple[float, str]] = []
    for number, each in enumerate(watch(*traffic, watched=watched)):
        if not found or found[-1][1] != each.judgement.kind:
            found.append((number * period_seconds(watched) / 60, str(each.judgement.kind)))
    return found


def last(*traffic: Traffic, watched: Watched = WATCHED) -> PoolWatch:
    return list(watch(*traffic, watched=watched))[-1]


BASELINE = replace(WATCHED, arm="baseline", verify_tokens=1, expected=(), speculates_up_to=None)
STORIES = {
    "a pool without traffic is never judged": (
        (Traffic(minutes=60, requests_a_minute=0, under_way=0),),
        [(0, "Idle")],
    ),
    "nor one with little, however bad it looks": (
        (Traffic(minutes=60, requests_a_minute=3, length=1.0),),
        [(0, "Idle")],
    ),
    "a good pool is found good after its first window": (
        (Traffic(minutes=60),),
        [(0, "Idle"), (10, "AsExpected")],
    ),
    "a bad pool as well": (
        (Traffic(minutes=60, length=1.0),),
        [(0, "Idle"), (10, "AcceptanceDropped")],
    ),
    "a drop is told when both halves of the window have it": (
        (Traffic(minutes=20), Traffic(minutes=20, length=1.5)),
        [(0, "Idle"), (10, "AsExpected"), (26.5, "AcceptanceDropped")],
    ),
    "a short dip is not": (
        (Traffic(minutes=20), Traffic(minutes=2, length=1.5), Traffic(minutes=20)),
        [(0, "Idle"), (10, "AsExpected")],
    ),
    "what is just allowed is not": (
        (Traffic(minutes=40, length=2.1),),
        [(0, "Idle"), (10, "AsExpected")],
    ),
    "slightly better is not good again": (
        (Traffic(minutes=20, length=1.5), Traffic(minutes=40, length=2.1)),
        [(0, "Idle"), (10, "AcceptanceDropped")],
    ),
    "clearly better is": (
        (Traffic(minutes=20, length=1.5), Traffic(minutes=40, length=2.5)),
        [(0, "Idle"), (10, "AcceptanceDropped"), (28, "AsExpected")],
    ),
    "a pool that was bad is not good for want of traffic": (
        (Traffic(minutes=20, length=1.5), Traffic(minutes=60, requests_a_minute=0, under_way=0)),
        [(0, "Idle"), (10, "AcceptanceDropped")],
    ),
    "a restart is judged late": (
        (Traffic(minutes=9), Traffic(minutes=20, restarts=True, length=1.0)),
        [(0, "Idle"), (19, "AcceptanceDropped")],
    ),
    "a pool that was judged stays so until its whole window has too little": (
        (Traffic(minutes=20), Traffic(minutes=20, requests_a_minute=3), Traffic(minutes=20, requests_a_minute=1)),
        [(0, "Idle"), (10, "AsExpected"), (45, "Idle")],
    ),
    "a server that hangs, after five minutes without a token": (
        (Traffic(minutes=20), Traffic(minutes=20, hangs=True)),
        [(0, "Idle"), (10, "AsExpected"), (24.5, "Hung")],
    ),
    "and is well as soon as tokens come": (
        (Traffic(minutes=20), Traffic(minutes=7, hangs=True), Traffic(minutes=20)),
        [(0, "Idle"), (10, "AsExpected"), (24.5, "Hung"), (27, "AsExpected")],
    ),
    "nothing to do is no hanging": (
        (Traffic(minutes=20), Traffic(minutes=20, hangs=True, under_way=0)),
        [(0, "Idle"), (10, "AsExpected"), (29.5, "Idle")],
    ),
    "more load than speculation pays for": (
        (Traffic(minutes=20), Traffic(minutes=30, under_way=12), Traffic(minutes=30)),
        [(0, "Idle"), (10, "AsExpected"), (27.5, "BeyondCrossover"), (56, "AsExpected")],
    ),
    "servers that do not answer": (
        (Traffic(minutes=20), Traffic(minutes=20, unread=True), Traffic(minutes=20)),
        [(0, "Idle"), (10, "AsExpected"), (24.5, "Unreadable"), (40, "Idle"), (50, "AsExpected")],
    ),
    "one that misses some looks": (
        (Traffic(minutes=20), Traffic(minutes=4, unread=True), Traffic(minutes=20)),
        [(0, "Idle"), (10, "AsExpected")],
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_pool_is_judged_by_what_both_halves_of_its_window_show(story: str) -> None:
    traffic, expected = STORIES[story]
    assert flips(*traffic) == expected


FOLLOWS = replace(WATCHED, depth_follows_load=True)
STARTED = [(0, "Idle"), (10, "AsExpected")]
LIGHT, BUSY = Traffic(minutes=20), Traffic(minutes=20, length=1.5, under_way=48)
LOADS = {
    "beyond the crossover a short length is the load's": (LIGHT, BUSY, WATCHED, [(25.5, "BeyondCrossover")]),
    "not where the crossover is not known": (
        LIGHT, BUSY, replace(WATCHED, speculates_up_to=None), [(26.5, "AcceptanceDropped")],
    ),
    "nor where that load was measured": (
        LIGHT, replace(BUSY, under_way=8.5), WATCHED, [(26.5, "AcceptanceDropped")],
    ),
    "a depth that follows the load says nothing at a load that was not measured": (
        LIGHT, BUSY, replace(FOLLOWS, speculates_up_to=None), [],
    ),
    "it says something at one that was": (
        LIGHT, replace(BUSY, under_way=4), FOLLOWS, [(26.5, "AcceptanceDropped")],
    ),
    "and below one request at a time, if one was": (
        LIGHT, replace(BUSY, under_way=0.5), FOLLOWS, [(26.5, "AcceptanceDropped")],
    ),
    "a drop is not over for want of traffic": (
        Traffic(minutes=20, length=1.5), Traffic(minutes=30, requests_a_minute=0, under_way=0), FOLLOWS, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("story", LOADS)
def test_a_length_is_compared_where_the_load_explains_nothing(story: str) -> None:
    first, then, watched, follows = LOADS[story]
    expected = [(0, "Idle"), (10, "AcceptanceDropped")] if follows is None else [*STARTED, *follows]
    assert flips(first, then, watched=watched) == expected


def test_a_sentence_with_its_numbers(says: Says) -> None:
    judgement = last(Traffic(minutes=20, length=1.5)).judgement
    says(judgement.message)
    assert (judgement.revision, judgement.since) == ("a1b2c3", "2026-11-22T10:10:00Z")
    numbers = judgement.numbers
    assert numbers.accept_length == pytest.approx(1.5)
    assert numbers.ttft_seconds == pytest.approx(0.2)
    assert (numbers.expected_accept_length, numbers.running_requests) == (2.4, 4)
    assert numbers.least_accept_length == pytest.approx(1 + 0.75 * 1.4)
    assert (numbers.speculates_up_to, numbers.expected_ttft_seconds) == (8, pytest.approx(0.175))
    assert numbers.expected_itl_seconds == pytest.approx(0.006125)


def test_a_baseline_is_watched_for_hanging_alone() -> None:
    story = Traffic(minutes=20, length=1), Traffic(minutes=20, hangs=True)
    assert flips(*story, watched=BASELINE) == [(0, "Idle"), (10, "AsExpected"), (24.5, "Hung")]


def test_another_revision_begins_anew() -> None:
    bad = last(Traffic(minutes=20, length=1.0))
    other = observe(bad, replace(WATCHED, revision="d4e5f6"), {}, 20 * 60, START)
    assert other.judgement.kind is JudgementKind.IDLE
    assert other.servers == {}


def test_half_of_the_servers_must_hang() -> None:
    def pool(hanging: int, of: int) -> JudgementKind:
        known: PoolWatch | None = None
        phases = Traffic(minutes=10), Traffic(minutes=10, hangs=True)
        good, bad = readings((Traffic(minutes=20),), 30), readings(phases, 30)
        for number, (well, hangs) in enumerate(zip(good, bad, strict=True)):
            seen = {Process(pod=f"s-{i}", started="1"): hangs if i < hanging else well for i in range(of)}
            known = observe(known, WATCHED, seen, number * 30, START)
        assert known is not None
        return known.judgement.kind

    assert [pool(1, 1), pool(1, 2), pool(1, 3), pool(2, 3)] == [
        JudgementKind.HUNG,
        JudgementKind.HUNG,
        JudgementKind.AS_EXPECTED,
        JudgementKind.HUNG,
    ]


@pytest.mark.parametrize(
    ("changed", "silence"),
    [
        ({}, 20),
        ({"source": GuardSource.PROMETHEUS}, 120),
        ({"version": "0.5.6"}, 300),
        ({"engine": "vLLM", "version": "0.33.0"}, 300),
        ({"engine": "vLLM", "version": "0.33.0", "source": GuardSource.PROMETHEUS}, 300),
    ],
    ids=["pods", "Prometheus", "an older SGLang", "vLLM", "vLLM by Prometheus"],
)
def test_a_short_window_waits_for_what_keeps_a_healthy_server_silent(changed: dict[str, str], silence: float) -> None:
    """A long prefill that moves no counter, or a server that Prometheus reads once a minute."""
    quick = replace(WATCHED, window=timedelta(seconds=40), **changed)  # type: ignore[arg-type]
    story = Traffic(minutes=2), Traffic(minutes=7, hangs=True)
    at = 2 + silence / 60
    assert [minute for minute, kind in flips(*story, watched=quick) if kind == "Hung"] == [pytest.approx(at, abs=0.05)]


def test_an_engine_that_shows_nothing_says_so() -> None:
    (first, *_) = watch(Traffic(minutes=1), watched=replace(WATCHED, engine="SGLangJAX", version="0.1.0"))
    assert first.judgement.kind is JudgementKind.UNREADABLE
    assert "pd_* series only" in first.judgement.message


def test_a_long_window_keeps_forty_readings() -> None:
    long = replace(WATCHED, window=timedelta(hours=4))
    (server,) = last(Traffic(minutes=600), watched=long).servers.values()
    assert len(server.readings) <= 42
    assert server.seconds >= 4 * 3600


@pytest.mark.parametrize(
    ("load", "length", "outside"),
    [
        (1, 2.4, ""),
        (5, 2.0, ""),
        (9, 1.6, ""),
        (0.5, 2.4, "measured at 1, the nearest"),
        (40, 1.6, "measured at 9, the nearest"),
    ],
)
def test_what_is_expected_at_a_load(load: float, length: float, outside: str) -> None:
    """The least of the workloads of a load: traffic that is a mixture of them does no worse."""
    expected = (
        Expected(concurrency=1, accept_length=2.6),
        Expected(concurrency=1, accept_length=2.4),
        Expected(concurrency=9, accept_length=1.6),
    )
    found = at_load(expected, load)
    assert found.accept_length == pytest.approx(length)
    assert found.outside == outside


@pytest.mark.parametrize(
    ("drafts", "rate", "drop", "least"),
    [(4, 0.8, 0.25, 0.6), (3, 0.9, 1 / 3, 0.6), (4, 0.5, 0.5, 0.25)],
)
def test_a_drop_of_a_chain_is_that_of_its_acceptance_rate(drafts: int, rate: float, drop: float, least: float) -> None:
    """ "Below 60 %" of a chain that was measured at 80 % is the default drop, whatever its depth."""
    assert least_accept_length(1 + drafts * rate, drop) == pytest.approx(1 + drafts * least)
