"""Step 6: decide whether the run is over, and with which verdict."""

from collections.abc import Callable, Mapping
from datetime import datetime

from paceline.api import Reason
from paceline.api.run_status import RunVerdict
from paceline.core import BASELINE, INCUMBENT, ArmOutcome, ArmVerdict, Bounds, Outcome, Purpose, Verdict
from paceline.core.text import count
from paceline.evidence.failures import Failure
from paceline.gate import explain, undecided, without_more_rounds
from paceline.plan.run.budget import exhausted
from paceline.plan.run.conclusion import Conclusion, error
from paceline.plan.run.elsewhere import faster_elsewhere
from paceline.plan.run.evidence import Evidence, FailedReplicate
from paceline.plan.run.no_more_rounds import given_up, in_question, is_open, keeps_failing, voided
from paceline.plan.run.origin import judged_again, without_a_cluster
from paceline.plan.run.own_args import own_args_note
from paceline.plan.run.scope import scope
from paceline.plan.run.searched import conclusion as _search
from paceline.plan.run.snapshot import Snapshot
from paceline.plan.run.sweep import advice_to_split, nothing_measured

_REASONS = {
    Outcome.PROMOTE: Reason.Promote,
    Outcome.REJECT: Reason.Reject,
    Outcome.INCONCLUSIVE: Reason.Inconclusively,
    Outcome.ERROR: Reason.RunError,
}


def conclude(snapshot: Snapshot, evidence: Evidence, now: datetime) -> Conclusion | None:
    """The run's end; None while another round is needed."""
    if snapshot.aborted:
        return Conclusion(reason=Reason.RunAborted, message=f"a person stopped it: {snapshot.aborted}")
    if snapshot.superseded:
        return Conclusion(reason=Reason.Superseded, message="the question has changed")
    if void := voided(evidence):
        return error(*void)
    return CONCLUSIONS[evidence.spec.purpose](evidence)


def _gate(evidence: Evidence) -> Conclusion | None:
    verdict = evidence.verdict
    if why := given_up(evidence):
        # Findings of earlier looks stay valid, so the verdict is Error only for a run that never reached a look.
        return error(*why) if verdict.outcome is Outcome.ERROR else _gate_verdict(evidence, verdict, why[0])
    if evidence.results and (verdict.final or not is_open(evidence)):
        return _gate_verdict(evidence, verdict)
    if evidence.spec.measured:
        return _not_enough(evidence)
    if spent := exhausted(evidence):
        return _gate_verdict(evidence, verdict, *spent)
    return None


def _not_enough(evidence: Evidence) -> Conclusion:
    """End of a run that may not measure and whose rounds do not suffice for a verdict."""
    looks = evidence.spec.gate.decide_after_rounds
    measured = len(evidence.results)
    look = next((look for look in looks if look > measured), looks[-1])
    message = (
        f"after its {count(measured, 'imported round')} its candidates are undecided, and the gate looks again "
        f"after {look}: let `paceline measure` finish, delete this run, and apply the file again"
    )
    return Conclusion(reason=Reason.ImportRefused, message=message)


def _sweep_table(evidence: Evidence) -> Conclusion | None:
    """A table without an outcome, once all rounds are measured or further rounds are pointless."""
    pointless, spent, table = given_up(evidence), exhausted(evidence), evidence.crossover
    why = pointless or spent
    done = len(evidence.results) >= evidence.spec.gate.decide_after_rounds[-1]
    if table is None or not (why or done or (evidence.results and not in_question(evidence))):
        return _not_enough(evidence) if evidence.spec.measured else None
    if nothing_measured(table) and spent and not (pointless or done):
        return _gate_verdict(evidence, evidence.verdict, *spent)
    if nothing_measured(table):
        return error(*(why or _no_candidate(evidence)))
    message = _joined(table.message, *_limits(evidence), why[0] if why else "")
    verdict = RunVerdict(rounds=len(evidence.results), reason=table.crossing.value, message=message)
    return Conclusion(reason=Reason.Swept, message=message, verdict=verdict)


CONCLUSIONS: Mapping[Purpose, Callable[[Evidence], Conclusion | None]] = {
    Purpose.GATE: _gate,
    Purpose.SEARCH: _search,
    Purpose.SWEEP: _sweep_table,
}


def _no_candidate(evidence: Evidence) -> tuple[str, str]:
    failures = [failed[0] for arm in evidence.spec.arms[1:] if (failed := evidence.failures(arm.name))]
    why, reason = (
        (failures[0].why, failures[0].failure.name) if failures else ("too few rounds", Failure.NotMeasured.name)
    )
    return f"no candidate could be measured at any concurrency: {why}", reason


def _gate_verdict(evidence: Evidence, verdict: Verdict, why: str = "", spent: str = "") -> Conclusion:
    """The gate's present verdict. `why`: the reason for ending before the verdict is final. `spent`: the reason if only
    the budget ended the run; its verdict is then Inconclusive instead of Error."""
    verdict = without_more_rounds(verdict)
    failures = {name: evidence.failures(name) for name in undecided(verdict)}
    failing = {name: latest[0] for name, latest in failures.items() if keeps_failing(latest)}
    outcome = Outcome.INCONCLUSIVE if spent and verdict.outcome is Outcome.ERROR else verdict.outcome
    crossing = advice_to_split(evidence)
    message = _joined(
        _sentence(verdict, failing),
        faster_elsewhere(evidence),
        crossing,
        *_limits(evidence),
        why,
        _tries_without_result(evidence),
        judged_again(evidence),
    )
    return Conclusion(
        reason=Reason.BaselinePromoted if verdict.winner == BASELINE else _REASONS[outcome],
        message=message,
        verdict=RunVerdict(
            outcome=outcome.value,
            winner=verdict.winner or "",
            rounds=verdict.rounds,
            reason=spent if spent and outcome is Outcome.INCONCLUSIVE else _reason(verdict, failing),
            message=message,
            crossing=crossing,
            speedup=_speedup(verdict),
        ),
    )


def _joined(*sentences: str) -> str:
    return "; ".join(filter(None, sentences))


def _limits(evidence: Evidence) -> tuple[str, ...]:
    """Limits of the verdict: the candidates' own arguments, the sampling, the prompts, the machine."""
    return own_args_note(evidence), scope(evidence.spec, evidence.results), without_a_cluster(evidence)


def _speedup(verdict: Verdict) -> float | None:
    """The winner's mean speed-up over workloads, for `kubectl get`; of a baseline that replaces the incumbent, none."""
    mean = verdict.arms[verdict.winner].mean if verdict.winner else None
    return mean.ratio if mean else None


def _reason(verdict: Verdict, failing: Mapping[str, FailedReplicate]) -> str:
    """The winner's reason; without a winner, the reason of the candidate that came closest: one still open, or else the
    last one decided. The reason of an Error is the first failure among the arms that kept failing."""
    if verdict.winner:
        return verdict.arms[verdict.winner].reason
    if verdict.outcome is Outcome.ERROR:
        return next((failed.failure.name for failed in failing.values()), Failure.NotMeasured.name)
    arms = tuple(arm for name, arm in verdict.arms.items() if name != INCUMBENT)
    still_open = [arm for arm in arms if arm.outcome is not ArmOutcome.REJECTED]
    return max(still_open or arms, key=lambda arm: arm.rounds).reason


def _sentence(verdict: Verdict, failing: Mapping[str, FailedReplicate]) -> str:
    """Every candidate in a few words, the winner first, with the cause for those that kept failing."""
    winner = [verdict.winner] if verdict.winner else []
    names = [*winner, *(name for name in verdict.arms if name != verdict.winner)]
    return "; ".join(
        f"{name}: {failing[name].why}" if name in failing else f"{name} {_summary(verdict.arms[name])}"
        for name in names
    )


def _summary(arm: ArmVerdict) -> str:
    ratio = _figures(arm.mean)
    if arm.incumbent:
        ratio = ", ".join(filter(None, (ratio, f"{_figures(arm.incumbent)} of the incumbent's speed")))
    if arm.outcome is ArmOutcome.PROMOTABLE:
        at_a_rate = f"at a rate {_figures(arm.rated)}" if arm.rated else ""
        return _joined(f"{ratio} {arm.outcome.value}", at_a_rate, arm.lost)
    return " ".join(filter(None, (ratio, arm.outcome.value, explain(arm))))


def _figures(bounds: Bounds | None) -> str:
    return f"{bounds.ratio:.2f}x ({bounds.lower:.2f}–{bounds.upper:.2f})" if bounds else ""


def _tries_without_result(evidence: Evidence) -> str:
    """Number of tries without a result, and their reasons; no arm is to blame for them."""
    reasons = [record.reason for record in evidence.records if record.error]
    if not reasons:
        return ""
    tries = "1 try of a round" if len(reasons) == 1 else f"{len(reasons)} tries of rounds"
    return f"{tries} gave no result ({', '.join(dict.fromkeys(reasons))})"
