"""The rule from rounds to a verdict (docs/design.md#the-gate), with the parts that compared outputs (0018) and ended
servers have in it."""

import dataclasses
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise

from paceline.core import BASELINE, Answers, ArmOutcome, ArmVerdict, Gate, Measurement, Outcome, Verdict
from paceline.gate.findings import Finding, Look, judge
from paceline.gate.interval import Interval, interval
from paceline.gate.limits import changes, counted, limits, unknown
from paceline.gate.losses import lost, shown_unreliable, unreliable
from paceline.gate.outputs import Seen, first_difference, seen
from paceline.gate.rates import behind
from paceline.gate.rounds import Rounds, table, weighted_means

OPEN = (ArmOutcome.UNDECIDED, ArmOutcome.ERROR)
CLOSED = (Finding.OUTPUTS_UNSTABLE, Finding.SATURATED)
"""Undecided for good: a baseline that does not agree with itself never will again, and one that does not keep any of
the rates keeps none of them next time."""
LENGTH = "outputTokens"
"""The metric of a measurement by which answers are compared."""


def _open(verdict: ArmVerdict) -> bool:
    """More rounds may decide it."""
    return verdict.outcome in OPEN and verdict.reason not in CLOSED


def decide(
    gate: Gate,
    arms: Sequence[str],
    workloads: Mapping[str, float],
    measurements: Sequence[Measurement],
    answers: Sequence[Answers] = (),
    rated: Collection[str] = (),
) -> Verdict:
    """What these rounds show. `arms` has the baseline first, and ties go to the earlier arm; `workloads` name → weight;
    `answers` of every round, where outputs are compared; `rated` are the workloads at a rate.

    May be asked at any time: between two looks the verdict is that of the look before, and `final` says whether more
    rounds could change it. A round that is missing or invalid for an arm is no evidence about that arm; how often it is
    tried again is the caller's affair. Raises ValueError, naming the place, for arguments that make no question.
    """
    for fault in _faults(gate, arms, workloads, measurements):
        raise ValueError(fault)
    baseline, *candidates = arms
    rounds = table(baseline, workloads, counted(measurements, gate.limits))
    complete = {arm: rounds.complete(arm) for arm in candidates}
    # The chance of a wrong verdict is shared out evenly: to the candidates there were at the start and to all looks.
    error = (1 - gate.confidence) / (len(candidates) * len(gate.decide_after_rounds))
    fell = {arm: since for arm in candidates if (since := shown_unreliable(rounds, arm)) is not None}

    answered = {one.round: one for one in answers}
    differs = {arm: found for arm in candidates if (found := first_difference(answered, arm, complete[arm]))}

    verdicts: dict[str, ArmVerdict] = {arm: _at_first(rounds, gate, arm, complete[arm]) for arm in candidates}
    used = max(verdict.rounds for verdict in verdicts.values())
    for n in gate.decide_after_rounds:
        if _stops(verdicts):
            break
        verdicts |= _rejected(verdicts, {arm: found for arm, found in differs.items() if found.rounds <= n})
        due = {arm: since for arm, since in fell.items() if since < _after(complete[arm], n)}
        verdicts |= _fallen(rounds, verdicts, due)
        asked = [arm for arm in candidates if _open(verdicts[arm]) and len(complete[arm]) >= n]
        for arm in asked:
            verdict = _judged(rounds, gate, arm, complete[arm][:n], error, rated)
            verdicts[arm] = _comparable(verdict, seen(answered, arm, complete[arm][:n])) if answers else verdict
        used = n if asked else used
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


def undecided(verdict: Verdict) -> tuple[str, ...]:
    """The candidates that later rounds must still contain, in the order of arms: not those that had their last look,
    and none once the verdict is final."""
    return () if verdict.final else tuple(name for name, arm in verdict.arms.items() if _open(arm) and not arm.last)


def _at_first(rounds: Rounds, gate: Gate, arm: str, complete: Sequence[int]) -> ArmVerdict:
    """Before any look. A draft of which nothing is accepted needs no statistics: one complete round shows it."""
    if not complete:
        return ArmVerdict(outcome=ArmOutcome.ERROR, reason=Finding.NO_COMPLETE_ROUND.value)
    if empty := rounds.nothing_accepted(arm, complete[0]):
        message = f"the target accepted no draft token on {', '.join(empty)}"
        return ArmVerdict(outcome=ArmOutcome.REJECTED, reason=Finding.NOTHING_ACCEPTED.value, message=message, rounds=1)
    message = f"complete rounds: {len(complete)}, the first look needs {gate.decide_after_rounds[0]}"
    return ArmVerdict(outcome=ArmOutcome.ERROR, reason=Finding.TOO_FEW_ROUNDS.value, message=message)


def _rejected(verdicts: Mapping[str, ArmVerdict], differs: Mapping[str, Seen]) -> dict[str, ArmVerdict]:
    """Those of the open ones that answer something else. What was final before that was seen stays."""
    return {arm: _differing(found) for arm, found in differs.items() if _open(verdicts[arm])}


def _differing(found: Seen) -> ArmVerdict:
    message = (
        f"other answers than the baseline's, beyond near ties, on {len(found.diverged)} of the {len(found.settled)} "
        f"prompts (of {found.samples}) that the baseline answered alike in {found.rounds} rounds"
    )
    return ArmVerdict(
        outcome=ArmOutcome.REJECTED, reason=Finding.OUTPUTS_DIFFER.value, message=message, rounds=found.rounds
    )


def _comparable(verdict: ArmVerdict, found: Seen) -> ArmVerdict:
    """Nothing is promotable next to a baseline that does not agree with itself."""
    if verdict.outcome is not ArmOutcome.PROMOTABLE or found.enough:
        return verdict
    message = (
        f"{verdict.message}; the baseline itself answered only {len(found.settled)} of {found.samples} prompts alike "
        f"in {found.rounds} rounds, so outputs cannot be compared"
    )
    return dataclasses.replace(
        verdict, outcome=ArmOutcome.UNDECIDED, reason=Finding.OUTPUTS_UNSTABLE.value, message=message
    )


def _after(complete: Sequence[int], look: int) -> float:
    """The round after which a candidate has this look: what comes later was not to be known."""
    return complete[look - 1] if len(complete) >= look else math.inf


def _fallen(rounds: Rounds, verdicts: Mapping[str, ArmVerdict], since: Mapping[str, int]) -> dict[str, ArmVerdict]:
    """Those of the open ones whose servers are shown not to be relied on."""
    return {
        arm: unreliable(rounds, arm, verdicts[arm], number) for arm, number in since.items() if _open(verdicts[arm])
    }


def _with_losses(rounds: Rounds, verdict: ArmVerdict, arm: str, complete: Sequence[int]) -> ArmVerdict:
    """Of the rounds up to the one that decided it; of all, where none did or the losses themselves."""
    decided = not _open(verdict) and verdict.reason != Finding.UNRELIABLE and 0 < verdict.rounds <= len(complete)
    return dataclasses.replace(verdict, lost=lost(rounds, arm, complete[verdict.rounds - 1] if decided else None))


def _judged(
    rounds: Rounds, gate: Gate, arm: str, numbers: Sequence[int], error: float, rated: Collection[str]
) -> ArmVerdict:
    """At one look. What the baseline did not keep the rate of in half of its rounds is in no mean: how much faster a
    candidate is there depends on how long one measures."""
    slow = {w: times for w in rounds.workloads if 2 * (times := rounds.saturated(w, numbers)) >= len(numbers)}
    said = tuple(
        f"{w} is in no mean: the baseline did not keep its rate in {times} of {len(numbers)} rounds"
        for w, times in slow.items()
    )
    if look := _look(rounds, gate, arm, numbers, error, rated, slow, said):
        return judge(look, gate)
    return ArmVerdict(
        outcome=ArmOutcome.UNDECIDED,
        reason=Finding.SATURATED.value,
        message=f"{'; '.join(said)}: a lower requestRate is kept",
        rounds=len(numbers),
    )


def _look(
    rounds: Rounds,
    gate: Gate,
    arm: str,
    numbers: Sequence[int],
    error: float,
    rated: Collection[str],
    slow: Collection[str],
    said: tuple[str, ...],
) -> Look | None:
    """Bounds from these rounds: of every workload, of the weighted means taken round by round, of the limits and of the
    answers' lengths. None if no workload of any weight is left for a mean."""

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
    lengths = {w: rounds.changes(arm, numbers, w, LENGTH) for w in rounds.workloads}
    return Look(
        rounds=len(numbers),
        mean=means[0],
        rated=means[1] if len(means) > 1 else None,
        workloads={w: bounds(found) for w, found in logs.items()},
        limits={
            limit: changes(rounds, limit, arm, numbers, rated, error, gate.variance_floor)
            if limit.maximum is None
            else unknown(rounds, limit, arm, numbers)
            for limit in limits(gate, rated)
        },
        lengths={w: bounds(found) for w, found in lengths.items() if found},
        saturated=said,
        behind=behind(rounds, arm, numbers, error),
    )


def _promotable(verdicts: Mapping[str, ArmVerdict]) -> dict[str, float]:
    """Name → lower bound of the mean."""
    return {name: arm.mean.lower for name, arm in verdicts.items() if arm.outcome is ArmOutcome.PROMOTABLE and arm.mean}


def _stops(verdicts: Mapping[str, ArmVerdict]) -> bool:
    """Every candidate is decided, or one is promotable and no undecided one can be better.

    A candidate without a look could be anything: a failed harness must not cost it its chance.
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
    # A candidate that could not be measured is not decided either: Reject would blame it for the harness.
    return Outcome.INCONCLUSIVE if any(outcome in OPEN for outcome in outcomes) else Outcome.REJECT


def _winner(verdicts: Mapping[str, ArmVerdict], gate: Gate) -> str:
    """The best lower bound; what is within the variance floor of it is as good, and the first of these wins."""
    promotable = _promotable(verdicts)
    enough = math.log(max(promotable.values())) - gate.variance_floor
    return next(name for name, lower in promotable.items() if math.log(lower) >= enough)


def _faults(
    gate: Gate, arms: Sequence[str], workloads: Mapping[str, float], measurements: Sequence[Measurement]
) -> Iterator[str]:
    """What makes the arguments no question, each with its place."""
    if len(arms) < 2 or len(set(arms)) < len(arms):
        yield "arms: the baseline and at least one candidate, each once"
    if BASELINE in arms[1:]:
        yield f"arms: the first is what the others are compared with, but {BASELINE!r} stands further back"
    if not math.fsum(workloads.values()) > 0:
        yield "workloads: at least one, and one of positive weight"
    looks = gate.decide_after_rounds
    if not looks or looks[0] < 2 or any(later <= earlier for earlier, later in pairwise(looks)):
        yield "decideAfterRounds: numbers of rounds, at least 2, each larger than the one before"
    seen = set()
    for i, m in enumerate(measurements):
        if m.arm not in arms:
            yield f"measurements[{i}].arm: unknown arm {m.arm!r}; there are {', '.join(arms)}"
        if m.workload not in workloads:
            yield f"measurements[{i}].workload: unknown workload {m.workload!r}; there are {', '.join(workloads)}"
        if (cell := (m.round, m.arm, m.workload)) in seen:
            yield f"measurements[{i}]: a second measurement of round {m.round}, arm {m.arm}, workload {m.workload}"
        seen.add(cell)
