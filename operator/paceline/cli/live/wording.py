"""Times, revisions and speed-ups in readable form."""

from datetime import UTC, datetime

from paceline.api.status import Hold
from paceline.core.record import finite
from paceline.report.text import ratio_text

MINUTE, HOUR, DAY = 60, 3600, 86400
EMULATED = "emulated"
"""Marks every number of a run without a real model."""
IMPORTED = "measured without a cluster"
"""Marks a speed-up that was measured, at least partly, outside this cluster."""


def time_of(text: str) -> datetime | None:
    """Parses a time from status; None if there is none."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def when(text: str) -> str:
    """UTC, to the minute."""
    time = time_of(text)
    return f"{time:%Y-%m-%d %H:%M} UTC" if time else text


def since_text(text: str, now: datetime | None) -> str:
    """For example 2026-11-21 11:13 UTC (2 h ago)."""
    time = time_of(text)
    return f"{when(text)} ({span_text((now - time).total_seconds())} ago)" if time and now else when(text)


def span_text(seconds: float) -> str:
    """For example 44 s, 12 min, 3 h 20 min, 5 d."""
    whole = max(0, round(seconds))
    if whole < 2 * MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return f"{whole // MINUTE} min"
    if whole < DAY:
        minutes = whole % HOUR // MINUTE
        return f"{whole // HOUR} h {minutes} min" if minutes else f"{whole // HOUR} h"
    return f"{whole // DAY} d"


def hold_text(hold: Hold) -> str:
    """What a hold prevents from being served."""
    return f"{hold.arm} at {hold.revision}" if hold.revision else "the run"


def gpu_hours(gpu_seconds: int) -> str:
    return f"{gpu_seconds / HOUR:.1f} GPU-hours"


def faster(speedup: float | None) -> str:
    """For example 1.36x; empty if nothing was measured."""
    value = finite(speedup)
    return ratio_text(value) if value is not None else ""


def marked(text: str, *, emulated: bool, imported: bool = False) -> str:
    marks = [mark for mark, stands in ((EMULATED, emulated), (IMPORTED, imported)) if stands]
    return f"{text} ({', '.join(marks)})" if text and marks else text
