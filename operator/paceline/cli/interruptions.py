"""The part of `paceline plan` about interruptions: which servers are away, and for how long."""

from collections.abc import Collection, Iterator
from datetime import datetime

from paceline.cli.manifests import RUN
from paceline.core.manifest import Manifest
from paceline.core.text import count
from paceline.core.window import Window
from paceline.plan.costs import Assumptions
from paceline.plan.forecast import ALL_FASTER, forecast
from paceline.plan.interruptions import Interruption


def interruptions(
    manifest: Manifest,
    existing: Collection[Manifest],
    lower: Assumptions,
    upper: Assumptions,
    free: int | None,
    now: datetime,
) -> Iterator[str]:
    """Interruptions if every pool's candidate wins: once quickly, once slowly. `free`: accelerators free beside the
    deployment's servers; None: accelerators are unlimited."""
    if manifest["kind"] == RUN:
        return
    least, most = (
        forecast(manifest, existing, ALL_FASTER, assumed, free, now, beside=True).interruptions
        for assumed in (lower, upper)
    )
    if not least:
        return
    room = "room for everything" if free is None else f"{count(free, 'GPU')} free"
    yield f"\nInterruptions once its servers serve, with {room} besides them:"
    for quick, slow in zip(least, most, strict=False):
        yield f"  {quick.pool:<16} {quick.what}: {_away(quick, slow)}"


def _away(quick: Interruption, slow: Interruption) -> str:
    if not quick.down:
        return "none, as one more server starts next to the others"
    seconds = _span(quick.seconds, slow.seconds)
    if quick.servers == quick.down:
        return f"no server for {seconds} s"
    if quick.lent:
        return f"{quick.servers - quick.down} of {quick.servers} servers for {seconds} s"
    return f"one of {quick.servers} servers away at a time, for {seconds} s each"


def _span(least: float, most: float) -> str:
    first, last = f"{least:.0f}", f"{most:.0f}"
    return first if first == last else f"{first}-{last}"


def opening(window: Window | None, now: datetime) -> Iterator[str]:
    """When rounds may start, if the spec limits that."""
    if window is None:
        return
    closes = window.closes(now)
    at = f"it is open until {closes:%Y-%m-%d %H:%M}" if closes else f"it opens at {window.opens(now):%Y-%m-%d %H:%M}"
    seconds = window.duration.total_seconds()
    hours = f"{seconds / 3600:g} h"
    yield f"\nRounds start only within benchmark.window ({window.schedule} {window.time_zone}, for {hours}): {at} UTC."
