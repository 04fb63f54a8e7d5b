"""The rule from rounds to a verdict (docs/gate.md#the-rule), with compared outputs (0018) and server failures."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from paceline.core import BASELINE, Answers, ArmOutcome, ArmVerdict, Gate, Measurement, Outcome, Verdict
from paceline.gate.findings import Finding, InterimBounds, judge_interim
from paceline.gate.interval import Interval, interval
from paceline.gate.limits import enforce_maxima, limits, metric_ratios, unknown
from paceline.gate.losses import lost, shown_unreliable, unreliable
from paceline.gate.outputs import OutputComparison, compare_outputs, first_difference
from paceline.gate.rates import rate_misses
from paceline.gate.rounds import Rounds, rounds_table, weighted_means

OPEN = (ArmOutcome.UNDECIDED, ArmOutcome.ERROR)
_CLOSED = (Finding.OUTPUTS_UNSTABLE, Finding.SATURATED)
"""Reasons for "undecided" that more rounds cannot change: the baseline's own answers vary, or it keeps no request
rate."""
_LENGTH = "outputTokens"
"""The metric whose change shows that a candidate's answers are longer or shorter."""


def _open(verdict: ArmVerdict) -> bool:
    """More rounds may decide this candidate."""
    return verdict.outcome in OPEN and verdict.reason not in _CLOSED


def decide(
    gate: Gate,
    arms: Sequence[str],
    workloads: Mapping[str, float],
    measurements: Sequence[Measurement],
    answers: Sequence[Answers] = (),
    rated: Collection[str] = (),
) -> Verdict:
    """The verdict of these rounds. `arms` starts with the baseline, and ties go to the earlier arm; `workloads` maps
    names to weights; `answers` has one entry per round if outputs are compared; `rated` names the workloads at a rate.

    It may be called at any time: between two looks it returns the previous look's verdict, and `final` says whether
    more rounds could change it. A round that is missing or invalid for an arm is no evidence about that arm; the caller
    decides how often to repeat it. Raises ValueError, naming the argument, if the arguments are inconsistent.
    """
    for fault in _faults(gate, arms, workloads, measurements):
        raise ValueError(fault)
    baseline, *candidates = arms
    rounds = rounds_table(baseline, workloads, enforce_maxima(measurements, gate.limits))
    complete = {arm: rounds.complete(arm) for arm in candidates}
    # The probability of a wrong verdict is split evenly over all candidates of the run and all looks.
    error = (1 - gate.confidence) / (len(candidates) * len(gate.decide_after_rounds))
    unreliable_since = {arm: since for arm in candidates if (since := shown_unreliable(rounds, arm)) is not None}

    answers_of = {entry.round: entry for entry in answers}
    differences = {
        arm: difference for arm in candidates if (difference := first_difference(answers_of, arm, complete[arm]))
    }

    verdicts: dict[str, ArmVerdict] = {arm: _before_any_look(rounds, gate, arm, complete[arm]) for arm in candidates}
    used = max(verdict.rounds for verdict in verdicts.values())
    for n in gate.decide_after_rounds:
        if _stops(verdicts):
            break
        verdicts |= _rejected_for_outputs(verdicts, {arm: d for arm, d in differences.items() if d.rounds <= n})
        due = {arm: since for arm, since in unreliable_since.items() if since < _after(complete[arm], n)}
        verdicts |= _rejected_for_failures(rounds, verdicts, due)
        due_now = [arm for arm in candidates if _open(verdicts[arm]) and len(complete[arm]) >= n]
        for arm in due_now:
            verdict = _judged(rounds, gate, arm, complete[arm][:n], error, rated)
            verdicts[arm] = (
                _comparable(verdict, compare_outputs(answers_of, arm, complete[arm][:n])) if answers else verdict
            )
        used = n if due_now else used
    used = max(used, *(verdict.rounds for verdict in verdicts.values()))
    verdicts = {arm: _with_losses(rounds, verdict, arm, complete[arm]) for arm, verdict in verdicts.items()}

    outcome = _outcome(verdicts)
    waiting = [arm for arm in candidates if _open(verdicts[arm])]
    return Verdict(
        outcome=outcome,
        winner=_winner(verdicts, gate) if outcome is Outcome.PROMOTE else None,
        rounds=used,
        arms=verdicts,
        final=_stops(verdicts) or all(len(complete[arm]) >= gate.decide_after_rounds[-1] for arm in waiting),
    )


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
    rounds = rounds_table(arms[0], workloads, enforce_maxima(measurements, gate.limits))
    complete = max(len(rounds.complete(arm)) for arm in arms[1:])
    looks = gate.decide_after_rounds
    due = min((look for look in looks if look >= complete), default=looks[-1])
    now = tuple(max(complete, 2) if look == due else look for look in looks)
    return decide(dataclasses.replace(gate, decide_after_rounds=now), arms, workloads, measurements, answers, rated)


def undecided(verdict: Verdict) -> tuple[str, ...]:
    """Candidates that later rounds must still contain, in the order of arms: those that are undecided and have looks
    left; none once the verdict is final."""
    return () if verdict.final else tuple(name for name, arm in verdict.arms.items() if _open(arm) and not arm.last)


def _before_any_look(rounds: Rounds, gate: Gate, arm: str, complete: Sequence[int]) -> ArmVerdict:
    """The verdict before any look. One round suffices to reject a draft with no accepted token."""
    if not complete:
        return ArmVerdict(outcome=ArmOutcome.ERROR, reason=Finding.NO_COMPLETE_ROUND.value)
    if empty := rounds.nothing_accepted(arm, complete[0]):
        message = f"the target accepted no draft token on {', '.join(empty)}"
        return ArmVerdict(outcome=ArmOutcome.REJECTED, reason=Finding.NOTHING_ACCEPTED.value, message=message, rounds=1)
    message = f"complete rounds: {len(complete)}, the first look needs {gate.decide_after_rounds[0]}"
    return ArmVerdict(outcome=ArmOutcome.ERROR, reason=Finding.TOO_FEW_ROUNDS.value, message=message)


def _rejected_for_outputs(
    verdicts: Mapping[str, ArmVerdict], differences: Mapping[str, OutputComparison]
) -> dict[str, ArmVerdict]:
    """Open candidates whose answers differ. A verdict that was final before the difference stays."""
    return {arm: _different(comparison) for arm, comparison in differences.items() if _open(verdicts[arm])}


def _different(comparison: OutputComparison) -> ArmVerdict:
    message = (
        f"its answers differ from the baseline's, beyond near ties, on {len(comparison.diverged)} of "
        f"{len(comparison.settled)} comparable prompts (of {comparison.samples}; comparable: the baseline answered "
        f"identically in all {comparison.rounds} rounds)"
    )
    return ArmVerdict(
        outcome=ArmOutcome.REJECTED, reason=Finding.OUTPUTS_DIFFER.value, message=message, rounds=comparison.rounds
    )


def _comparable(verdict: ArmVerdict, comparison: OutputComparison) -> ArmVerdict:
    """A baseline whose own answers vary blocks promotion: outputs cannot be compared with it."""
    if verdict.outcome is not ArmOutcome.PROMOTABLE or comparison.enough:
        return verdict
    message = (
        f"{verdict.message}; the baseline answered only {len(comparison.settled)} of {comparison.samples} prompts "
        f"identically in {comparison.rounds} rounds, so outputs cannot be compared"
    )
    return dataclasses.replace(
        verdict, outcome=ArmOutcome.UNDECIDED, reason=Finding.OUTPUTS_UNSTABLE.value, message=message
    )


def _after(complete: Sequence[int], look: int) -> float:
    """The round that completes this look for a candidate; later rounds must not influence it."""
    return complete[look - 1] if len(complete) >= look else math.inf


def _rejected_for_failures(
    rounds: Rounds, verdicts: Mapping[str, ArmVerdict], since: Mapping[str, int]
) -> dict[str, ArmVerdict]:
    """Open candidates whose servers are shown to be unreliable."""
    return {
        arm: unreliable(rounds, arm, verdicts[arm], number) for arm, number in since.items() if _open(verdicts[arm])
    }


def _with_losses(rounds: Rounds, verdict: ArmVerdict, arm: str, complete: Sequence[int]) -> ArmVerdict:
    """Add the lost rounds up to the deciding round; all of them if no round decided, or if the losses did."""
    decided = not _open(verdict) and verdict.reason != Finding.UNRELIABLE and 0 < verdict.rounds <= len(complete)
    return dataclasses.replace(verdict, lost=lost(rounds, arm, complete[verdict.rounds - 1] if decided else None))


def _judged(
    rounds: Rounds, gate: Gate, arm: str, numbers: Sequence[int], error: float, rated: Collection[str]
) -> ArmVerdict:
    """The verdict at one look. A workload whose rate the baseline missed in half of the rounds is left out of the
    means: the speed-up there depends on the length of the measurement."""
    slow = {w: times for w in rounds.workloads if 2 * (times := rounds.saturated(w, numbers)) >= len(numbers)}
    left_out = tuple(
        f"{w} is left out of the means: the baseline missed its rate in {times} of {len(numbers)} rounds"
        for w, times in slow.items()
    )
    if interim := _interim_bounds(rounds, gate, arm, numbers, error, rated, slow, left_out):
        return judge_interim(interim, gate)
    return ArmVerdict(
        outcome=ArmOutcome.UNDECIDED,
        reason=Finding.SATURATED.value,
        message=f"{'; '.join(left_out)}: lower requestRate",
        rounds=len(numbers),
    )


def _interim_bounds(
    rounds: Rounds,
    gate: Gate,
    arm: str,
    numbers: Sequence[int],
    error: float,
    rated: Collection[str],
    slow: Collection[str],
    left_out: tuple[str, ...],
) -> InterimBounds | None:
    """Bounds over these rounds: each workload, the means weighted round by round, the limits and the answers' lengths.
    None if no workload with a weight is left for a mean."""

    def bounds(values: Sequence[float]) -> Interval:
        return interval(values, error=error, floor=gate.variance_floor)

    logs = {w: rounds.speed_ups(arm, numbers, w) for w in rounds.workloads}
    kept = {w: weight for w, weight in rounds.workloads.items() if w not in slow}
    kinds = (
        {w: weight for w, weight in kept.items() if w not in rated},
        {w: weight for w, weight in kept.items() if w in rated},
    )
    means = [bounds(weighted_means(kind, logs)) for kind in kinds if math.fsum(kind.values()) > 0]
    if not means:
        return None
    lengths = {w: rounds.changes(arm, numbers, w, _LENGTH) for w in rounds.workloads}
    return InterimBounds(
        rounds=len(numbers),
        mean=means[0],
        rated=means[1] if len(means) > 1 else None,
        workloads={w: bounds(values) for w, values in logs.items()},
        limits={
            limit: metric_ratios(rounds, limit, arm, numbers, rated, error, gate.variance_floor)
            if limit.max is None
            else unknown(rounds, limit, arm, numbers)
            for limit in limits(gate, rated)
        },
        lengths={w: bounds(values) for w, values in lengths.items() if values},
        saturated=left_out,
        rate_misses=rate_misses(rounds, arm, numbers, error),
    )


def _promotable(verdicts: Mapping[str, ArmVerdict]) -> dict[str, float]:
    """Promotable candidate → lower bound of its mean."""
    return {name: arm.mean.lower for name, arm in verdicts.items() if arm.outcome is ArmOutcome.PROMOTABLE and arm.mean}


def _stops(verdicts: Mapping[str, ArmVerdict]) -> bool:
    """Every candidate is decided, or one is promotable and no undecided one can beat it.

    A candidate without a look may still be the best: it must not lose because the harness failed.
    """
    waiting = [arm.mean for arm in verdicts.values() if _open(arm)]
    best = max(_promotable(verdicts).values(), default=-math.inf)
    return all(mean is not None and mean.upper <= best for mean in waiting)


def _outcome(verdicts: Mapping[str, ArmVerdict]) -> Outcome:
    outcomes = [arm.outcome for arm in verdicts.values()]
    if ArmOutcome.PROMOTABLE in outcomes:
        return Outcome.PROMOTE
    if all(outcome is ArmOutcome.ERROR for outcome in outcomes):
        return Outcome.ERROR
    # A candidate that could not be measured is undecided: Reject would blame it for the harness.
    return Outcome.INCONCLUSIVE if any(outcome in OPEN for outcome in outcomes) else Outcome.REJECT


def _winner(verdicts: Mapping[str, ArmVerdict], gate: Gate) -> str:
    """The first arm whose lower bound is within the variance floor of the best lower bound."""
    promotable = _promotable(verdicts)
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
