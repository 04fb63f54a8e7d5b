"""Speculation that does not pay as measured is reported."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from paceline.plan.deployment.degraded import causes, degraded, judged
from paceline.plan.deployment.expected import expected
from paceline.plan.deployment.hold import hold
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.step import StepResult
from paceline.watch import Kind


def report_degraded(rollout: Rollout, now: datetime) -> StepResult:
    """Keep what the evidence expects of the choice, and what the judgement says of it. `take_down` has fallen back
    before, where the guard is to."""
    pool, choice = rollout.pool, rollout.choice
    found = degraded(pool, choice, now)
    return StepResult(
        causes=tuple(causes(pool.name, replace(pool.remembered, degraded=found), hold(pool))),
        status={"expected": expected(pool, choice), "degraded": found},
        notes=tuple(_unread(rollout)),
    )


def _unread(rollout: Rollout) -> Iterator[str]:
    """That the servers cannot be watched; as it was said first, since the message counts the time."""
    pool, judgement = rollout.pool, judged(rollout.pool, rollout.choice)
    if judgement and judgement.kind is Kind.UNREADABLE:
        begins = f"spec.guard: pool {pool.name} cannot be watched: "
        before = (note for note in pool.snapshot.status.notes if note.startswith(begins))
        yield next(before, begins + judgement.message)
