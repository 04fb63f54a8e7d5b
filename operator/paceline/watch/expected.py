"""The expected performance of an arm at a load, from the loads that its evidence measured."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from paceline.watch.model import Expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """The expectation at one load. `outside` names the nearest measured load if the evidence has none on one side."""

    accept_length: float | None
    ttft_seconds: float | None
    itl_seconds: float | None
    outside: str


def at_load(expected: tuple[Expected, ...], load: float) -> Expectation:
    """Interpolated between two measured loads; outside their range, the value at the nearest.

    If several workloads have the same load, the smallest acceptance length and the longest times count: a pool with any
    mixture of the measured traffic does no worse.
    """
    loads = sorted(each.concurrency for each in expected)
    outside = bool(loads) and not loads[0] <= load <= loads[-1]
    nearest = min(loads, key=lambda each: abs(each - load)) if outside else 0.0
    return Expectation(
        accept_length=_between(_by_load(expected, lambda each: each.accept_length, min), load),
        ttft_seconds=_between(_by_load(expected, lambda each: each.ttft_seconds, max), load),
        itl_seconds=_between(_by_load(expected, lambda each: each.itl_seconds, max), load),
        outside=f"measured at {nearest:g}, the nearest" if outside else "",
    )


def _by_load(
    expected: tuple[Expected, ...],
    number: Callable[[Expected], float | None],
    worst: Callable[[Iterable[float]], float],
) -> list[tuple[float, float]]:
    found: dict[float, list[float]] = {}
    for each in expected:
        if (value := number(each)) is not None:
            found.setdefault(each.concurrency, []).append(value)
    return [(load, worst(values)) for load, values in sorted(found.items())]


def _between(points: list[tuple[float, float]], load: float) -> float | None:
    if not points:
        return None
    below = [point for point in points if point[0] <= load]
    above = [point for point in points if point[0] >= load]
    if not below or not above:
        return (below or above)[-1 if below else 0][1]
    (x0, y0), (x1, y1) = below[-1], above[0]
    return y0 if x0 == x1 else y0 + (y1 - y0) * (load - x0) / (x1 - x0)
