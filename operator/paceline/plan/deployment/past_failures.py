"""What was taken down of a pool: how often in a row, why, and whether its hold says so."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api.status import MOST_TAKEN_DOWN, WHY_LENGTH, Hold, PoolStatus, TakenDown
from paceline.plan.step import parse_time, timestamp

FORGOTTEN = timedelta(days=64)
"""A revision that was not taken down for so long begins anew."""


def taken_down(entry: PoolStatus, revision: str) -> TakenDown | None:
    """The last time for this revision."""
    return next((one for one in _every(entry) if one.revision == revision), None)


def counted(entry: PoolStatus, failed: Hold, now: datetime) -> PoolStatus:
    """The entry with one more time for what failed."""
    before = taken_down(entry, failed.revision)
    in_a_row = before is not None and parse_time(before.since) > now - FORGOTTEN
    latest = TakenDown(
        revision=failed.revision,
        arm=failed.arm,
        reason=failed.reason,
        message=failed.message[:WHY_LENGTH],
        times=1 + (before.times or 0 if before and in_a_row else 0),
        since=timestamp(now),
        fell_back=timestamp(now) if failed.reason == "Fallback" else (before.fell_back if before else ""),
    )
    others = tuple(one for one in _every(entry) if one.revision != failed.revision)
    return replace(entry, taken_down=latest, taken_down_before=others[:MOST_TAKEN_DOWN])


def asked_for_again(entry: PoolStatus, revision: str) -> Mapping[str, Any]:
    """New fields of the entry once a person wants this revision served: evidence from before it stopped paying counts
    again."""
    every = [replace(one, fell_back="") if one.revision == revision else one for one in _every(entry)]
    return {"taken_down": every[0], "taken_down_before": tuple(every[1:])} if every else {}


def beside_a_hold(entry: PoolStatus, held: Hold | None) -> TakenDown | None:
    """What the pool's baseline has taken the place of, while its hold is on something else, and so says nothing of
    it."""
    last, target = entry.taken_down, entry.target
    if last is None or target is None or held is None or held.revision == last.revision:
        return None
    return last if target.since == last.since and target.kind in ("Fallback", "TakenDown") else None


def in_short(last: TakenDown) -> str:
    """That something was taken down, and why."""
    what = "stopped paying" if last.reason == "Fallback" else "did not run"
    return f"{last.arm} at {last.revision} {what}: {last.message}"


def _every(entry: PoolStatus) -> tuple[TakenDown, ...]:
    """The latest first."""
    return (*((entry.taken_down,) if entry.taken_down else ()), *entry.taken_down_before)
