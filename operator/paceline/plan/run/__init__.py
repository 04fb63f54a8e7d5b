"""Plans a BenchmarkRun. Read this first.

    1. check      end a run with an invalid spec, and name the field to change
    2. take_in    check rounds that were measured without a cluster; such a run measures nothing
    3. take_over  before its first round: copy the rounds of the run in gate.roundsOf
    4. collect    add the rounds whose Jobs have ended since the last pass, each once
    5. record     write new rounds as BenchmarkRounds; they count from the next pass on
    6. conclude   ask the gate; end a run that has a verdict, was superseded, or keeps failing
    7. measure    start the next round, watch or remove the Job of the current one

A step returns new evidence (`Evidence`, for the steps after it), the run's end (`Conclusion`), what to do
(`StepResult`; it ends the pass), or None. Steps import no steps.

Its BenchmarkRounds are the whole state of a run, and the next round's name follows from them. So a crash repeats an
action (the same Job under the same name), never a round, and a run that lost its status reaches the same verdict.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.api.reasons import conditions_to_status as conditions_of
from paceline.api.run_status import BenchmarkRunStatus, RunProgress
from paceline.api.status import Condition
from paceline.core.record import to_status
from paceline.evidence.round_status import point_noise
from paceline.plan.run.conclusion import Conclusion, error
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.next_round import latest_node
from paceline.plan.run.origin import own
from paceline.plan.run.results import cost, results, round_events, verdict_events
from paceline.plan.run.rounds import new, ownerless_rounds
from paceline.plan.run.snapshot import Snapshot
from paceline.plan.run.steps.check import check
from paceline.plan.run.steps.collect import collect
from paceline.plan.run.steps.conclude import conclude
from paceline.plan.run.steps.measure import measure
from paceline.plan.run.steps.record import record
from paceline.plan.run.steps.take_in import take_in
from paceline.plan.run.steps.take_over import take_over
from paceline.plan.step import Adopt, Delete, Event, Plan, StepResult, timestamp

EvidenceStep = Callable[[Snapshot, Evidence, datetime], Evidence | Conclusion | StepResult | None]
STEPS: tuple[EvidenceStep, ...] = (check, take_in, take_over, collect, record, conclude, measure)


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Pure: the same snapshot at the same time yields the same status and actions."""
    if snapshot.finished:
        return Plan(status=None, actions=_stop(snapshot, "the run has ended"))  # after a crash a Job may be left
    if snapshot.spec is None:
        return _end(snapshot, None, error(snapshot.invalid), now)
    if snapshot.unread and not snapshot.superseded:
        return _without_rounds(snapshot, now)
    evidence = Evidence(spec=snapshot.spec, records=snapshot.rounds)
    for step in STEPS:
        match step(snapshot, evidence, now):
            case Evidence() as learnt:
                evidence = learnt
            case StepResult() as result:
                return _go_on(snapshot, evidence, result, now)
            case Conclusion() as conclusion:
                return _end(snapshot, evidence, conclusion, now)
    return _go_on(snapshot, evidence, StepResult(), now)


def _without_rounds(snapshot: Snapshot, now: datetime) -> Plan:
    """The run's rounds could not be read, so no round may start."""
    causes = (Cause(Reason.RunRefused, None, f"its BenchmarkRounds cannot be read: {snapshot.unread}"),)
    return Plan(status=to_status(replace(snapshot.status, conditions=_conditions(snapshot, causes, now))))


def _status(snapshot: Snapshot, evidence: Evidence) -> BenchmarkRunStatus:
    return BenchmarkRunStatus(
        start_time=snapshot.status.start_time or min((one.start_time for one in own(evidence.results)), default=""),
        recorded=len(evidence.records) or None,
        node=latest_node(evidence.records) or snapshot.status.node,
        cost=cost(evidence),
        noise=point_noise(evidence.records),
        **results(evidence, snapshot.manifest["spec"]),
    )


def _go_on(snapshot: Snapshot, evidence: Evidence, result: StepResult, now: datetime) -> Plan:
    """Newly recorded rounds leave the status unchanged: the next pass counts them."""
    recording = new(evidence.records, snapshot.rounds)
    actions = (*_adopt(snapshot), *_clear(snapshot), *result.actions)
    if recording and not result.causes:
        return Plan(status=None, actions=actions, requeue_at=result.requeue_at)
    status = replace(
        snapshot.status if recording else _status(snapshot, evidence),
        conditions=_conditions(snapshot, result.causes, now),
        observed_generation=snapshot.generation,
        **result.status,
    )
    events = () if recording else _told(snapshot, evidence)
    return Plan(status=to_status(status), actions=actions, events=events, requeue_at=result.requeue_at)


def _end(snapshot: Snapshot, evidence: Evidence | None, conclusion: Conclusion, now: datetime) -> Plan:
    """End the run; a round under way is stopped and its result discarded."""
    status = _status(snapshot, evidence) if evidence else snapshot.status
    final = replace(
        status,
        observed_generation=snapshot.generation,
        completion_time=timestamp(now),
        progress=RunProgress(
            step="Finished", round=len(evidence.results) if evidence else None, message=conclusion.message
        ),
        conditions=_conditions(snapshot, (Cause(conclusion.reason, None, conclusion.message),), now),
        verdict=conclusion.verdict or status.verdict,
    )
    return Plan(
        status=to_status(final),
        actions=(*_stop(snapshot, conclusion.message), *_adopt(snapshot)),
        events=(*(_told(snapshot, evidence) if evidence else ()), *verdict_events(snapshot.status, final)),
    )


def _conditions(snapshot: Snapshot, causes: tuple[Cause, ...], now: datetime) -> tuple[Condition, ...]:
    return conditions_of(causes, snapshot.status.conditions, snapshot.generation, now)


def _told(snapshot: Snapshot, evidence: Evidence) -> tuple[Event, ...]:
    """Events of rounds that status has not counted yet. A crash after the status is written loses these Events but
    repeats none."""
    return round_events(evidence.records[snapshot.status.recorded or 0 :])


def _adopt(snapshot: Snapshot) -> tuple[Adopt, ...]:
    """Adopt rounds from a backup or a file, so that they are deleted with their run."""
    reference = snapshot.owner.reference
    return tuple(Adopt(one, reference, "a round of this run") for one in ownerless_rounds(snapshot.mine))


def _clear(snapshot: Snapshot) -> tuple[Delete, ...]:
    """Delete Jobs left by a deleted run of this name: this run's Jobs need their names, and a Job cannot be changed."""
    return tuple(Delete(job, "a deleted run of this name has left it") for job in snapshot.left)


def _stop(snapshot: Snapshot, why: str) -> tuple[Delete, ...]:
    return (Delete(snapshot.active.job, why),) if snapshot.active else ()


__all__ = ["STEPS", "Evidence", "Snapshot", "plan"]
