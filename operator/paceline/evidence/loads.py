"""Notes about the load itself: whether a closed loop kept its concurrency, and whether a rate was kept."""

from collections.abc import Iterator, Sequence

from paceline.core import Workload
from paceline.core.text import count
from paceline.evidence.judge import Judged
from paceline.evidence.result import Point
from paceline.evidence.round_plan import RoundPlan

_FULL = 0.9
"""A point with a smaller mean fraction of its concurrency under way is reported."""
KEPT = 0.95
"""Fraction of the rate; a server that answers fewer requests does not keep up."""


def mean_under_way(point: Point, workload: Workload) -> float | None:
    """Mean number of requests under way in the steady window."""
    return None if point.fullness is None else point.fullness * workload.concurrency


def saturated(point: Point, workload: Workload) -> bool:
    """Whether the rate was not kept. A speed-up then depends on the length of the measurement."""
    return bool(workload.rate and point.kept_rate is not None and point.kept_rate < KEPT * workload.rate)


def load_notes(plan: RoundPlan, judged: Sequence[Judged]) -> Iterator[str]:
    """One sentence for each kind of deviation, naming the worst valid point. A deviation does not invalidate a point:
    the arms of a round share a client, and the point is still valid for the load that was reached."""
    workloads = {workload.name: workload for workload in plan.workloads}
    points = [(entry, entry.point, workloads[entry.workload]) for entry in judged if entry.valid and entry.point]
    empty = [
        (busy / load.concurrency, f"{entry.arm} on {entry.workload} had {busy:.3g} requests under way on average", load)
        for entry, point, load in points
        if (busy := mean_under_way(point, load)) is not None and busy < _FULL * load.concurrency
    ]
    if empty:
        _, message, load = min(empty, key=lambda pair: pair[0])
        yield (
            f"{message}, not {load.concurrency}{_others(len(empty))}: the client did not keep up "
            "the concurrency; give its container more CPU"
        )
    late = [
        (
            point.kept_rate / load.rate,
            f"{entry.arm} on {entry.workload} answered {point.kept_rate:.3g} requests a second in the second half, "
            f"but {load.rate:g} came",
        )
        for entry, point, load in points
        if saturated(point, load) and point.kept_rate and load.rate
    ]
    if late:
        yield f"saturated: {min(late)[1]}{_others(len(late))}: lower requestRate"


def _others(points: int) -> str:
    return f" (and {count(points - 1, 'more point')})" if points > 1 else ""
