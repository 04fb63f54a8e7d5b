"""`retry.paceline.dev/POOL: TOKEN`: try again what is held, and what came to no decision."""

from datetime import datetime

from paceline.api.status import Retried
from paceline.plan.deployment.hold import hold, release
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.requests.request import Effect, Request

UNDECIDED = ("Error", "Inconclusive")
"""Outcomes that a person may ask to repeat: they decide no candidate."""


def retry(pool: Pool, request: Request, _: datetime) -> Effect:
    """Release the hold, and repeat a run without a decision. Without either the request is handled all the same."""
    released = release(pool, held.revision) if (held := hold(pool)) else {}
    last = _to_repeat(pool)
    if last is None:
        return released
    return {**released, "retried": Retried(question=pool.question, attempt=last, token=request.value)}


def _to_repeat(pool: Pool) -> int | None:
    """The attempt at the present question that came to no decision or was aborted. Its rounds are not used again: a
    person who asks anew doubts them."""
    if pool.decided:
        return pool.decided.attempt if pool.decided.outcome in UNDECIDED else None
    held = hold(pool)
    aborted = held is not None and held.reason == "Aborted" and pool.attempts
    return pool.attempts[0].attempt if aborted else None
