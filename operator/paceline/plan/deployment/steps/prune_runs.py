"""Finished runs beyond promotion.revisionHistoryLimit are deleted."""

from datetime import datetime

from paceline.core import rounds_of
from paceline.plan.deployment.pool import Pool, runs_in_use
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.runs import Run
from paceline.plan.step import Delete, StepResult


def prune_runs(rollout: Rollout, _: datetime) -> StepResult:
    """Keep runs that status refers to, those of `history` for as long as the revision is kept, and the latest
    `promotion.revisionHistoryLimit` others: for people to read, and as evidence should their question come back.
    Superseded runs answer no question and go first. What was measured without a cluster is of who applied it."""
    pool = rollout.pool
    used = {run.name for run in (pool.decided, pool.search, *pool.attempts[:1]) if run} | runs_in_use(pool.remembered)
    used |= _of_history(pool)
    used |= {rounds_of(run.spec) for run in pool.runs if not run.finished}
    own = [run for run in pool.runs if run.finished and not run.imported]
    spare = sorted((run for run in own if run.name not in used), key=_worth)
    surplus = len(spare) - pool.deployment.promotion.revision_history_limit
    why = "beyond revisionHistoryLimit, and nothing refers to it"
    return StepResult(actions=tuple(Delete(run.manifest, why) for run in spare[: max(0, surplus)]))


def _of_history(pool: Pool) -> set[str]:
    """Runs on which `rollback` can go back: those on which each kept revision served last. What serves now has its
    own."""
    present = pool.remembered.serving.revision if pool.remembered.serving else ""
    latest = {change.revision: change.evidence.run for change in reversed(pool.remembered.history)}
    return {run for revision, run in latest.items() if revision in pool.kept and revision != present}


def _worth(run: Run) -> tuple[bool, str, str]:
    """The run that is worth least sorts first."""
    return run.outcome is not None, run.completion_time, run.name
