"""Judge one candidate at one look: promotable, rejected or undecided, with a sentence that explains it."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paceline.core import BASELINE, INCUMBENT, ArmOutcome, ArmVerdict, Bounds, Gate, Limit
from paceline.gate.interval import Interval, ratio
from paceline.gate.rates import RateMisses


class Finding(StrEnum):
    """Reasons for a candidate's verdict (`ArmVerdict.reason`)."""

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
    AS_FAST_AS_INCUMBENT = "AsFastAsIncumbent"
    SLOWER_THAN_INCUMBENT = "SlowerThanIncumbent"
    MAY_BE_SLOWER_THAN_INCUMBENT = "MayBeSlowerThanIncumbent"
    INCUMBENT_UNRELIABLE = "IncumbentUnreliable"


BESIDE_INCUMBENT: Mapping[Finding, Finding] = {
    Finding.FASTER_THAN_MINIMUM: Finding.AS_FAST_AS_INCUMBENT,
    Finding.SLOWER_THAN_BASELINE: Finding.SLOWER_THAN_INCUMBENT,
    Finding.WORKLOAD_REGRESSED: Finding.SLOWER_THAN_INCUMBENT,
    Finding.BELOW_MINIMUM_IMPROVEMENT: Finding.SLOWER_THAN_INCUMBENT,
    Finding.NOT_ENOUGH_EVIDENCE: Finding.MAY_BE_SLOWER_THAN_INCUMBENT,
}
"""Finding of a comparison with the baseline → what it is called in one with the incumbent; others keep their name."""


def explain(verdict: ArmVerdict) -> str:
    """The verdict in one line: `Reason: numbers; lost rounds.`"""
    details = "; ".join(filter(None, (verdict.message, verdict.lost)))
    return f"{verdict.reason}: {details}" if details else verdict.reason


OTHER_LENGTH = 0.05
"""Largest tolerated change of the mean output length, as a fraction of the baseline's. Greedy answers that diverge by
rounding end earlier as often as later, so the difference cancels over many prompts. A larger one means that the
candidate gives other answers, and their tokens per second cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InterimBounds:
    """A candidate's bounds after its first `rounds` complete rounds."""

    rounds: int
    mean: Interval
    """Weighted over the closed-loop workloads, or over those at a rate if there are no others."""
    rated: Interval | None
    """Weighted over the workloads at a rate; None unless there are closed loops too."""
    workloads: Mapping[str, Interval]
    limits: Mapping[Limit, Mapping[str, Interval | None]]
    """Limit → workload ("" for a metric of the server) → bounds; None if a round lacks the metric."""
    lengths: Mapping[str, Interval]
    """Workload → bounds of the output tokens; a workload is absent if a round did not count them."""
    saturated: tuple[str, ...] = ()
    """One sentence for each workload that the means leave out."""
    rate_misses: Mapping[str, RateMisses] = field(default_factory=dict)
    """Workload → rounds in which only one arm missed the request rate; absent if the candidate never missed it
    alone."""
    arm: str = "candidate"
    """What sentences call the arm, and what it is compared with."""
    reference: str = BASELINE

    @property
    def means(self) -> Mapping[str, Interval]:
        """Name → mean. Closed loops and request rates are judged apart: a gain in one does not offset the other."""
        if self.rated is None:
            return {"mean": self.mean}
        return {"mean of closed loops": self.mean, "mean at a rate": self.rated}


def judge_interim(interim: InterimBounds, gate: Gate) -> ArmVerdict:
    """Reject by the first check that fails; else promote if everything is shown; else leave undecided."""
    failed = ((finding, list(check(interim, gate))) for finding, check in REJECTIONS)
    rejection = next(((finding, objections) for finding, objections in failed if objections), None)
    missing = list(_not_shown(interim, gate))
    if rejection:
        outcome, reason, sentences = ArmOutcome.REJECTED, *rejection
    elif missing:
        outcome, reason, sentences = (
            ArmOutcome.UNDECIDED,
            Finding.NOT_ENOUGH_EVIDENCE,
            [*missing, _margin_in_words(interim)],
        )
    else:
        outcome, reason, sentences = ArmOutcome.PROMOTABLE, Finding.FASTER_THAN_MINIMUM, [_means(interim)]
    if interim.reference == INCUMBENT:
        reason = BESIDE_INCUMBENT.get(reason, reason)
        sentences = [f"beside the incumbent: {sentences[0]}", *sentences[1:]]
    limits: dict[str, Mapping[str, Bounds]] = {
        limit.metric: {w: interval.bounds for w, interval in workloads.items() if interval}
        for limit, workloads in interim.limits.items()
        if limit.max is None
    }
    return ArmVerdict(
        outcome=outcome,
        reason=reason.value,
        message="; ".join([*sentences, *interim.saturated]),
        mean=interim.mean.bounds,
        rated=interim.rated.bounds if interim.rated else None,
        workloads={w: interval.bounds for w, interval in interim.workloads.items()},
        limits=limits,
        lengths={w: interval.bounds for w, interval in interim.lengths.items()},
        margin=_margin(interim),
        rounds=interim.rounds,
        last=interim.rounds == gate.decide_after_rounds[-1],
    )


# Thresholds, as logarithms.


def _minimum(gate: Gate) -> float:
    return math.log1p(gate.min_improvement)


def _tolerated(gate: Gate) -> float:
    return math.log1p(-gate.max_regression)


def _broken(limit: Limit, interval: Interval) -> bool:
    """The whole interval lies beyond the limit."""
    if limit.max_decrease is not None:
        return interval.upper < math.log1p(-limit.max_decrease)
    return interval.lower > math.log1p(limit.max_increase or 0.0)


def _kept(limit: Limit, interval: Interval) -> bool:
    """The whole interval lies within the limit. False for NaN."""
    if limit.max_decrease is not None:
        return interval.lower > math.log1p(-limit.max_decrease)
    return interval.upper < math.log1p(limit.max_increase or 0.0)


def threshold(limit: Limit) -> float:
    """The largest (or, for a decrease, smallest) allowed ratio of the candidate's metric to the baseline's."""
    return 1 - limit.max_decrease if limit.max_decrease is not None else 1 + (limit.max_increase or 0.0)


# Rejections: a bound lies on the wrong side of a threshold. Each check yields its objections; the worst comes first.


def _misses_rate(interim: InterimBounds, _: Gate) -> Iterator[str]:
    for name, misses in interim.rate_misses.items():
        if misses.shown:
            yield f"on {name} {_missed_rate(misses, interim)}"


def _slower(interim: InterimBounds, gate: Gate) -> Iterator[str]:
    equal = min(0.0, _minimum(gate))
    for name, mean in interim.means.items():
        if mean.upper < equal:
            yield f"{name} {_shown(mean)} is below {_ratio(equal) if equal else '1x'}"


def _regressed(interim: InterimBounds, gate: Gate) -> Iterator[str]:
    for name, interval in interim.workloads.items():
        if interval.upper < _tolerated(gate):
            yield f"{name} {_shown(interval)} is below {_ratio(_tolerated(gate))}, while the {_means(interim)}"


def _below_minimum(interim: InterimBounds, gate: Gate) -> Iterator[str]:
    for name, mean in interim.means.items():
        if mean.upper < _minimum(gate):
            yield f"{name} {_shown(mean)} is below {_ratio(_minimum(gate))}"


def _over_limit(interim: InterimBounds, _: Gate) -> Iterator[str]:
    for limit, workloads in interim.limits.items():
        for name, interval in workloads.items():
            if interval and _broken(limit, interval):
                side = "below" if limit.max_decrease is not None else "above"
                yield f"{_named(limit, name)} {_shown(interval)} is {side} {threshold(limit):.3f}x"


def _other_lengths(interim: InterimBounds, _: Gate) -> Iterator[str]:
    for name, interval in interim.lengths.items():
        more = interval.lower > math.log1p(OTHER_LENGTH)
        if more or interval.upper < math.log1p(-OTHER_LENGTH):
            change = f"{abs(math.expm1(interval.mean)):.1%} {'more' if more else 'fewer'}"
            yield (
                f"on {name} the {interim.arm} writes {change} tokens than the {interim.reference}, "
                f"{_shown(interval)}: more than "
                f"{OTHER_LENGTH:.0%} is shown"
            )


REJECTIONS: tuple[tuple[Finding, Callable[[InterimBounds, Gate], Iterator[str]]], ...] = (
    (Finding.RATE_NOT_KEPT, _misses_rate),
    (Finding.SLOWER_THAN_BASELINE, _slower),
    (Finding.WORKLOAD_REGRESSED, _regressed),
    (Finding.BELOW_MINIMUM_IMPROVEMENT, _below_minimum),
    (Finding.LIMIT_EXCEEDED, _over_limit),
    (Finding.LENGTHS_DIFFER, _other_lengths),
)


def _not_shown(interim: InterimBounds, gate: Gate) -> Iterator[str]:
    """Conditions for promotion that the rounds have not shown yet. NaN counts as not shown."""
    for name, mean in interim.means.items():
        if not mean.lower > _minimum(gate):
            yield f"{name} {_shown(mean)} is not shown to be above {_ratio(_minimum(gate))}"
    for name, interval in interim.workloads.items():
        if not interval.lower > _tolerated(gate):
            yield f"{name} {_shown(interval)} is not shown to be above {_ratio(_tolerated(gate))}"
    for name, misses in interim.rate_misses.items():
        if not misses.kept:
            yield f"on {name} {_missed_rate(misses, interim)}"
    for limit, workloads in interim.limits.items():
        for name, change in workloads.items():
            if change is None:
                yield f"{_named(limit, name)} is missing in a round"
            elif not _kept(limit, change):
                side = "above" if limit.max_decrease is not None else "below"
                yield f"{_named(limit, name)} {_shown(change)} is not shown to be {side} {threshold(limit):.3f}x"


def _margin(interim: InterimBounds) -> float:
    return ratio(interim.mean.reach) - 1


def _margin_in_words(interim: InterimBounds) -> str:
    margin = _margin(interim)
    return f"margin over {READABLE:.0%}" if margin > READABLE else f"margin {margin:.1%}"


def _means(interim: InterimBounds) -> str:
    return ", ".join(f"{name} {_shown(mean)}" for name, mean in interim.means.items())


def _missed_rate(misses: RateMisses, interim: InterimBounds) -> str:
    missed, arm, reference = f"{misses.candidate_only} of {misses.rounds} rounds", interim.arm, interim.reference
    comparison = (
        f"only the {arm} missed the rate in {missed}, only the {reference} in {misses.baseline_only}"
        if misses.baseline_only
        else f"the {arm} missed the rate in {missed} in which the {reference} kept it"
    )
    return f"{comparison}; lower requestRate"


def _named(limit: Limit, workload: str) -> str:
    return f"{limit.metric} on {workload}" if workload else limit.metric


def _shown(interval: Interval) -> str:
    return shown(interval.bounds)


def shown(bounds: Bounds) -> str:
    return f"{_figure(bounds.ratio)}x ({_figure(bounds.lower)} to {_figure(bounds.upper)})"


READABLE = 1e6
"""Largest ratio that is printed, because two rounds that are far apart give a bound of hundreds of digits, or
infinity."""


def _figure(value: float) -> str:
    return f"over {READABLE:.0f}" if value > READABLE else f"{value:.3f}"


def _ratio(log: float) -> str:
    return f"{math.exp(log):.3f}x"
