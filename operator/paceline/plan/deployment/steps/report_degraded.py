"""Speculation that does not pay as measured is reported."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from paceline.core import GuardAction
from paceline.plan.deployment.degraded import causes, degraded, judged
from paceline.plan.deployment.expected import expected
from paceline.plan.deployment.hold import hold
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.step import StepResult, parse_time
from paceline.watch import JudgementKind


def report_degraded(rollout: Rollout, now: datetime) -> StepResult:
    """Keep what the evidence expects of the choice, and what the judgement says of it. `take_down` has fallen back
    before, where the guard is to."""
    pool, choice = rollout.pool, rollout.choice
    found = degraded(pool, choice, now)
    return StepResult(
        causes=tuple(causes(pool.name, replace(pool.remembered, degraded=found), hold(pool))),
        status={"expected": expected(pool, choice), "degraded": found},
        notes=(*_unread(rollout), *_unwatched(rollout, now)),
    )


def _unread(rollout: Rollout) -> Iterator[str]:
    """That the servers cannot be watched; as it was said first, since the message counts the time."""
    pool, judgement = rollout.pool, judged(rollout.pool, rollout.choice)
    if judgement and judgement.kind is JudgementKind.UNREADABLE:
        begins = f"spec.guard: pool {pool.name} cannot be watched: "
        before = (note for note in pool.snapshot.status.notes if note.startswith(begins))
        yield next(before, begins + judgement.message)


def _unwatched(rollout: Rollout, now: datetime) -> Iterator[str]:
    """A pool is not watched while its servers are replaced: two revisions serve then, and the evidence is of one. Said
    once that takes longer than it does where there is room."""
    pool, target = rollout.pool, rollout.pool.remembered.target
    serves = pool.remembered.serving is not None and pool.servers is not None and pool.servers.ready
    if pool.deployment.guard.action is GuardAction.NONE or not serves or rollout.settled or rollout.has_served:
        return
    if target is None or target.revision != rollout.choice.revision:
        return
    if now >= parse_time(target.start_time) + pool.deployment.promotion.progress_deadline:
        by = f"{target.arm} at {target.revision} since {target.start_time}"
        yield f"spec.guard: pool {pool.name} is not watched while its servers are replaced, by {by}"
