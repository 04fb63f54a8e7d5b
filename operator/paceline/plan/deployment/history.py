"""`history` of a pool: every change of what serves, written in the same status as the change of `serving`."""

from collections.abc import Iterator
from datetime import datetime

from paceline.api.status import MESSAGE_LENGTH, MOST_CHANGES, Change, Evidence, Serving, Target
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import timestamp


def with_change(pool: Pool, serving: Serving | None, target: Target, now: datetime) -> tuple[Change, ...]:
    """The history with a change to `serving`, the latest first. It is called when a roll-out has ended, even where it
    began: that a candidate was tried and undone is worth a line."""
    changed = Change(
        time=timestamp(now),
        revision=target.revision if serving else "",
        arm=target.arm if serving else "",
        reason=target.reason if serving else "Stopped",
        message=target.message[:MESSAGE_LENGTH],
        request=target.request,
        evidence=target.evidence if serving else Evidence(),
    )
    return (changed, *pool.remembered.history)[:MOST_CHANGES]


def past(pool: Pool) -> Iterator[Change]:
    """What has served, the latest first; what serves now is among it."""
    return (change for change in pool.remembered.history if change.revision)
