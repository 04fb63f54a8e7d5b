"""Whether the run is over, and with what."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.api import Reason
from paceline.api.run_status import RunVerdict
from paceline.core import BASELINE, ArmOutcome, ArmVerdict, Outcome, Verdict
from paceline.evidence.failures import FEW, MANY, ONCE, VOIDS_THE_RUN, Failure
from paceline.gate import explain, undecided
from paceline.plan.run import own_args, sweep
from paceline.plan.run.budget import exhausted
from paceline.plan.run.scope import scope
from paceline.plan.run.snapshot import Evidence, Failed, Snapshot, failure
from paceline.plan.run.taken import judged_again, own

PATIENCE: Mapping[int, str] = {
    ONCE: "trying again would change nothing: ",
    FEW: f"{FEW} rounds in a row gave no result; the last: ",
    MANY: f"{MANY} rounds in a row were taken away; the last: ",
}
"""Tries in a row without a result, by how many there may be of their kind: what a person is told of the last."""
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
    status: Mapping[str, Any] = field(default_factory=dict)


def conclude(snapshot: Snapshot, evidence: Evidence) -> Conclusion | None:
    """None while another round is wanted."""
    if snapshot.superseded:
        return Conclusion(reason=Reason.Superseded, message="the question has changed")
    if void := voided(evidence):
        return error(*void)
    if evidence.sweep:
        return _swept(evidence)
    verdict = evidence.verdict
    if why := given_up(evidence):
        # What was shown so far stands; Error is for a run that came to no look at all.
        return error(*why) if verdict.outcome is Outcome.ERROR else _concluded(evidence, verdict, why[0])
    if evidence.results and (verdict.final or not in_question(evidence)):
        return _concluded(evidence, verdict)
    if spent := exhausted(evidence):
        return _concluded(evidence, verdict, *spent)
    return None


def voided(evidence: Evidence) -> tuple[str, str] | None:
    """Why there can be no verdict, whatever was shown so far: a sentence and a reason. None if nothing is wrong."""
    for record in evidence.records:
        if record.error and (kind := failure(record.reason)) in VOIDS_THE_RUN:
            return record.error, kind.name
    return None


def given_up(evidence: Evidence) -> tuple[str, str] | None:
    """Why no more can be hoped for of further rounds, whatever the gate would say of them: a sentence and a reason.
    None while it can."""
    lost = [(failure(record.reason), record) for record in evidence.since_result]
    for tries, sentence in PATIENCE.items():
        alike = [(kind, record) for kind, record in lost if kind.tries == tries]
        if len(alike) >= tries:
            kind, record = alike[0]
            return f"{sentence}{record.error}", kind.name
    failures = evidence.failures(BASELINE)
    if _hopeless(failures):
        return f"the baseline could not be measured: {failures[0].why}", failures[0].reason.name
    most = evidence.spec.gate.decide_after_rounds[-1] + MOST_FAILURES * len(evidence.spec.arms)
    if len(own(evidence.results)) >= most and not evidence.verdict.final:
        return f"{most} rounds were measured and too many of them were invalid", Failure.NotMeasured.name
    return None


def in_question(evidence: Evidence) -> tuple[str, ...]:
    """Candidates that the next round must contain: undecided (in a sweep all are), and not failing again and again."""
    asked = [arm.name for arm in evidence.spec.arms[1:]] if evidence.sweep else undecided(evidence.verdict)
    return tuple(arm for arm in asked if not _hopeless(evidence.failures(arm)))


def _hopeless(failures: Sequence[Failed]) -> bool:
    """Of an arm: its latest failures, the latest first."""
    return bool(failures) and len(failures) >= min(MOST_FAILURES, failures[0].reason.tries)


def _swept(evidence: Evidence) -> Conclusion | None:
    """The table, and no outcome (0016), once all rounds are measured or no more can be hoped for."""
    lost, spent, table = given_up(evidence), exhausted(evidence), sweep.found(evidence)
    why = lost or spent
    done = len(evidence.results) >= evidence.spec.gate.decide_after_rounds[-1]
    if table is None or not (why or done or (evidence.results and not in_question(evidence))):
        return None
    if sweep.nothing(table) and spent and not (lost or done):
        return _concluded(evidence, evidence.verdict, *spent)
    if sweep.nothing(table):
        return error(*(why or _no_candidate(evidence)))
    holds = (own_args.told(evidence), scope(evidence.spec, evidence.results))
    message = "; ".join(filter(None, (table.message, *holds, why[0] if why else "")))
    said = RunVerdict(rounds=len(evidence.results), reason=table.crossing.value, message=message)
    return Conclusion(reason=Reason.Swept, message=message, status={"verdict": said})


def _no_candidate(evidence: Evidence) -> tuple[str, str]:
    failures = [failed[0] for arm in evidence.spec.arms[1:] if (failed := evidence.failures(arm.name))]
    whys = (failures[0].why, failures[0].reason.name) if failures else ("too few rounds", Failure.NotMeasured.name)
    return f"no candidate could be measured at any concurrency: {whys[0]}", whys[1]


def _concluded(evidence: Evidence, verdict: Verdict, why: str = "", spent: str = "") -> Conclusion:
    """The gate's verdict as it stands; `why` the run ends before that is final. `spent` is the reason of a run that
    might have gone on, had it been allowed to: whatever is not shown by then is Inconclusive."""
    failed = {name: evidence.failures(name) for name in undecided(verdict)}
    failing = {name: latest[0] for name, latest in failed.items() if _hopeless(latest)}
    outcome = Outcome.INCONCLUSIVE if spent and verdict.outcome is Outcome.ERROR else verdict.outcome
    crossing = sweep.crossing(evidence)
    holds = (own_args.told(evidence), scope(evidence.spec, evidence.results))
    told = (_sentence(verdict, failing), crossing, *holds, why, _without_result(evidence), judged_again(evidence))
    message = "; ".join(filter(None, told))
    return Conclusion(
        reason=REASONS[outcome],
        message=message,
        status={
            "verdict": RunVerdict(
                outcome=outcome.value,
                winner=verdict.winner or "",
                rounds=verdict.rounds,
                reason=spent if spent and outcome is Outcome.INCONCLUSIVE else _reason(verdict, failing),
                message=message,
                crossing=crossing,
                speedup=_speedup(verdict),
            )
        },
    )


def _speedup(verdict: Verdict) -> float | None:
    """The winner's mean over workloads, for `kubectl get`."""
    mean = verdict.arms[verdict.winner].mean if verdict.winner else None
    return mean.ratio if mean else None


def _reason(verdict: Verdict, failing: Mapping[str, Failed]) -> str:
    """The winner's reason; without one, that of the candidate that came closest (the last to be decided, or still
    open). Of an Error, what the first of those that kept failing failed on."""
    if verdict.winner:
        return verdict.arms[verdict.winner].reason
    if verdict.outcome is Outcome.ERROR:
        return next((failed.reason.name for failed in failing.values()), Failure.NotMeasured.name)
    arms = tuple(verdict.arms.values())
    still_open = [arm for arm in arms if arm.outcome is not ArmOutcome.REJECTED]
    return max(still_open or arms, key=lambda arm: arm.rounds).reason


def _sentence(verdict: Verdict, failing: Mapping[str, Failed]) -> str:
    """Every candidate in a few words, the winner first; of those that kept failing, why."""
    first = [verdict.winner] if verdict.winner else []
    names = [*first, *(name for name in verdict.arms if name != verdict.winner)]
    return "; ".join(
        f"{name}: {failing[name].why}" if name in failing else f"{name} {_word(verdict, name)}" for name in names
    )


def _word(verdict: Verdict, name: str) -> str:
    arm = verdict.arms[name]
    ratio = f"{arm.mean.ratio:.2f}x ({arm.mean.lower:.2f}–{arm.mean.upper:.2f})" if arm.mean else ""
    if arm.outcome is ArmOutcome.PROMOTABLE:
        return "; ".join(filter(None, (f"{ratio} {arm.outcome.value}", *_beside(arm))))
    return " ".join(filter(None, (ratio, arm.outcome.value, explain(arm))))


def _beside(arm: ArmVerdict) -> tuple[str, ...]:
    """What a person has to know of a promotable one: another mean, and what was lost on the way."""
    rated = f"at a rate {arm.rated.ratio:.2f}x ({arm.rated.lower:.2f}–{arm.rated.upper:.2f})" if arm.rated else ""
    return rated, arm.lost


def _without_result(evidence: Evidence) -> str:
    """What was tried in vain, and why: of nobody's server."""
    reasons = [record.reason for record in evidence.records if record.error]
    if not reasons:
        return ""
    tries = "1 try of a round" if len(reasons) == 1 else f"{len(reasons)} tries of rounds"
    return f"{tries} gave no result ({', '.join(dict.fromkeys(reasons))})"


def error(message: str, reason: str = "InvalidSpec") -> Conclusion:
    """The verdict Error: without it the deployment would take the run for superseded and ask again, for ever."""
    verdict = RunVerdict(outcome=Outcome.ERROR.value, winner="", rounds=0, reason=reason, message=message)
    return Conclusion(reason=Reason.RunError, message=message, status={"verdict": verdict})
