"""Whether the run is over, and with what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.api import Reason
from paceline.core import BASELINE, ArmOutcome, Outcome, Verdict
from paceline.gate import explain, undecided
from paceline.plan.run.look import Evidence, Snapshot

MOST_FRUITLESS = 3
"""Tries in a row without a result, those aside that the cluster took away: then it is not bad luck."""
MOST_DISRUPTED = 20
"""Tries in a row, of which none gave a result, that the cluster took away: then there is no room for this run."""
MOST_FAILURES = 2
"""Rounds in a row in which a point of an arm was invalid: then it is the arm, or its server."""

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
    verdict = evidence.verdict
    if why := given_up(evidence):
        # What was shown so far stands; Error is for a run that came to no look at all.
        return error(why) if verdict.outcome is Outcome.ERROR else _concluded(evidence, verdict, why)
    if evidence.results and (verdict.final or not in_question(evidence)):
        return _concluded(evidence, verdict)
    return None


def given_up(evidence: Evidence) -> str:
    """Why no more can be hoped for of further rounds, whatever the gate would say of them; "" while it can."""
    if evidence.disrupted >= MOST_DISRUPTED:
        return f"{evidence.disrupted} rounds in a row were taken away; the last: {evidence.since_result[0]}"
    if evidence.fruitless >= MOST_FRUITLESS:
        return f"{evidence.fruitless} rounds in a row gave no result; the last: {evidence.since_result[0]}"
    failures = evidence.failures(BASELINE)
    if len(failures) >= MOST_FAILURES:
        return f"the baseline could not be measured: {failures[0]}"
    most = evidence.spec.gate.decide_after_rounds[-1] + MOST_FAILURES * len(evidence.spec.arms)
    if len(evidence.results) >= most and not evidence.verdict.final:
        return f"{most} rounds were measured and too many of them were no evidence"
    return ""


def in_question(evidence: Evidence) -> tuple[str, ...]:
    """Candidates that the next round must contain: undecided, and not failing again and again."""
    return tuple(arm for arm in undecided(evidence.verdict) if len(evidence.failures(arm)) < MOST_FAILURES)


def _concluded(evidence: Evidence, verdict: Verdict, why: str = "") -> Conclusion:
    """The gate's verdict as it stands; `why` the run ends before that is final."""
    failed = {name: evidence.failures(name) for name in undecided(verdict)}
    failing = {name: whys[0] for name, whys in failed.items() if len(whys) >= MOST_FAILURES}
    outcome = verdict.outcome
    message = "; ".join(filter(None, (_sentence(verdict, failing), why)))
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
    """The winner's reason; without one, that of the candidate that came closest (the last to be decided, or still
    open)."""
    if verdict.winner:
        return verdict.arms[verdict.winner].reason
    if outcome is Outcome.ERROR:
        return "Error"
    arms = tuple(verdict.arms.values())
    still_open = [arm for arm in arms if arm.outcome is not ArmOutcome.REJECTED]
    return max(still_open or arms, key=lambda arm: arm.rounds).reason


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
