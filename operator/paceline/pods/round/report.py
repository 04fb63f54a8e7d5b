"""Makes a point from the client's report and the server's counters of speculation."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from statistics import fmean
from typing import Any

from paceline.core import Workload
from paceline.engines import Speculation
from paceline.evidence import Point
from paceline.pods.round.per_request import (
    RequestRow,
    by_context,
    good,
    length_fields,
    most_under_way,
    request_rows,
    speed_spread,
)

STEADY = 0.9
"""Share of the concurrency: the steady-state window is the time with at least this share."""
_STEPS = 1000
"""Number of equal steps into which the time of the first prefills is divided, to search for the start of counting."""
_FEWEST = 8
"""Minimum requests in the second half of an open loop for computing its rate."""


def point(workload: Workload, report: Mapping[str, Any], speculation: Speculation) -> Point:
    """One measured point. Its times are for answered requests."""
    answered = [one for one in request_rows(report) if not one.error]
    errors, tokens = len(report["errors"]) - len(answered), sum(one.tokens for one in answered)
    window = steady(report, workload.concurrency) if workload.at_one_load and not errors else None
    slo = workload.dataset.slo
    good_requests, good_tokens = good(report, slo) if slo else (None, None)
    return Point(
        workload=workload.name,
        asked=workload.dataset.requests,
        completed=len(answered),
        errors=errors,
        output_tokens=tokens,
        output_throughput=tokens / report["duration"],
        steady_throughput=window.throughput if window else None,
        fullness=_fullness(report, window, workload),
        kept_rate=kept_rate(report, workload.rate) if workload.rate and not errors else None,
        **times("ttft", [one.first for one in answered], "mean", 50, 90, 95, 99),
        **times("tpot", [one.after / (one.tokens - 1) for one in answered if one.tokens > 1], "mean", 50, 95, 99),
        **times("itl", [gap for one in answered for gap in one.gaps], 99),
        **times("e2e", [one.seconds for one in answered], "mean", 95),
        accept_length=speculation.accept_length,
        verify_calls=speculation.verify_calls,
        retractions=speculation.retractions,
        draft_tokens=speculation.draft_tokens,
        accepted_at=speculation.accepted_at,
        malformed=report.get("malformed"),
        good_requests=good_requests,
        good_tokens=good_tokens,
        **length_fields(report),
        contexts=by_context(report) if workload.dataset.turns > 1 else (),
        request_spread=None if errors or not workload.at_one_load else speed_spread(report),
        client_cpu=report.get("client_cpu"),
        client_lag=report.get("client_lag"),
    )


def times(metric: str, seconds: Sequence[float], *statistics: str | int) -> dict[str, Any]:
    """A point's fields: the mean, and percentiles; None without values."""
    rising = sorted(seconds)
    return {
        f"{name if name == 'mean' else f'p{name}'}_{metric}": (
            None if not rising else fmean(rising) if isinstance(name, str) else _percentile(rising, name)
        )
        for name in statistics
    }


def _fullness(report: Mapping[str, Any], window: "Steady | None", workload: Workload) -> float | None:
    """Running requests as a fraction of the concurrency: the mean in the steady window; on a ramp the maximum."""
    steadily = window.concurrency if window else None
    found = most_under_way(request_rows(report)) if workload.levels else steadily
    return None if found is None else found / workload.concurrency


@dataclass(frozen=True, slots=True)
class Steady:
    """Output tokens per second of an endless closed loop, and the mean number of running requests in the steady window;
    both by the client's clock."""

    throughput: float
    concurrency: float


def steady(report: Mapping[str, Any], concurrency: int) -> Steady | None:
    """Throughput in the steady window; None if it is empty.

    Of a conversation's turns only the first prefills much that is not cached, and its slot is in use until the last.

    The window begins when 90 % of a closed loop's concurrency is in use, and ends when fewer are, because no requests
    remain to be sent. It gives the rate at which pieces of answers arrive at full concurrency. Tokens per piece are
    averaged over all answers: the window ends before the last answers do, and these have the fewest tokens per piece,
    so counting tokens only inside the window would give too many (decision 0025).
    """
    answered = request_rows(report)
    begun = [one for one in answered if not one.turn]
    ended = [one for one, following in zip_longest(answered, answered[1:]) if not (following and following.turn)]
    enough = math.ceil(STEADY * min(concurrency, len(begun)))
    if not enough:
        return None
    start = sorted(one.start for one in begun)[enough - 1]
    end = sorted(one.end for one in ended)[-enough]
    pieces = sorted(arrival for one in answered for arrival in one.arrivals)
    begin = _beginning(begun[:concurrency], sorted(one.arrivals[0] for one in begun), pieces, (start, end))
    if end <= begin:
        return None
    under_way = math.fsum(max(0.0, min(one.end, end) - max(one.start, start)) for one in answered)
    return Steady(
        throughput=(_came(pieces, end) - _came(pieces, begin, start))
        / (end - begin)
        * math.fsum(one.tokens for one in answered)
        / len(pieces),
        concurrency=under_way / (end - start),
    )


def _beginning(
    first: Sequence[RequestRow], prefills: Sequence[float], pieces: Sequence[float], window: tuple[float, float]
) -> float:
    """When counting begins: the time from which the window holds the same share of all prefills as of all pieces.

    Prefills go on until the window ends, while some of their pieces arrive after it. To balance that, part of the first
    requests' prefills, which all happen at once, is left out. Counting begins at the latest when each of the first
    requests has its first token, or in the middle of the window.
    """
    start, end = window
    latest = min(max(one.arrivals[0] for one in first), (start + end) / 2)

    def at(step: int) -> float:
        return start + max(0.0, latest - start) * step / _STEPS

    def balanced(step: int) -> bool:
        of_prefills, of_pieces = (
            (_came(times, end) - _came(times, at(step), start)) / len(times) for times in (prefills, pieces)
        )
        return of_prefills <= of_pieces

    return at(bisect_left(range(_STEPS), True, key=balanced))


def _came(times: Sequence[float], by: float, since: float = 0.0) -> float:
    """How many of these sorted times are up to `by`, with linear interpolation to the next one."""
    count = bisect_right(times, by)
    if count == len(times):
        return count
    before, following = max(since, times[count - 1]) if count else since, times[count]
    together = bisect_right(times, following) - count
    return count + together * (by - before) / (following - before)


def kept_rate(report: Mapping[str, Any], rate: float) -> float | None:
    """Answered requests per second, of requests sent at `rate`, from their second half. None for fewer than eight.

    A server that sustains the rate takes equally long for early and late requests. Otherwise each request takes longer
    than the one before; with `growth` seconds more per request, answers leave every 1 / rate + growth seconds. The
    growth is the slope of a least-squares line through the requests' times in the order of sending, with the answer's
    length as a second variable, which is independent of the random arrivals. Two standard errors are subtracted, so
    that only a significant growth counts.
    """
    sent = request_rows(report)
    times = [one.seconds for one in sent]
    half = len(times) // 2
    if len(times) - half < _FEWEST:
        return None
    growth, error = _slope(times[half:], [one.tokens for one in sent[half:]])
    return rate / (1 + rate * max(0.0, growth - 2 * error))


def _slope(times: Sequence[float], lengths: Sequence[float]) -> tuple[float, float]:
    """By how many seconds each request takes longer than the previous one, for answers of equal length, and the
    standard error. The fit is by least squares, after the effect of length is removed from both variables."""
    left = _without(times, lengths)
    order = _without([float(number) for number in range(len(times))], lengths)
    spread = math.fsum(x * x for x in order)
    if not spread:  # lengths grow evenly with the order: the two effects cannot be separated
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


def _percentile(rising: Sequence[float], percent: float) -> float:
    """By linear interpolation, like NumPy's default."""
    place = (len(rising) - 1) * percent / 100
    low = math.floor(place)
    high = min(low + 1, len(rising) - 1)
    return rising[low] + (rising[high] - rising[low]) * (place - low)
