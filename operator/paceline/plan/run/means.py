"""Means over the rounds: of a promoted candidate, for the guard's comparison with its servers; and of the energy."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, fsum, log

from paceline.api.round import PointRecord
from paceline.core import BASELINE, Workload
from paceline.core.record import finite
from paceline.plan.run.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """Requests under way, and times of a request in seconds."""

    concurrency: float | None
    mean_ttft: float | None
    mean_tpot: float | None


def means_of(evidence: Evidence, arm: str, name: str) -> Means:
    """Means of an arm on the workload with this name."""
    workload = next(one for one in evidence.spec.workloads if one.name == name)
    points = evidence.valid_points.get((arm, name), ())
    return Means(
        concurrency=_mean(_under_way(point, workload) for point in points),
        mean_ttft=_mean(point.mean_ttft for point in points),
        mean_tpot=_mean(point.mean_tpot for point in points),
    )


def energy_ratio(evidence: Evidence, arm: str, workload: str) -> float | None:
    """The arm's energy per token over the baseline's: geometric mean of the rounds that know both."""
    used = {
        (one.round, one.arm): joules
        for one in evidence.measurements
        if one.valid and one.workload == workload and (joules := one.metrics.get("energyPerToken"))
    }
    logs = (
        log(joules / used[number, BASELINE])
        for (number, name), joules in used.items()
        if name == arm and (number, BASELINE) in used
    )
    mean = _mean(logs)
    return None if mean is None else exp(mean)


def _under_way(point: PointRecord, workload: Workload) -> float | None:
    """Mean number of requests under way; at a rate by Little's law. None for a ramp, which has many loads."""
    if workload.levels:
        return None
    if workload.rate is None:
        return point.mean_concurrency or float(workload.concurrency)
    return (point.kept_rate or workload.rate) * point.mean_e2e if point.mean_e2e else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if finite(value) is not None and value is not None]
    return fsum(known) / len(known) if known else None
