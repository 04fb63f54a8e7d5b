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
        with_enough_requests(workload, spread_of(workload.name, records), weights, _share(run, workload, records))
        for workload in run.workloads
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


def share_of(size: int, gate: Gate) -> int:
    """Prompts for each round from a set of `size`; the warm-up and a round that is lost have one more share."""
    return size // (gate.decide_after_rounds[-1] + 1)


def size_for(share: int, gate: Gate) -> int:
    """Prompts of a set that has such a share for each round."""
    return share * (gate.decide_after_rounds[-1] + 1)


def with_enough_requests(workload: Workload, spread: float | None, weights: Sequence[float], share: int) -> Workload:
    """The workload with enough requests for this spread of the baseline: fewer than in the first round, or more if that
    sends as few as the steady window allows. `weights`: of all closed loops. `share`: the most, in that case."""
    dataset = workload.dataset
    if dataset.min_requests is None or spread is None:
        return workload
    most = dataset.requests if dataset.min_requests < dataset.requests else max(dataset.requests, share)
    enough = max(dataset.min_requests, min(most, enough_requests(spread, weights)))
    if enough == dataset.requests:
        return workload
    return replace(workload, dataset=replace(dataset, requests=enough, part=max(enough, dataset.requests)))


def _share(run: RunSpec, workload: Workload, records: Sequence[Round]) -> int:
    """0 if longer rounds may exceed a limit that a person has set, or if the size of the set is unknown."""
    if run.gpu_hours is not None or run.timeouts.workload is not None:
        return 0
    sizes = (record.prompts.get(workload.dataset.name, 0) for record in records)
    return share_of(next(filter(None, sizes), 0), run.gate)
