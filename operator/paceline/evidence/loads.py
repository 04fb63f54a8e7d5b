"""What status says of the load itself: how full the places of a closed loop were, and whether a rate was kept."""

from collections.abc import Iterator, Sequence

from paceline.core import Workload
from paceline.evidence.judge import Judged
from paceline.evidence.result import Point
from paceline.evidence.round_plan import RoundPlan

FULL = 0.9
"""Of the concurrency: with fewer requests under way, on average, a point is not what its name says."""
KEPT = 0.95
"""Of the rate: a server that answers fewer does not keep up with it."""


def under_way(point: Point, workload: Workload) -> float | None:
    """Requests under way in the steady window, as an average over its time."""
    return None if point.fullness is None else point.fullness * workload.concurrency


def saturated(point: Point, workload: Workload) -> bool:
    """How much faster another arm is depends then on how long one measures: the longer, the more."""
    return bool(workload.rate and point.kept_rate is not None and point.kept_rate < KEPT * workload.rate)


def load_notes(plan: RoundPlan, judged: Sequence[Judged]) -> Iterator[str]:
    """What a person should know of valid points. Neither spoils one: the arms of a round had the same client, and what
    is measured at another load than was asked for is a measurement all the same, of that load. The worst is named."""
    asked = {workload.name: workload for workload in plan.workloads}
    points = [(one, one.point, asked[one.workload]) for one in judged if one.valid and one.point]
    empty = [
        (busy / load.concurrency, f"{one.arm} on {one.workload} had {busy:.3g} requests under way on average", load)
        for one, point, load in points
        if (busy := under_way(point, load)) is not None and busy < FULL * load.concurrency
    ]
    if empty:
        _, said, load = min(empty, key=lambda pair: pair[0])
        yield (
            f"{said}, not {load.concurrency}{_others(len(empty))}: the benchmark client did not keep up "
            "the concurrency; give its container more CPU"
        )
    late = [
        (
            point.kept_rate / load.rate,
            f"{one.arm} on {one.workload} answered {point.kept_rate:.3g} requests a second in the second half, and "
            f"{load.rate:g} came",
        )
        for one, point, load in points
        if saturated(point, load) and point.kept_rate and load.rate
    ]
    if late:
        yield f"saturated: {min(late)[1]}{_others(len(late))}: lower requestRate"


def _others(points: int) -> str:
    return f" (and {points - 1} more points)" if points > 2 else " (and one more point)" if points == 2 else ""
