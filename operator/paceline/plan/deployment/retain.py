"""Finished runs that nothing refers to go, beyond as many as revisions are kept."""

from datetime import datetime

from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.snapshot import Pool, referred
from paceline.plan.step import Delete, StepResult


def retain(pool: Pool, _: datetime) -> StepResult:
    """The latest `promotion.revisionHistoryLimit` stay beside what is in use: to be looked at, and as evidence should
    their question come back. Those that were superseded answer none, and go before any that does."""
    assert pool.snapshot.spec is not None
    used = {run.name for run in (pool.decided, *pool.asked[:1]) if run} | referred(pool.remembered)
    used |= {run.spec["roundsOf"] for run in pool.runs if not run.finished and "roundsOf" in run.spec}
    spare = sorted((run for run in pool.runs if run.finished and run.name not in used), key=_worth)
    surplus = len(spare) - pool.snapshot.spec.promotion.revision_history_limit
    why = "beyond revisionHistoryLimit, and nothing refers to it"
    return StepResult(actions=tuple(Delete(run.found, why) for run in spare[: max(0, surplus)]))


def _worth(run: Run) -> tuple[bool, str, str]:
    """What is worth least comes first."""
    return run.outcome is not None, run.finished_at, run.name
