"""From the benchmark client's report and the server's counters to a point."""

import heapq
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core import Workload
from paceline.evidence import Point

VERIFY_CALLS = "sglang:spec_verify_calls_total"
RETRACTIONS = "sglang:num_retracted_requests_total"
SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{.*\})? (?P<value>\S+)$", re.ASCII | re.MULTILINE)
STEADY = 0.9
"""Of the peak concurrency: the steady-state window is the longest time with at least so much."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals since the server's start, over its ranks; None where the server has no such counter."""

    verify_calls: float | None
    retractions: float | None


def counters(page: str) -> Counters:
    """Of a /metrics page. A counter appears with its first event: on SGLang's page no retractions means none yet."""
    sums: dict[str, float] = {}
    for sample in SAMPLE.finditer(page):
        name = sample["name"]
        sums[name] = sums.get(name, 0.0) + _float(sample["value"])
    speaks = any(name.startswith("sglang:") for name in sums)
    return Counters(sums.get(VERIFY_CALLS), sums.get(RETRACTIONS, 0.0 if speaks else None))


def point(
    workload: Workload, report: Mapping[str, Any], before: Counters, after: Counters, info: Mapping[str, Any]
) -> Point:
    """`info` is /server_info after the workload: its acceptance length is the average since the flush before it."""
    errors = sum(1 for error in report.get("errors", ()) if error)
    return Point(
        workload=workload.name,
        asked=workload.dataset.requests,
        completed=int(report["completed"]),
        errors=errors,
        output_tokens=int(report["total_output_tokens"]),
        output_throughput=report.get("output_throughput"),
        steady_throughput=None if errors else steady_throughput(report, workload.concurrency),
        mean_ttft=_seconds(report.get("mean_ttft_ms")),
        p95_ttft=_seconds(report.get("p95_ttft_ms")),
        mean_tpot=_seconds(report.get("mean_tpot_ms")),
        p95_tpot=_seconds(report.get("p95_tpot_ms")),
        p95_e2e=_seconds(report.get("p95_e2e_latency_ms")),
        accept_length=accept_length(info),
        verify_calls=_difference(before.verify_calls, after.verify_calls),
        retractions=_difference(before.retractions, after.retractions),
    )


def accept_length(info: Mapping[str, Any]) -> float | None:
    """Mean over the data-parallel ranks that have one; a server that does not speculate has none."""
    states = [state for state in info.get("internal_states") or () if isinstance(state, Mapping)]
    lengths = [state.get("avg_spec_accept_length") for state in states]
    read = [float(length) for length in lengths if isinstance(length, int | float)]
    return math.fsum(read) / len(read) if read else None


@dataclass(frozen=True, slots=True)
class Answered:
    """One request in time: `tokens` output tokens, arriving in equal parts at `arrivals`. Seconds."""

    start: float
    end: float
    tokens: int
    arrivals: tuple[float, ...]


def steady_throughput(report: Mapping[str, Any], concurrency: int) -> float | None:
    """Output tokens per second in the longest time with at least 90 % of the peak concurrency.

    The client's details have no start times. They follow from its closed loop: requests go out in the order of the
    details as soon as one of `concurrency` places is free (held to by one worker thread).
    """
    answered = list(_timeline(report, concurrency))
    window = _longest([(one.start, one.end) for one in answered])
    if window is None:
        return None
    start, end = window
    tokens = math.fsum(
        one.tokens * sum(start <= arrival <= end for arrival in one.arrivals) / len(one.arrivals) for one in answered
    )
    return tokens / (end - start)


def _timeline(report: Mapping[str, Any], concurrency: int) -> Iterator[Answered]:
    free = [0.0] * concurrency
    for first, gaps, tokens in zip(report["ttfts"], report["itls"], report["output_lens"], strict=True):
        start = heapq.heappop(free)
        arrivals = [start + first]
        for gap in gaps:
            arrivals.append(arrivals[-1] + gap)
        heapq.heappush(free, arrivals[-1])
        yield Answered(start, arrivals[-1], tokens, tuple(arrivals))


def _longest(spans: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """The longest time in which at least 90 % of the most that ever ran at once did; the first of equals."""
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


def _difference(before: float | None, after: float | None) -> int | None:
    """None if the counter is not there or no counter: it fell, or is no number."""
    grown = math.nan if after is None else after - (before or 0.0)
    return round(grown) if math.isfinite(grown) and grown >= 0 else None


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
