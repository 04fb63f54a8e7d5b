"""When a held candidate is measured again: after a day, and half as often for each further time that it was taken down
in a row, and for each run that has not released the hold.

Another day is another node, driver or load of the cluster; newer evidence then releases the hold. What was rolled back
or aborted by a person waits for a person.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from paceline.api.status import Hold, PoolStatus, TakenDown
from paceline.core import BASELINE, Trigger
from paceline.plan.deployment.hold import hold
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.step import parse_time, timestamp

FIRST = timedelta(days=1)
"""From the hold, and from a run that it started, to the next one."""
MOST_DOUBLINGS = 4
"""Sixteen days at most."""
FORGOTTEN = timedelta(days=64)
"""A candidate that was not taken down for so long begins anew."""
RETRIED = ("NotReady", "Crashed", "Fallback")
"""Reasons of a hold for which a run is started."""


def measured_again_at(rollout: Rollout) -> datetime | None:
    """None if no hold asks for a run: there is none, or another candidate is served."""
    pool, held = rollout.pool, hold(rollout.pool)
    if held is None or held.arm == BASELINE or held.reason not in RETRIED or rollout.choice.arm != BASELINE:
        return None
    since = parse_time(held.since)
    runs = (parse_time(run.made_at) for run in pool.runs if run.trigger == Trigger.HOLD)
    made = [at for at in runs if at >= since]  # that have not released it
    wait: timedelta = FIRST * 2 ** min(_times(pool.remembered, held) - 1 + len(made), MOST_DOUBLINGS)
    return max([since, *made]) + wait


def counted(entry: PoolStatus, held: Hold, now: datetime) -> PoolStatus:
    """The entry with a new hold on a candidate."""
    if held.arm == BASELINE:
        return replace(entry, hold=held)
    once_more = taken_down(entry, held.revision, now, fell_back=held.reason == "Fallback")
    return replace(entry, hold=held, taken_down=once_more)


def taken_down(entry: PoolStatus, revision: str, now: datetime, *, fell_back: bool) -> TakenDown:
    """That a candidate was taken down once more."""
    before = entry.taken_down if entry.taken_down and entry.taken_down.revision == revision else None
    in_a_row = before is not None and parse_time(before.since) > now - FORGOTTEN
    return TakenDown(
        revision=revision,
        times=1 + (before.times or 0 if before and in_a_row else 0),
        since=timestamp(now),
        fell_back=timestamp(now) if fell_back else (before.fell_back if before else ""),
    )


def _times(entry: PoolStatus, held: Hold) -> int:
    """How often it was taken down in a row, the hold included."""
    before = entry.taken_down
    return before.times or 1 if before and before.revision == held.revision else 1
