"""One candidate at one look: promotable, rejected or undecided, and the sentence that says why."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from paceline.core import ArmOutcome, ArmVerdict, Bounds, Gate
from paceline.gate.interval import Interval, ratio


class Finding(StrEnum):
    """Why a candidate's verdict is what it is: `ArmVerdict.reason`."""

    FASTER_THAN_MINIMUM = "FasterThanMinimum"
    SLOWER_THAN_BASELINE = "SlowerThanBaseline"
    WORKLOAD_REGRESSED = "WorkloadRegressed"
    BELOW_MINIMUM_IMPROVEMENT = "BelowMinimumImprovement"
    LIMIT_EXCEEDED = "LimitExceeded"
    NOTHING_ACCEPTED = "NothingAccepted"
    OUTPUTS_DIFFER = "OutputsDiffer"
    OUTPUTS_UNSTABLE = "OutputsUnstable"
    NOT_ENOUGH_EVIDENCE = "NotEnoughEvidence"
    TOO_FEW_ROUNDS = "TooFewRounds"
    NO_COMPLETE_ROUND = "NoCompleteRound"


def explain(verdict: ArmVerdict) -> str:
    """`Reason: the numbers behind it.`"""
    return f"{verdict.reason}: {verdict.message}" if verdict.message else verdict.reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A candidate's bounds after its first `rounds` complete rounds."""

    rounds: int
    mean: Interval
    """Over workloads, by weight."""
    workloads: Mapping[str, Interval]
    limits: Mapping[str, Mapping[str, Interval | None]]
    """Metric → workload → bounds; None where a round lacks the metric."""


def judge(look: Look, gate: Gate) -> ArmVerdict:
    """Rejected by the first check that objects, else promotable if all is shown, else undecided."""
    objections = ((finding, list(check(look, gate))) for finding, check in REJECTIONS)
    rejection = next(((finding, said) for finding, said in objections if said), None)
    missing = list(_not_shown(look, gate))
    if rejection:
        outcome, reason, said = ArmOutcome.REJECTED, *rejection
    elif missing:
        outcome, reason, said = ArmOutcome.UNDECIDED, Finding.NOT_ENOUGH_EVIDENCE, [*missing, _floor(look)]
    else:
        outcome, reason, said = ArmOutcome.PROMOTABLE, Finding.FASTER_THAN_MINIMUM, [_mean(look)]
    limits = {
        metric: {w: found.bounds for w, found in workloads.items() if found}
        for metric, workloads in look.limits.items()
    }
    return ArmVerdict(
        outcome=outcome,
        reason=reason.value,
        message="; ".join(said),
        mean=look.mean.bounds,
        workloads={w: found.bounds for w, found in look.workloads.items()},
        limits=limits,
        aa_floor=_aa_floor(look),
        rounds=look.rounds,
        last=look.rounds == gate.decide_after_rounds[-1],
    )


# What is asked, as logarithms.


def _minimum(gate: Gate) -> float:
    return math.log1p(gate.minimum_improvement)


def _tolerated(gate: Gate) -> float:
    return math.log1p(-gate.regression_tolerance)


def _allowed(gate: Gate, metric: str) -> float:
    return min(math.log1p(limit.maximum_increase) for limit in gate.limits if limit.metric == metric)


# Rejected: a bound on the wrong side of a threshold. Each check says its objections; the worst kind comes first.


def _slower(look: Look, gate: Gate) -> Iterator[str]:
    if look.mean.upper < min(0.0, _minimum(gate)):
        yield f"{_mean(look)} is below 1x"


def _regressed(look: Look, gate: Gate) -> Iterator[str]:
    for name, found in look.workloads.items():
        if found.upper < _tolerated(gate):
            yield f"{name} {_shown(found)} is below {_ratio(_tolerated(gate))}, while the {_mean(look)}"


def _below_minimum(look: Look, gate: Gate) -> Iterator[str]:
    if look.mean.upper < _minimum(gate):
        yield f"{_mean(look)} is below {_ratio(_minimum(gate))}"


def _over_limit(look: Look, gate: Gate) -> Iterator[str]:
    for metric, workloads in look.limits.items():
        for name, found in workloads.items():
            if found and found.lower > _allowed(gate, metric):
                yield f"{metric} on {name} {_shown(found)} is above {_ratio(_allowed(gate, metric))}"


REJECTIONS: tuple[tuple[Finding, Callable[[Look, Gate], Iterator[str]]], ...] = (
    (Finding.SLOWER_THAN_BASELINE, _slower),
    (Finding.WORKLOAD_REGRESSED, _regressed),
    (Finding.BELOW_MINIMUM_IMPROVEMENT, _below_minimum),
    (Finding.LIMIT_EXCEEDED, _over_limit),
)


def _not_shown(look: Look, gate: Gate) -> Iterator[str]:
    """What still has to be shown before the candidate may be promoted. Written so that NaN is never shown."""
    if not look.mean.lower > _minimum(gate):
        yield f"{_mean(look)} is not shown to be above {_ratio(_minimum(gate))}"
    for name, found in look.workloads.items():
        if not found.lower > _tolerated(gate):
            yield f"{name} {_shown(found)} is not shown to be above {_ratio(_tolerated(gate))}"
    for metric, workloads in look.limits.items():
        for name, increase in workloads.items():
            if increase is None:
                yield f"{metric} on {name} is missing in a round"
            elif not increase.upper < _allowed(gate, metric):
                yield f"{metric} on {name} {_shown(increase)} is not shown to be below {_ratio(_allowed(gate, metric))}"


def _aa_floor(look: Look) -> float:
    return ratio(look.mean.reach) - 1


def _floor(look: Look) -> str:
    return f"A/A floor {_aa_floor(look):.1%}"


def _mean(look: Look) -> str:
    return f"mean {_shown(look.mean)}"


def _shown(found: Interval) -> str:
    return shown(found.bounds)


def shown(bounds: Bounds) -> str:
    return f"{bounds.ratio:.3f}x ({bounds.lower:.3f} to {bounds.upper:.3f})"


def _ratio(log: float) -> str:
    return f"{math.exp(log):.3f}x"
