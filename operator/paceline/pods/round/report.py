"""From the benchmark client's report, and what the server showed of its speculation, to a point."""

import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core import Workload
from paceline.engines import Speculation
from paceline.evidence import Point

STEADY = 0.9
"""Of the peak concurrency: the steady-state window is the longest time with at least so much."""


LATENCIES = {
    "mean_ttft": "mean_ttft",
    "p50_ttft": "median_ttft",
    "p95_ttft": "p95_ttft",
    "p99_ttft": "p99_ttft",
    "mean_tpot": "mean_tpot",
    "p50_tpot": "median_tpot",
    "p95_tpot": "p95_tpot",
    "p99_tpot": "p99_tpot",
    "mean_e2e": "mean_e2e_latency",
    "p95_e2e": "p95_e2e_latency",
}
"""Of a point → as the client calls it."""


def point(workload: Workload, report: Mapping[str, Any], seen: Speculation) -> Point:
    """An answer that never came to its end tells no number of tokens (`load.UNCOUNTED`): it is not completed."""
    uncounted = sum(length > workload.dataset.max_tokens for length in report.get("output_lens", ()))
    errors = sum(1 for error in report.get("errors", ()) if error) + uncounted
    return Point(
        workload=workload.name,
        asked=workload.dataset.requests,
        completed=int(report["completed"]) - uncounted,
        errors=errors,
        output_tokens=int(report["total_output_tokens"]),
        output_throughput=report.get("output_throughput"),
        steady_throughput=None if errors or workload.rate else steady_throughput(report, workload.concurrency),
        **{name: _seconds(report.get(f"{said}_ms")) for name, said in LATENCIES.items()},
        accept_length=seen.accept_length,
        verify_calls=seen.verify_calls,
        retractions=seen.retractions,
        draft_tokens=seen.draft_tokens,
        accepted_at=seen.accepted_at,
    )


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
    details as soon as one of `concurrency` places is free (held to by one worker thread). Of requests that arrive at a
    rate there is no such window.
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


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
