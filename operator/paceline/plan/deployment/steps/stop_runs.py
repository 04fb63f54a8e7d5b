"""Runs that must not go on are stopped."""

from datetime import datetime

from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.runs import supersede, suspend
from paceline.plan.step import StepResult


def stop_runs(rollout: Rollout, _: datetime) -> StepResult:
    """Suspend every run while spec.suspend is set: the former question may come back. Otherwise supersede those of
    another question. This comes before serve, which may block for long."""
    pool = rollout.pool
    if pool.suspended:
        return StepResult(actions=suspend(pool.snapshot.owner, pool.runs))
    outdated = [run for run in pool.runs if run.question != pool.question]
    return StepResult(actions=supersede(pool.snapshot.owner, outdated))
