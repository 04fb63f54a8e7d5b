"""When a held candidate is measured again: after a day, and half as often for each further time that it was taken down
in a row, and for each run that has not released the hold.

Another day is another node, driver or load of the cluster; newer evidence then releases the hold. What was rolled back
or aborted by a person waits for a person.
"""

from datetime import datetime, timedelta

from paceline.api.status import Hold, PoolStatus
from paceline.core import BASELINE, Trigger
from paceline.plan.deployment.hold import hold
from paceline.plan.deployment.past_failures import taken_down
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.step import parse_time

FIRST = timedelta(days=1)
"""From the hold, and from a run that it started, to the next one."""
MOST_DOUBLINGS = 4
"""Sixteen days at most."""
RETRIED = ("NotReady", "Crashed", "Fallback")
"""Reasons of a hold for which a run is started."""


def measured_again_at(rollout: Rollout) -> datetime | None:
    """None if no hold asks for a run: there is none, or another candidate is served."""
    pool, held = rollout.pool, hold(rollout.pool)
    if held is None or held.arm == BASELINE or held.reason not in RETRIED or rollout.choice.arm != BASELINE:
        return None
    since = parse_time(held.start_time)
    runs = (parse_time(run.made_at) for run in pool.runs if run.trigger == Trigger.HOLD)
    made = [at for at in runs if at >= since]  # that have not released it
    wait: timedelta = FIRST * 2 ** min(_times(pool.remembered, held) - 1 + len(made), MOST_DOUBLINGS)
    return max([since, *made]) + wait


def _times(entry: PoolStatus, held: Hold) -> int:
    """How often it was taken down in a row, the hold included."""
    before = taken_down(entry, held.revision)
    return before.times or 1 if before else 1
