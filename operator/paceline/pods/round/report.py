"""A point from the benchmark client's report and the server's counters of speculation."""

import heapq
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core import Workload
from paceline.engines import Speculation
from paceline.evidence import Point
from paceline.pods.round.requests import good, lengths, spread

STEADY = 0.9
"""Share of the peak concurrency: the steady-state window is the longest time with at least this share."""
STEPS = 1000
"""Number of equal steps into which the time of the first prefills is divided, to search the start of counting."""
FEWEST = 8
"""Fewest requests in the second half of an open loop from which its rate is computed."""


LATENCIES = {
    "mean_ttft": "mean_ttft",
    "p50_ttft": "median_ttft",
    "p90_ttft": "p90_ttft",
    "p95_ttft": "p95_ttft",
    "p99_ttft": "p99_ttft",
    "mean_tpot": "mean_tpot",
    "p50_tpot": "median_tpot",
    "p95_tpot": "p95_tpot",
    "p99_tpot": "p99_tpot",
    "p99_itl": "p99_itl",
    "mean_e2e": "mean_e2e_latency",
    "p95_e2e": "p95_e2e_latency",
}
"""Field of a point → the benchmark client's name."""


def point(workload: Workload, report: Mapping[str, Any], speculation: Speculation) -> Point:
    """One measured point. Answers that broke off have no token count (`load.UNCOUNTED`) and count as errors."""
    uncounted = sum(length > workload.dataset.max_tokens for length in report.get("output_lens", ()))
    errors = sum(1 for error in report.get("errors", ()) if error) + uncounted
    window = steady(report, workload.concurrency) if workload.at_one_load and not errors else None
    slo = workload.dataset.slo
    good_requests, good_tokens = good(report, slo, workload.dataset.max_tokens) if slo else (None, None)
    latencies: dict[str, Any] = {name: _seconds(report.get(f"{metric}_ms")) for name, metric in LATENCIES.items()}
    return Point(
        workload=workload.name,
        asked=workload.dataset.requests,
        completed=int(report["completed"]) - uncounted,
        errors=errors,
        output_tokens=int(report["total_output_tokens"]),
        output_throughput=report.get("output_throughput"),
        steady_throughput=window.throughput if window else None,
        fullness=_fullness(report, window, workload),
        kept_rate=kept_rate(report, workload.rate) if workload.rate and not errors else None,
        **latencies,
        accept_length=speculation.accept_length,
        verify_calls=speculation.verify_calls,
        retractions=speculation.retractions,
        draft_tokens=speculation.draft_tokens,
        accepted_at=speculation.accepted_at,
        malformed=report.get("malformed"),
        good_requests=good_requests,
        good_tokens=good_tokens,
        **lengths(report),
        request_spread=None if errors or not workload.at_one_load else spread(report),
    )


def _fullness(report: Mapping[str, Any], window: "Steady | None", workload: Workload) -> float | None:
    """Requests under way as a fraction of the concurrency: the mean in the steady window; on a ramp the most."""
    steadily = window.concurrency if window else None
    found: float | None = report.get("most_under_way") if workload.levels else steadily
    return None if found is None else found / workload.concurrency


@dataclass(frozen=True, slots=True)
class Answered:
    """The times of one request, in seconds: its `tokens` output tokens arrive in equal parts at `arrivals`."""

    start: float
    end: float
    tokens: int
    arrivals: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Steady:
    """Output tokens per second that an endless closed loop would have, and the mean number of running requests in the
    steady window; both by the client's clock."""

    throughput: float
    concurrency: float


def steady(report: Mapping[str, Any], concurrency: int) -> Steady | None:
    """Throughput in the steady window, the longest time with at least 90 % of the peak concurrency; None if no request
    was answered.

    The window gives the rate at which pieces of answers arrive at full concurrency. Tokens per piece are averaged over
    all answers: the window ends before the last answers do, and these have the fewest tokens per piece, so counting
    tokens only inside the window would give too many (decision 0025).

    The client's details contain no start times, so they are derived from its closed loop: it sends requests in the
    order of the details, as soon as one of `concurrency` slots is free. tests/unit/round/test_timeline.py checks that
    against the server's clock. The client's own time between an answer and the next request is only in its `duration`,
    so all times are stretched to that.
    """
    answered = list(_timeline(report, concurrency))
    window = _longest([(one.start, one.end) for one in answered])
    if window is None:
        return None
    start, end = window
    pieces = sorted(arrival for one in answered for arrival in one.arrivals)
    begin = _beginning(answered, concurrency, window, pieces)
    last = max(one.end for one in answered)
    stretch = max(1.0, report.get("duration", last) / last)
    under_way = math.fsum(max(0.0, min(one.end, end) - max(one.start, start)) for one in answered)
    return Steady(
        throughput=(_came(pieces, end) - _came(pieces, begin, start))
        / (stretch * (end - begin))
        * math.fsum(one.tokens for one in answered)
        / len(pieces),
        concurrency=under_way / (stretch * (end - start)),
    )


def _beginning(
    answered: Sequence[Answered], concurrency: int, window: tuple[float, float], pieces: Sequence[float]
) -> float:
    """When counting begins: the time from which the window holds the same share of all prefills as of all pieces.

    Prefills go on until the window ends, while some of their pieces arrive after it. To balance that, part of the first
    requests' prefills, which all happen at once, is left out. Counting begins at the latest when each of the first
    requests has its first token, or in the middle of the window.
    """
    start, end = window
    prefills = sorted(one.arrivals[0] for one in answered)
    latest = min(max(one.arrivals[0] for one in answered[:concurrency]), (start + end) / 2)

    def at(step: int) -> float:
        return start + max(0.0, latest - start) * step / STEPS

    def balanced(step: int) -> bool:
        of_prefills, of_pieces = (
            (_came(times, end) - _came(times, at(step), start)) / len(times) for times in (prefills, pieces)
        )
        return of_prefills <= of_pieces

    return at(bisect_left(range(STEPS), True, key=balanced))


def _came(times: Sequence[float], by: float, since: float = 0.0) -> float:
    """How many of these sorted times are up to `by`, the next one counted by linear interpolation."""
    count = bisect_right(times, by)
    if count == len(times):
        return count
    before, following = max(since, times[count - 1]) if count else since, times[count]
    together = bisect_right(times, following) - count
    return count + together * (by - before) / (following - before)


def kept_rate(report: Mapping[str, Any], rate: float) -> float | None:
    """Answered requests per second, of requests sent at `rate`, from their second half. None for fewer than eight.

    A server that keeps the rate takes equally long for early and late requests. One that does not takes longer for each
    request than for the one before; with `growth` seconds more per request, answers leave every 1 / rate + growth
    seconds. The growth is the slope of a least-squares line through the requests' times in the order of sending, with
    the answer's length as a second variable. This needs no start times, which the details lack, and is independent of
    how the arrivals happened to fall. Two standard errors are subtracted, so that only a growth that is shown counts.
    """
    times = [first + math.fsum(gaps) for first, gaps in zip(report["ttfts"], report["itls"], strict=True)]
    half = len(times) // 2
    if len(times) - half < FEWEST:
        return None
    growth, error = _slope(times[half:], report["output_lens"][half:])
    return rate / (1 + rate * max(0.0, growth - 2 * error))


def _timeline(report: Mapping[str, Any], concurrency: int) -> Iterator[Answered]:
    free = [0.0] * concurrency
    for first, gaps, tokens in zip(report["ttfts"], report["itls"], report["output_lens"], strict=True):
        start = heapq.heappop(free)
        arrivals = [start + first]
        for gap in gaps:
            arrivals.append(arrivals[-1] + gap)
        heapq.heappush(free, arrivals[-1])
        yield Answered(start, arrivals[-1], tokens, tuple(arrivals))


def _slope(times: Sequence[float], lengths: Sequence[float]) -> tuple[float, float]:
    """By how many seconds each request takes longer than the one before, for answers of equal length, and the standard
    error. By least squares; the effect of length is first removed from both variables."""
    left = _without(times, lengths)
    order = _without([float(number) for number in range(len(times))], lengths)
    spread = math.fsum(x * x for x in order)
    if not spread:  # lengths grow evenly with the order: their effects cannot be separated
        return 0.0, math.inf
    slope = math.fsum(x * y for x, y in zip(order, left, strict=True)) / spread
    rest = math.fsum((y - slope * x) ** 2 for x, y in zip(order, left, strict=True))
    return slope, math.sqrt(rest / (len(times) - 3) / spread)


def _without(values: Sequence[float], lengths: Sequence[float]) -> list[float]:
    """The residuals of the values after a linear fit to the lengths."""
    mean, length = math.fsum(values) / len(values), math.fsum(lengths) / len(lengths)
    spread = math.fsum((one - length) ** 2 for one in lengths)
    shared = math.fsum((value - mean) * (one - length) for value, one in zip(values, lengths, strict=True))
    slope = shared / spread if spread else 0.0
    return [value - mean - slope * (one - length) for value, one in zip(values, lengths, strict=True)]


def _longest(spans: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """The longest time with at least 90 % of the peak concurrency; the first of equally long ones."""
    changes: dict[float, int] = {}
    for start, end in spans:
        changes[start] = changes.get(start, 0) + 1
        changes[end] = changes.get(end, 0) - 1
    running, levels = 0, []
    for time in sorted(changes):
        running += changes[time]
        levels.append((time, running))
    enough = math.ceil(STEADY * max((level for _, level in levels), default=0))
    best: tuple[float, float] | None = None
    since: float | None = None
    for time, level in levels:
        if level >= max(enough, 1):
            since = time if since is None else since
        elif since is not None:
            best = (since, time) if best is None or time - since > best[1] - best[0] else best
            since = None
    return best


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
