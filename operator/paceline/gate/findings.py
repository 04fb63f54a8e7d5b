"""One candidate at one look: promotable, rejected or undecided, and the sentence that says why."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paceline.core import ArmOutcome, ArmVerdict, Bounds, Gate, Limit
from paceline.gate.interval import Interval, ratio
from paceline.gate.rates import Behind


class Finding(StrEnum):
    """Why a candidate's verdict is what it is: `ArmVerdict.reason`."""

    FASTER_THAN_MINIMUM = "FasterThanMinimum"
    SLOWER_THAN_BASELINE = "SlowerThanBaseline"
    WORKLOAD_REGRESSED = "WorkloadRegressed"
    BELOW_MINIMUM_IMPROVEMENT = "BelowMinimumImprovement"
    LIMIT_EXCEEDED = "LimitExceeded"
    LENGTHS_DIFFER = "LengthsDiffer"
    UNRELIABLE = "Unreliable"
    RATE_NOT_KEPT = "RateNotKept"
    SATURATED = "Saturated"
    NOTHING_ACCEPTED = "NothingAccepted"
    OUTPUTS_DIFFER = "OutputsDiffer"
    OUTPUTS_UNSTABLE = "OutputsUnstable"
    NOT_ENOUGH_EVIDENCE = "NotEnoughEvidence"
    TOO_FEW_ROUNDS = "TooFewRounds"
    NO_COMPLETE_ROUND = "NoCompleteRound"


def explain(verdict: ArmVerdict) -> str:
    """`Reason: the numbers behind it; what was lost.`"""
    said = "; ".join(filter(None, (verdict.message, verdict.lost)))
    return f"{verdict.reason}: {said}" if said else verdict.reason


OTHER_LENGTH = 0.05
"""Of its baseline's output tokens, by which fraction a candidate may be shown to write more or fewer. Greedy answers
that part by rounding end elsewhere, sooner as often as later: over many prompts that is nothing. What stays is a
candidate that answers otherwise, and tokens per second of other answers are no comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A candidate's bounds after its first `rounds` complete rounds."""

    rounds: int
    mean: Interval
    """Over workloads, by weight: over closed loops, or over what arrives at a rate where there is nothing else."""
    rated: Interval | None
    """Over what arrives at a rate, where there are closed loops besides."""
    workloads: Mapping[str, Interval]
    limits: Mapping[Limit, Mapping[str, Interval | None]]
    """Limit → workload → bounds; None where a round lacks the metric. "" where the metric is of the server."""
    lengths: Mapping[str, Interval]
    """Workload → bounds of the output tokens; without one of which a round does not know them."""
    saturated: tuple[str, ...] = ()
    """Workloads that are left out of the means, each in a sentence."""
    behind: Mapping[str, Behind] = field(default_factory=dict)
    """Workload → in how many rounds the candidate alone did not keep its rate; without those where it always did."""

    @property
    def means(self) -> Mapping[str, Interval]:
        """By their names. One of closed loops and one at a rate are two questions: neither pays for the other."""
        if self.rated is None:
            return {"mean": self.mean}
        return {"mean of closed loops": self.mean, "mean at a rate": self.rated}


def judge(look: Look, gate: Gate) -> ArmVerdict:
    """Rejected by the first check that objects, else promotable if all is shown, else undecided."""
    objections = ((finding, list(check(look, gate))) for finding, check in REJECTIONS)
    rejection = next(((finding, said) for finding, said in objections if said), None)
    missing = list(_not_shown(look, gate))
    if rejection:
        outcome, reason, said = ArmOutcome.REJECTED, *rejection
    elif missing:
        outcome, reason, said = ArmOutcome.UNDECIDED, Finding.NOT_ENOUGH_EVIDENCE, [*missing, _margin_in_words(look)]
    else:
        outcome, reason, said = ArmOutcome.PROMOTABLE, Finding.FASTER_THAN_MINIMUM, [_means(look)]
    limits = {
        limit.metric: {w: found.bounds for w, found in workloads.items() if found}
        for limit, workloads in look.limits.items()
        if limit.maximum is None
    }
    return ArmVerdict(
        outcome=outcome,
        reason=reason.value,
        message="; ".join([*said, *look.saturated]),
        mean=look.mean.bounds,
        rated=look.rated.bounds if look.rated else None,
        workloads={w: found.bounds for w, found in look.workloads.items()},
        limits=limits,
        lengths={w: found.bounds for w, found in look.lengths.items()},
        margin=_margin(look),
        rounds=look.rounds,
        last=look.rounds == gate.decide_after_rounds[-1],
    )


# What is asked, as logarithms.


def _minimum(gate: Gate) -> float:
    return math.log1p(gate.minimum_improvement)


def _tolerated(gate: Gate) -> float:
    return math.log1p(-gate.regression_tolerance)


def _broken(limit: Limit, found: Interval) -> bool:
    """Shown to be on the wrong side."""
    if limit.maximum_decrease is not None:
        return found.upper < math.log1p(-limit.maximum_decrease)
    return found.lower > math.log1p(limit.maximum_increase or 0.0)


def _kept(limit: Limit, found: Interval) -> bool:
    """Shown to be on the right side. Written so that NaN is never shown."""
    if limit.maximum_decrease is not None:
        return found.lower > math.log1p(-limit.maximum_decrease)
    return found.upper < math.log1p(limit.maximum_increase or 0.0)


def threshold(limit: Limit) -> float:
    """What the candidate's metric over the baseline's is held against."""
    return 1 - limit.maximum_decrease if limit.maximum_decrease is not None else 1 + (limit.maximum_increase or 0.0)


# Rejected: a bound on the wrong side of a threshold. Each check says its objections; the worst kind comes first.


def _falls_behind(look: Look, _: Gate) -> Iterator[str]:
    for name, found in look.behind.items():
        if found.shown:
            yield f"on {name} {_behind(found)}"


def _slower(look: Look, gate: Gate) -> Iterator[str]:
    for name, mean in look.means.items():
        if mean.upper < min(0.0, _minimum(gate)):
            yield f"{name} {_shown(mean)} is below 1x"


def _regressed(look: Look, gate: Gate) -> Iterator[str]:
    for name, found in look.workloads.items():
        if found.upper < _tolerated(gate):
            yield f"{name} {_shown(found)} is below {_ratio(_tolerated(gate))}, while the {_means(look)}"


def _below_minimum(look: Look, gate: Gate) -> Iterator[str]:
    for name, mean in look.means.items():
        if mean.upper < _minimum(gate):
            yield f"{name} {_shown(mean)} is below {_ratio(_minimum(gate))}"


def _over_limit(look: Look, _: Gate) -> Iterator[str]:
    for limit, workloads in look.limits.items():
        for name, found in workloads.items():
            if found and _broken(limit, found):
                side = "below" if limit.maximum_decrease is not None else "above"
                yield f"{_named(limit, name)} {_shown(found)} is {side} {threshold(limit):.3f}x"


def _other_lengths(look: Look, _: Gate) -> Iterator[str]:
    for name, found in look.lengths.items():
        more = found.lower > math.log1p(OTHER_LENGTH)
        if more or found.upper < math.log1p(-OTHER_LENGTH):
            yield (
                f"on {name} it writes {abs(math.expm1(found.mean)):.1%} {'more' if more else 'fewer'} tokens than the "
                f"baseline, {_shown(found)}: shown to be beyond {OTHER_LENGTH:.0%}"
            )


REJECTIONS: tuple[tuple[Finding, Callable[[Look, Gate], Iterator[str]]], ...] = (
    (Finding.RATE_NOT_KEPT, _falls_behind),
    (Finding.SLOWER_THAN_BASELINE, _slower),
    (Finding.WORKLOAD_REGRESSED, _regressed),
    (Finding.BELOW_MINIMUM_IMPROVEMENT, _below_minimum),
    (Finding.LIMIT_EXCEEDED, _over_limit),
    (Finding.LENGTHS_DIFFER, _other_lengths),
)


def _not_shown(look: Look, gate: Gate) -> Iterator[str]:
    """What still has to be shown before the candidate may be promoted. Written so that NaN is never shown."""
    for name, mean in look.means.items():
        if not mean.lower > _minimum(gate):
            yield f"{name} {_shown(mean)} is not shown to be above {_ratio(_minimum(gate))}"
    for name, found in look.workloads.items():
        if not found.lower > _tolerated(gate):
            yield f"{name} {_shown(found)} is not shown to be above {_ratio(_tolerated(gate))}"
    for name, behind in look.behind.items():
        if not behind.kept:
            yield f"on {name} {_behind(behind)}"
    for limit, workloads in look.limits.items():
        for name, change in workloads.items():
            if change is None:
                yield f"{_named(limit, name)} is missing in a round"
            elif not _kept(limit, change):
                side = "above" if limit.maximum_decrease is not None else "below"
                yield f"{_named(limit, name)} {_shown(change)} is not shown to be {side} {threshold(limit):.3f}x"


def _margin(look: Look) -> float:
    return ratio(look.mean.reach) - 1


def _margin_in_words(look: Look) -> str:
    margin = _margin(look)
    return f"margin over {READABLE:.0%}" if margin > READABLE else f"margin {margin:.1%}"


def _means(look: Look) -> str:
    return ", ".join(f"{name} {_shown(mean)}" for name, mean in look.means.items())


def _behind(found: Behind) -> str:
    times = f"{found.times} of {found.rounds} rounds"
    said = (
        f"it alone did not keep the rate in {times}, the baseline alone in {found.theirs}"
        if found.theirs
        else f"it did not keep the rate in {times}, where the baseline did"
    )
    return f"{said}; a lower requestRate may suit both"


def _named(limit: Limit, workload: str) -> str:
    return f"{limit.metric} on {workload}" if workload else limit.metric


def _shown(found: Interval) -> str:
    return shown(found.bounds)


def shown(bounds: Bounds) -> str:
    return f"{_figure(bounds.ratio)}x ({_figure(bounds.lower)} to {_figure(bounds.upper)})"


READABLE = 1e6
"""Of a ratio: two rounds that are far apart have a bound of hundreds of digits, or none."""


def _figure(value: float) -> str:
    return f"over {READABLE:.0f}" if value > READABLE else f"{value:.3f}"


def _ratio(log: float) -> str:
    return f"{math.exp(log):.3f}x"
