"""Runs that must not go on are stopped."""

from datetime import datetime

from paceline.plan.deployment.hold import held_by_a_person
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.runs import abort, close, supersede, suspend
from paceline.plan.deployment.window import annotations, changes_at
from paceline.plan.step import StepResult


def stop_runs(rollout: Rollout, now: datetime) -> StepResult:
    """End every run while a person's hold stands. Suspend every run while spec.suspend is set: the former question may
    come back. Otherwise supersede those of another question, and those in whose place a person has asked for another
    attempt; and while benchmark.window is closed the others start no round. This comes before serve, which may block
    for long."""
    pool = rollout.pool
    if held := held_by_a_person(pool):
        return StepResult(actions=abort(pool.snapshot.owner, pool.runs, held.request))
    if pool.suspended:
        return StepResult(actions=suspend(pool.snapshot.owner, pool.runs))
    outdated = [run for run in pool.runs if run.question != pool.question or pool.given_up(run)]
    going_on = [run for run in pool.runs if run not in outdated and run.under_way]
    closed = annotations(pool.deployment, now)
    return StepResult(
        actions=(*supersede(pool.snapshot.owner, outdated), *close(pool.snapshot.owner, going_on, closed)),
        requeue_at=changes_at(pool.deployment, now) if going_on else None,
    )
