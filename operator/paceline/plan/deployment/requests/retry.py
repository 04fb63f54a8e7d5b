"""`retry.paceline.dev/POOL: TOKEN`: try again what is held, and what came to no decision."""

from datetime import datetime

from paceline.api.status import Retried
from paceline.plan.deployment.holds import held_by_a_person, holds, released
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.requests.request import Request, StatusChange

_UNDECIDED = ("Error", "Inconclusive")
"""Outcomes that a person may ask to repeat: they decide no candidate."""


def retry(pool: Pool, request: Request, _: datetime) -> StatusChange:
    """Release every hold, and repeat a run without a decision. Without either the request is handled all the same."""
    without = released(pool) if holds(pool) else {}
    last = _to_repeat(pool)
    if last is None:
        return without
    return {**without, "retried": Retried(question=pool.question, attempt=last, token=request.value)}


def _to_repeat(pool: Pool) -> int | None:
    """The attempt at the present question that came to no decision or was aborted. Its rounds are not used again: a
    person who asks anew doubts them."""
    if pool.decided:
        return pool.decided.attempt if pool.decided.outcome in _UNDECIDED else None
    held = held_by_a_person(pool)
    aborted = held is not None and held.reason == "Aborted" and pool.attempts
    return pool.attempts[0].attempt if aborted else None
