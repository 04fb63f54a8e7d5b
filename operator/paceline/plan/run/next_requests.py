"""Sets the next round's number of requests per workload, from the first round's baseline and never from a ratio.

The records are the whole state, so every pass and every try of a round compute the same numbers, and all arms of a
round get the same. Later looks at the same candidates do not depend on their results in the first rounds, which
preserves the gate's error rates (decision 0068).
"""

from collections.abc import Sequence
from dataclasses import replace

from paceline.api.round import Round
from paceline.core import BASELINE, Gate, Purpose, RunSpec, Workload
from paceline.core.record import finite
from paceline.gate import enough_requests

OF_REQUESTS = ("p95TTFT", "p95TPOT", "p95E2E")
"""Metrics whose limits need a percentile over a round's requests."""


def next_workloads(run: RunSpec, records: Sequence[Round]) -> tuple[Workload, ...]:
    """The workloads of the next round."""
    if run.purpose is not Purpose.GATE or not by_noise(run.gate):
        return run.workloads
    weights = [workload.weight for workload in run.workloads if not workload.rate]
    return tuple(
        with_enough_requests(workload, spread_of(workload.name, records), weights) for workload in run.workloads
    )


def by_noise(gate: Gate) -> bool:
    """Whether fewer requests are enough for everything that is judged."""
    return not any(limit.metric in OF_REQUESTS for limit in gate.limits)


def spread_of(workload: str, records: Sequence[Round]) -> float | None:
    """Spread between the baseline's requests, in the first round with a valid baseline and a spread; else None."""
    points = (point for record in records if not record.error for point in record.points)
    spreads = (
        finite(point.request_spread)
        for point in points
        if point.arm == BASELINE and point.workload == workload and point.valid
    )
    return next((spread for spread in spreads if spread is not None), None)


def with_enough_requests(workload: Workload, spread: float | None, weights: Sequence[float]) -> Workload:
    """The workload with enough requests for this spread of the baseline. `weights`: of all closed loops."""
    dataset = workload.dataset
    if dataset.min_requests is None or spread is None:
        return workload
    enough = max(dataset.min_requests, min(dataset.requests, enough_requests(spread, weights)))
    return replace(workload, dataset=replace(dataset, requests=enough, part=dataset.requests))
