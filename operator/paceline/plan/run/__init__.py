"""A BenchmarkRun: what to do now. Read this first.

    check      a run made by hand may ask for what cannot be carried out: it ends, and says what to change
    taken      the rounds of another run that are to be judged by this one's gate
    collect    what the ended Jobs measured goes into status, once
    conclude   the gate is asked; a run that is superseded, or whose harness keeps failing, ends
    measure    the next round: one Job, where there is room, best where the last one ran

A run is its rounds: status.rounds is all that is remembered, and the next round's name follows from it. So a crash
anywhere repeats an action (the same Job under the same name), never a round.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from paceline.api import Cause
from paceline.api.reasons import to_status as conditions_of
from paceline.api.record import to_status
from paceline.api.run_status import BenchmarkRunStatus, RunProgress
from paceline.api.status import Condition
from paceline.evidence.round_status import point_noise
from paceline.plan.run.again import latest_node
from paceline.plan.run.check import fault
from paceline.plan.run.collect import collect
from paceline.plan.run.conclude import Conclusion, conclude, error
from paceline.plan.run.measure import measure
from paceline.plan.run.results import cost, events, results
from paceline.plan.run.snapshot import Evidence, Snapshot
from paceline.plan.run.taken import unlike
from paceline.plan.step import Delete, Plan, timestamp


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Pure: the same snapshot at the same time gives the same status and actions."""
    if snapshot.finished:
        return Plan(status=None, actions=_stop(snapshot, "the run has ended"))  # a crash may have come between
    if snapshot.spec is None:
        return _told(snapshot, snapshot.status, error(snapshot.invalid), now)
    if not snapshot.superseded and (wrong := fault(snapshot.spec) or unlike(snapshot)):
        return _told(snapshot, snapshot.status, error(wrong), now)
    records = collect(snapshot, now)
    evidence = Evidence(spec=snapshot.spec, records=records)
    status = BenchmarkRunStatus(
        started_at=snapshot.status.started_at,
        node=latest_node(records) or snapshot.status.node,
        rounds=records,
        cost=cost(evidence),
        noise=point_noise(records),
        **results(evidence, snapshot),
    )
    if conclusion := conclude(snapshot, evidence):
        return _told(snapshot, status, conclusion, now)
    said = measure(snapshot, evidence, now)
    status = replace(
        status,
        conditions=_conditions(snapshot, said.causes, now),
        observed_generation=snapshot.generation,
        **said.status,
    )
    return Plan(
        status=to_status(status),
        actions=said.actions,
        events=events(snapshot.status, status),
        requeue_at=said.requeue_at,
    )


def _conditions(snapshot: Snapshot, causes: Iterable[Cause], now: datetime) -> tuple[Condition, ...]:
    return conditions_of(causes, snapshot.status.conditions, snapshot.generation, now)


def _told(snapshot: Snapshot, status: BenchmarkRunStatus, conclusion: Conclusion, now: datetime) -> Plan:
    """The run ends; a round that is still going on is stopped and not kept."""
    cause = Cause(conclusion.reason, None, conclusion.message)
    final = replace(
        status,
        observed_generation=snapshot.generation,
        finished_at=timestamp(now),
        progress=RunProgress(
            step="Finished",
            round=sum(1 for record in status.rounds or () if not record.error),
            message=conclusion.message,
        ),
        conditions=_conditions(snapshot, (cause,), now),
        **conclusion.status,
    )
    return Plan(
        status=to_status(final),
        actions=_stop(snapshot, conclusion.message),
        events=events(snapshot.status, final),
    )


def _stop(snapshot: Snapshot, why: str) -> tuple[Delete, ...]:
    return (Delete(snapshot.active.job, why),) if snapshot.active else ()


__all__ = ["Evidence", "Snapshot", "plan"]
