"""The rule from rounds to a verdict (docs/gate.md#the-rule), with compared outputs (0018) and server failures."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from paceline.core import (
    BASELINE,
    INCUMBENT,
    Answers,
    ArmOutcome,
    ArmVerdict,
    Bounds,
    Gate,
    Measurement,
    Outcome,
    Verdict,
)
from paceline.gate.comparison import OPEN, Comparison, may_change
from paceline.gate.findings import Finding
from paceline.gate.limits import beside_incumbent, enforce_maxima
from paceline.gate.rounds import rounds_table

Verdicts = Mapping[str, ArmVerdict]
_OF_NO_ARM = (BASELINE, INCUMBENT)


def decide(
    gate: Gate,
    arms: Sequence[str],
    workloads: Mapping[str, float],
    measurements: Sequence[Measurement],
    answers: Sequence[Answers] = (),
    rated: Collection[str] = (),
) -> Verdict:
    """The verdict of these rounds. `arms` starts with the baseline, and ties go to the earlier arm; one of the others
    may be the incumbent, which the others are compared with, too. `workloads` maps names to weights; `answers` has one
    entry per round if outputs are compared; `rated` names the workloads at a rate.

    It may be called at any time: between two looks it returns the previous look's verdict, and `final` says whether
    more rounds could change it. A round that is missing or invalid for an arm is no evidence about that arm; the caller
    decides how often to repeat it. Raises ValueError, naming the argument, if the arguments are inconsistent.
    """
    for fault in _faults(gate, arms, workloads, measurements):
        raise ValueError(fault)
    comparisons = _comparisons(gate, arms, workloads, measurements, answers, rated)
    found: list[Verdicts] = [comparison.before_any_look() for comparison in comparisons]
    for n in gate.decide_after_rounds:
        verdicts = _together(found)
        if _stops(verdicts):
            break
        asked = {arm for arm, verdict in verdicts.items() if may_change(verdict)} | _doubtful(comparisons, verdicts, n)
        found = [one.at_look(n, known, asked) for one, known in zip(comparisons, found, strict=True)]
    verdicts = _together([one.with_losses(known) for one, known in zip(comparisons, found, strict=True)])
    verdict = Verdict(
        outcome=_outcome(verdicts),
        winner=_winner(verdicts, gate),
        rounds=max(one.rounds for one in verdicts.values()),
        arms=verdicts,
        final=_stops(verdicts) or all(one.last for one in _waiting(verdicts)),
    )
    return without_more_rounds(verdict) if verdict.final else verdict


def _comparisons(
    gate: Gate,
    arms: Sequence[str],
    workloads: Mapping[str, float],
    measurements: Sequence[Measurement],
    answers: Sequence[Answers],
    rated: Collection[str],
) -> tuple[Comparison, ...]:
    """With the baseline, and with the incumbent if there is one."""
    baseline, *others = arms
    counted = enforce_maxima(measurements, gate.limits)
    # The probability of a wrong verdict is split evenly over all looks and all arms of the run that may be promoted, or
    # replace the incumbent: the baseline is one of these.
    error = (1 - gate.confidence) / (len(others) * len(gate.decide_after_rounds))
    first = Comparison(
        rounds=rounds_table(baseline, workloads, counted),
        gate=gate,
        arms=others,
        error=error,
        rated=rated,
        answers={entry.round: entry for entry in answers},
    )
    if INCUMBENT not in others:
        return (first,)
    second = dataclasses.replace(
        first,
        rounds=rounds_table(INCUMBENT, workloads, counted),
        gate=beside_incumbent(gate),
        arms=[arm for arm in arms if arm != INCUMBENT],
        answers={},
    )
    return first, second


def so_far(
    gate: Gate,
    arms: Sequence[str],
    workloads: Mapping[str, float],
    measurements: Sequence[Measurement],
    answers: Sequence[Answers] = (),
    rated: Collection[str] = (),
) -> Verdict:
    """As `decide`, with the next look moved to the last complete round. Its bounds are provisional and decide nothing;
    there are none before two complete rounds."""
    comparisons = _comparisons(gate, arms, workloads, measurements, answers, rated)
    complete = max(len(one.rounds.complete(arm)) for one in comparisons for arm in one.arms)
    looks = gate.decide_after_rounds
    due = min((look for look in looks if look >= complete), default=looks[-1])
    now = tuple(max(complete, 2) if look == due else look for look in looks)
    return decide(dataclasses.replace(gate, decide_after_rounds=now), arms, workloads, measurements, answers, rated)


def undecided(verdict: Verdict) -> tuple[str, ...]:
    """Candidates that later rounds must still contain, in the order of arms: those that are undecided and have looks
    left; none once the verdict is final."""
    return () if verdict.final else tuple(name for name, arm in _candidates(verdict.arms).items() if _goes_on(arm))


def baseline_is_open(verdict: Verdict) -> bool:
    """Whether later rounds must show that the baseline may replace the incumbent, even without any candidate."""
    baseline = verdict.arms.get(BASELINE)
    return baseline is not None and not verdict.final and not _promotable(verdict.arms) and _goes_on(baseline)


def without_more_rounds(verdict: Verdict) -> Verdict:
    """The verdict if no more rounds follow: the baseline replaces the incumbent if it may and no candidate does."""
    baseline = verdict.arms.get(BASELINE)
    if verdict.outcome is Outcome.PROMOTE or baseline is None or baseline.outcome is not ArmOutcome.PROMOTABLE:
        return verdict
    return dataclasses.replace(verdict, outcome=Outcome.PROMOTE, winner=BASELINE)


def _goes_on(arm: ArmVerdict) -> bool:
    return may_change(arm) and not arm.last


# Baseline and incumbent.


def _doubtful(comparisons: Sequence[Comparison], verdicts: Verdicts, n: int) -> set[str]:
    """The baseline or the incumbent, if its server is shown to be unreliable beside the other's: the earlier one if
    both are, because the other one is then no longer compared with it."""
    if len(comparisons) < 2 or _out(verdicts):
        return set()
    first, second = comparisons
    since = {INCUMBENT: first.unreliable_by(n, INCUMBENT), BASELINE: second.unreliable_by(n, BASELINE)}
    shown = {arm: number for arm, number in since.items() if number is not None}
    return {min(shown, key=lambda arm: shown[arm])} if shown else set()


def _out(verdicts: Verdicts) -> str:
    """The one of baseline and incumbent that is unreliable: nothing is compared with it any more; "" if neither is."""
    return next((arm for arm in _OF_NO_ARM if arm in verdicts and _unreliable(verdicts[arm])), "")


def _unreliable(verdict: ArmVerdict) -> bool:
    return verdict.reason == Finding.UNRELIABLE


def _together(found: Sequence[Verdicts]) -> Verdicts:
    """One verdict per arm, of its comparison with the baseline and the one with the incumbent."""
    if len(found) < 2:
        return found[0]
    first, second = found
    candidates = [arm for arm in second if arm != BASELINE]
    baseline, incumbent = _beside_incumbent(second[BASELINE]), first[INCUMBENT]
    if _unreliable(incumbent):
        freed = dataclasses.replace(
            baseline,
            outcome=ArmOutcome.PROMOTABLE,
            reason=Finding.INCUMBENT_UNRELIABLE.value,
            message=f"the incumbent: {incumbent.message}",
        )
        alone = {arm: dataclasses.replace(first[arm], incumbent=second[arm].mean) for arm in candidates}
        return {BASELINE: freed, **alone, INCUMBENT: incumbent}
    if _unreliable(baseline):
        return {BASELINE: baseline, **{arm: _beside_incumbent(second[arm]) for arm in candidates}}
    return {BASELINE: baseline, **{arm: _both(first[arm], second[arm]) for arm in candidates}}


def _beside_incumbent(verdict: ArmVerdict) -> ArmVerdict:
    """Only the bounds of the mean are kept: all others are ratios to the baseline."""
    return dataclasses.replace(
        verdict, incumbent=verdict.mean, mean=None, rated=None, workloads={}, limits={}, lengths={}
    )


def _both(first: ArmVerdict, second: ArmVerdict) -> ArmVerdict:
    """Rejected if either is, promotable if both are; else as the one that more rounds can change least. The comparison
    with the baseline comes first."""
    deciding = min((first, second), key=_rank)
    passed = deciding.outcome is ArmOutcome.PROMOTABLE
    return dataclasses.replace(
        first,
        outcome=deciding.outcome,
        reason=deciding.reason,
        message=f"{first.message}; {second.message}" if passed else deciding.message,
        incumbent=second.mean,
        rounds=max(first.rounds, second.rounds),
        last=deciding.last,
        lost=deciding.lost,
    )


def _rank(verdict: ArmVerdict) -> int:
    if verdict.outcome not in OPEN:
        return 4 if verdict.outcome is ArmOutcome.PROMOTABLE else 0
    return 1 if not may_change(verdict) else 2 if verdict.last else 3


# The outcome.


def _candidates(verdicts: Verdicts) -> Verdicts:
    return {name: arm for name, arm in verdicts.items() if name not in _OF_NO_ARM}


def _speed(verdicts: Verdicts, arm: ArmVerdict) -> Bounds | None:
    """What candidates are ranked by: their mean, beside the baseline unless that is unreliable."""
    return arm.incumbent if _out(verdicts) == BASELINE else arm.mean


def _promotable(verdicts: Verdicts) -> dict[str, float]:
    """Promotable candidate → lower bound of its mean."""
    speeds = {name: _speed(verdicts, arm) for name, arm in _candidates(verdicts).items() if _passes(arm)}
    return {name: speed.lower for name, speed in speeds.items() if speed}


def _passes(arm: ArmVerdict) -> bool:
    return arm.outcome is ArmOutcome.PROMOTABLE


def _stops(verdicts: Verdicts) -> bool:
    """Every candidate is decided, or one is promotable and no undecided one can beat it; and without a promotable one
    the baseline is decided, too.

    A candidate without a look may still be the best: it must not lose because the harness failed.
    """
    waiting = [_speed(verdicts, arm) for arm in _candidates(verdicts).values() if may_change(arm)]
    best = max(_promotable(verdicts).values(), default=-math.inf)
    settled = all(speed is not None and speed.upper <= best for speed in waiting)
    return settled and (best > -math.inf or BASELINE not in verdicts or not may_change(verdicts[BASELINE]))


def _waiting(verdicts: Verdicts) -> list[ArmVerdict]:
    """What more rounds may decide: candidates, and the baseline unless a candidate is promotable."""
    asked = _candidates(verdicts) if _promotable(verdicts) else verdicts
    return [arm for name, arm in asked.items() if name != INCUMBENT and may_change(arm)]


def _outcome(verdicts: Verdicts) -> Outcome:
    if any(map(_passes, _candidates(verdicts).values())):
        return Outcome.PROMOTE
    outcomes = [arm.outcome for name, arm in verdicts.items() if name != INCUMBENT]
    if all(outcome is ArmOutcome.ERROR for outcome in outcomes):
        return Outcome.ERROR
    # A candidate that could not be measured is undecided: Reject would blame it for the harness.
    return Outcome.REJECT if all(outcome is ArmOutcome.REJECTED for outcome in outcomes) else Outcome.INCONCLUSIVE


def _winner(verdicts: Verdicts, gate: Gate) -> str | None:
    """The first candidate whose lower bound is within the variance floor of the best lower bound."""
    promotable = _promotable(verdicts)
    if not promotable:
        return None
    enough = math.log(max(promotable.values())) - gate.variance_floor
    return next(name for name, lower in promotable.items() if math.log(lower) >= enough)


def _faults(
    gate: Gate, arms: Sequence[str], workloads: Mapping[str, float], measurements: Sequence[Measurement]
) -> Iterator[str]:
    """Errors in the arguments; each names the argument."""
    if len(arms) < 2 or len(set(arms)) < len(arms):
        yield "arms: needs the baseline and at least one candidate, each once"
    if BASELINE in arms[1:]:
        yield f"arms: {BASELINE!r} must come first: the others are compared with the first arm"
    if INCUMBENT in arms and arms[0] != BASELINE:
        yield f"arms: {INCUMBENT!r} needs {BASELINE!r} as the first arm"
    if not math.fsum(workloads.values()) > 0:
        yield "workloads: needs at least one workload with a positive weight"
    looks = gate.decide_after_rounds
    if not looks or looks[0] < 2 or any(later <= earlier for earlier, later in pairwise(looks)):
        yield "decideAfterRounds: needs rising numbers of rounds, the first at least 2"
    cells = set()
    for i, m in enumerate(measurements):
        if m.arm not in arms:
            yield f"measurements[{i}].arm: unknown arm {m.arm!r}; there are {', '.join(arms)}"
        if m.workload not in workloads:
            yield f"measurements[{i}].workload: unknown workload {m.workload!r}; there are {', '.join(workloads)}"
        if (cell := (m.round, m.arm, m.workload)) in cells:
            yield f"measurements[{i}]: duplicate measurement of round {m.round}, arm {m.arm}, workload {m.workload}"
        cells.add(cell)
