"""Arms compared with one reference, look by look: the baseline, and in a run with an incumbent that, too."""

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from paceline.core import INCUMBENT, Answers, ArmOutcome, ArmVerdict, Gate
from paceline.gate.findings import Finding, InterimBounds, judge_interim
from paceline.gate.interval import Interval, interval
from paceline.gate.limits import limits, metric_ratios, unknown
from paceline.gate.losses import is_reference, lost, shown_unreliable, unreliable
from paceline.gate.outputs import OutputComparison, compare_outputs, first_difference
from paceline.gate.rates import rate_misses
from paceline.gate.rounds import Rounds, weighted_means

OPEN = (ArmOutcome.UNDECIDED, ArmOutcome.ERROR)
_CLOSED = (Finding.OUTPUTS_UNSTABLE, Finding.SATURATED)
"""Reasons for "undecided" that more rounds cannot change: the baseline's own answers vary, or it keeps no request
rate."""
_LENGTH = "outputTokens"
"""The metric whose change shows that a candidate's answers are longer or shorter."""


def may_change(verdict: ArmVerdict) -> bool:
    """More rounds may decide this candidate."""
    return verdict.outcome in OPEN and verdict.reason not in _CLOSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`arms` beside the reference of `rounds`, at a rule's looks."""

    rounds: Rounds
    gate: Gate
    arms: Sequence[str]
    error: float
    rated: Collection[str]
    answers: Mapping[int, Answers]
    """Round → answers; empty if outputs are not compared."""

    def before_any_look(self) -> dict[str, ArmVerdict]:
        return {arm: _before_any_look(self.rounds, self.gate, arm, self.rounds.complete(arm)) for arm in self.arms}

    def at_look(self, n: int, verdicts: Mapping[str, ArmVerdict], asked: Collection[str]) -> dict[str, ArmVerdict]:
        """The verdicts after the look at `n` complete rounds, which judges those that are `asked` for and open here.
        The incumbent is never judged; it and the baseline may be found unreliable whatever was decided before."""
        now = dict(verdicts)
        for arm in (one for one in self.arms if one in asked):
            open_here, complete = may_change(now[arm]), self.rounds.complete(arm)
            difference = first_difference(self.answers, arm, complete) if open_here else None
            if difference and difference.rounds <= n:
                now[arm] = _different(difference)
            elif (open_here or is_reference(self.rounds, arm)) and (since := self.unreliable_by(n, arm)) is not None:
                now[arm] = unreliable(self.rounds, arm, now[arm], since)
            elif open_here and len(complete) >= n and arm != INCUMBENT:
                now[arm] = self._judged(arm, complete[:n])
        return now

    def unreliable_by(self, n: int, arm: str) -> int | None:
        """The round since which the arm is shown to be unreliable, if that was before its look at `n` rounds: later
        rounds must not influence it."""
        since, complete = shown_unreliable(self.rounds, arm), self.rounds.complete(arm)
        completed = complete[n - 1] if len(complete) >= n else math.inf
        return since if since is not None and since < completed else None

    def with_losses(self, verdicts: Mapping[str, ArmVerdict]) -> dict[str, ArmVerdict]:
        return {arm: _with_losses(self.rounds, one, arm, self.rounds.complete(arm)) for arm, one in verdicts.items()}

    def _judged(self, arm: str, numbers: Sequence[int]) -> ArmVerdict:
        verdict = _judged(self.rounds, self.gate, arm, numbers, self.error, self.rated)
        return _comparable(verdict, compare_outputs(self.answers, arm, numbers)) if self.answers else verdict


def _before_any_look(rounds: Rounds, gate: Gate, arm: str, complete: Sequence[int]) -> ArmVerdict:
    """The verdict before any look. One round suffices to reject a draft with no accepted token."""
    if not complete:
        return ArmVerdict(outcome=ArmOutcome.ERROR, reason=Finding.NO_COMPLETE_ROUND.value)
    if empty := rounds.nothing_accepted(arm, complete[0]):
        message = f"the target accepted no draft token on {', '.join(empty)}"
        return ArmVerdict(outcome=ArmOutcome.REJECTED, reason=Finding.NOTHING_ACCEPTED.value, message=message, rounds=1)
    message = f"complete rounds: {len(complete)}, the first look needs {gate.decide_after_rounds[0]}"
    return ArmVerdict(outcome=ArmOutcome.ERROR, reason=Finding.TOO_FEW_ROUNDS.value, message=message)


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


def _with_losses(rounds: Rounds, verdict: ArmVerdict, arm: str, complete: Sequence[int]) -> ArmVerdict:
    """Add the lost rounds up to the deciding round; all of them if no round decided, or if the losses did."""
    decided = not may_change(verdict) and verdict.reason != Finding.UNRELIABLE and 0 < verdict.rounds <= len(complete)
    return dataclasses.replace(verdict, lost=lost(rounds, arm, complete[verdict.rounds - 1] if decided else None))


def _judged(
    rounds: Rounds, gate: Gate, arm: str, numbers: Sequence[int], error: float, rated: Collection[str]
) -> ArmVerdict:
    """The verdict at one look. A workload whose rate the reference missed in half of the rounds is left out of the
    means: the speed-up there depends on the length of the measurement."""
    slow = {w: times for w in rounds.workloads if 2 * (times := rounds.saturated(w, numbers)) >= len(numbers)}
    left_out = tuple(
        f"{w} is left out of the means: the {rounds.reference} missed its rate in {times} of {len(numbers)} rounds"
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
        arm="new baseline" if is_reference(rounds, arm) else "candidate",
        reference=rounds.reference,
    )
