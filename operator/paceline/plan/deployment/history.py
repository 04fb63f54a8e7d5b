"""`history` of a pool: every change of what serves, written in the same status as the change of `serving`."""

from collections.abc import Iterator
from datetime import datetime

from paceline.api.status import MOST_CHANGES, WHY_LENGTH, Change, Serving, Target
from paceline.plan.deployment.pool import Pool
from paceline.plan.step import timestamp


def with_change(pool: Pool, serving: Serving | None, target: Target, now: datetime) -> tuple[Change, ...]:
    """The history with a change to `serving`, the latest first. It is called when a roll-out has ended, even where it
    began: that a candidate was tried and undone is worth a line."""
    changed = Change(
        time=timestamp(now),
        revision=target.revision if serving else "",
        arm=target.arm if serving else "",
        kind=target.kind if serving else "Stopped",
        speedup=target.speedup if serving else None,
        evidence=target.evidence if serving else "",
        emulated=target.emulated if serving else None,
        imported=target.imported if serving else False,
        why=target.why[:WHY_LENGTH],
        request=target.request,
    )
    return (changed, *_written(pool))[:MOST_CHANGES]


def past(pool: Pool) -> Iterator[Change]:
    """What has served, the latest first; what serves now is among it."""
    return (change for change in _written(pool) if change.revision)


def _written(pool: Pool) -> tuple[Change, ...]:
    """The history; in the status of an older release, which kept none, it begins with what served last."""
    last = pool.remembered.serving
    if pool.remembered.history or last is None:
        return pool.remembered.history
    return (
        Change(
            time=last.since,
            revision=last.revision,
            arm=last.arm,
            speedup=last.speedup,
            evidence=last.evidence,
            emulated=last.emulated,
            imported=last.imported,
        ),
    )
