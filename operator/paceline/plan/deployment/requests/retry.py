"""`retry.paceline.dev/POOL: TOKEN`: release holds, and repeat a run without a decision."""

from datetime import datetime

from paceline.api.status import Retried
from paceline.plan.deployment.holds import held_by_a_person, holds, released
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.requests.request import Request, StatusChange

_UNDECIDED = ("Error", "Inconclusive")
"""Outcomes that a person may ask to repeat: they decide nothing."""


def retry(pool: Pool, request: Request, _: datetime) -> StatusChange:
    """Release every hold, and repeat a run without a decision. Without either, the request still counts as handled."""
    without = released(pool) if holds(pool) else {}
    last = _to_repeat(pool)
    if last is None:
        return without
    return {**without, "retried": Retried(question=pool.question, attempt=last, token=request.value)}


def _to_repeat(pool: Pool) -> int | None:
    """The attempt at the present question that had no decision or was aborted. Its rounds are not reused: a person who
    asks for a repetition doubts them."""
    if pool.decided:
        return pool.decided.attempt if pool.decided.outcome in _UNDECIDED else None
    held = held_by_a_person(pool)
    aborted = held is not None and held.reason == "Aborted" and pool.attempts
    return pool.attempts[0].attempt if aborted else None
