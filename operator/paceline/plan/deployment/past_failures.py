"""What was taken down of a pool: how often in a row, why, and whether its hold says so."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api.status import MESSAGE_LENGTH, MOST_TAKEN_DOWN, Hold, PoolStatus, TakenDown
from paceline.plan.step import parse_time, timestamp

FORGOTTEN = timedelta(days=64)
"""A revision that was not taken down for so long begins anew."""


def taken_down(entry: PoolStatus, revision: str) -> TakenDown | None:
    """The last time for this revision."""
    return next((one for one in entry.taken_down if one.revision == revision), None)


def counted(entry: PoolStatus, failed: Hold, now: datetime) -> PoolStatus:
    """The entry with one more time for what failed."""
    before = taken_down(entry, failed.revision)
    in_a_row = before is not None and parse_time(before.since) > now - FORGOTTEN
    latest = TakenDown(
        revision=failed.revision,
        arm=failed.arm,
        reason=failed.reason,
        message=failed.message[:MESSAGE_LENGTH],
        times=1 + (before.times or 0 if before and in_a_row else 0),
        since=timestamp(now),
        fell_back=timestamp(now) if failed.reason == "Fallback" else (before.fell_back if before else ""),
    )
    others = (replace(one, message="") for one in entry.taken_down if one.revision != failed.revision)
    return replace(entry, taken_down=(latest, *others)[:MOST_TAKEN_DOWN])


def asked_for_again(entry: PoolStatus, revision: str) -> Mapping[str, Any]:
    """New fields of the entry once a person wants this revision served: evidence from before it stopped paying counts
    again."""
    every = (replace(one, fell_back="") if one.revision == revision else one for one in entry.taken_down)
    return {"taken_down": tuple(every)}


def beside_a_hold(entry: PoolStatus, held: Hold | None) -> TakenDown | None:
    """What the pool's baseline has taken the place of, while its hold is on something else, and so says nothing of
    it."""
    last, target = next(iter(entry.taken_down), None), entry.target
    if last is None or target is None or held is None or held.revision == last.revision:
        return None
    return last if target.start_time == last.since and target.reason in ("Fallback", "TakenDown") else None


def in_short(last: TakenDown) -> str:
    """That something was taken down, and why."""
    what = "stopped paying" if last.reason == "Fallback" else "did not run"
    return f"{last.arm} at {last.revision} {what}: {last.message}"
