"""Whether the run is over, and with what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.api import Reason
from paceline.core import ArmOutcome, Outcome, Verdict
from paceline.gate import explain, undecided
from paceline.plan.run.look import Evidence, Snapshot

MOST_FRUITLESS = 3
"""Tries in a row without a result: then it is not bad luck."""
MOST_FAILURES = 2
"""Rounds in which an arm gave no valid measurement: then it is the arm, or its server."""

REASONS = {
    Outcome.PROMOTE: Reason.Promote,
    Outcome.REJECT: Reason.Reject,
    Outcome.INCONCLUSIVE: Reason.Inconclusively,
    Outcome.ERROR: Reason.RunError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    reason: Reason
    message: str
    record: Mapping[str, Any] = field(default_factory=dict)


def conclude(snapshot: Snapshot, evidence: Evidence) -> Conclusion | None:
    """None while another round is wanted."""
    if snapshot.superseded:
        return Conclusion(reason=Reason.Superseded, message="the question has changed")
    if evidence.fruitless >= MOST_FRUITLESS:
        return error(f"{MOST_FRUITLESS} rounds in a row gave no result; the last: {evidence.records[-1]['error']}")
    if not evidence.results:
        return None
    failures = evidence.baseline_failures
    if len(failures) >= MOST_FAILURES:
        return error(f"the baseline could not be measured: {failures[-1]}")
    verdict = evidence.verdict
    if verdict.final or not in_question(evidence):
        return _concluded(evidence, verdict)
    return None


def in_question(evidence: Evidence) -> tuple[str, ...]:
    """Candidates that the next round must contain: undecided, and not failing again and again."""
    return tuple(arm for arm in undecided(evidence.verdict) if len(evidence.failures(arm)) < MOST_FAILURES)


def _concluded(evidence: Evidence, verdict: Verdict) -> Conclusion:
    """A verdict, unless all that is left undecided is so because its server or the harness failed."""
    failed = {name: evidence.failures(name) for name in undecided(verdict)}
    failing = {name: why for name, why in failed.items() if len(why) >= MOST_FAILURES}
    outcome = verdict.outcome
    if failing and outcome in (Outcome.INCONCLUSIVE, Outcome.ERROR):
        outcome = Outcome.ERROR
    message = _sentence(verdict, {name: why[-1] for name, why in failing.items()})
    return Conclusion(
        reason=REASONS[outcome],
        message=message,
        record={
            "verdict": {
                "outcome": outcome.value,
                "winner": verdict.winner or "",
                "rounds": verdict.rounds,
                "reason": _reason(verdict, outcome),
                "message": message,
                **_speedup(verdict),
            }
        },
    )


def _speedup(verdict: Verdict) -> dict[str, str]:
    """The winner's mean over workloads, for `kubectl get`."""
    mean = verdict.arms[verdict.winner].mean if verdict.winner else None
    return {"speedup": f"{mean.ratio:.3f}"} if mean else {}


def _reason(verdict: Verdict, outcome: Outcome) -> str:
    """The winner's reason; without one, that of the candidate that came closest (the last to be decided)."""
    if verdict.winner:
        return verdict.arms[verdict.winner].reason
    if outcome is Outcome.ERROR:
        return "Error"
    return max(verdict.arms.values(), key=lambda arm: arm.rounds).reason


def _sentence(verdict: Verdict, failing: Mapping[str, str]) -> str:
    """Every candidate in a few words, the winner first; of those that kept failing, why."""
    first = [verdict.winner] if verdict.winner else []
    names = [*first, *(name for name in verdict.arms if name != verdict.winner)]
    return "; ".join(
        f"{name}: {failing[name]}" if name in failing else f"{name} {_word(verdict, name)}" for name in names
    )


def _word(verdict: Verdict, name: str) -> str:
    arm = verdict.arms[name]
    ratio = f"{arm.mean.ratio:.2f}x ({arm.mean.lower:.2f}–{arm.mean.upper:.2f})" if arm.mean else ""
    said = "" if arm.outcome is ArmOutcome.PROMOTABLE else explain(arm)
    return " ".join(part for part in (ratio, arm.outcome.value, said) if part)


def error(message: str) -> Conclusion:
    """The verdict Error: without it the deployment would take the run for superseded and ask again, for ever."""
    verdict = {"outcome": Outcome.ERROR.value, "winner": "", "rounds": 0, "reason": "Error", "message": message}
    return Conclusion(reason=Reason.RunError, message=message, record={"verdict": verdict})
