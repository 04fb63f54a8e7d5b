"""Recent counts of one server, as the readings of a window. Times are seconds of a monotonic clock."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from paceline.engines.monitor import TOTALS, Counts, Monitor

MOST_READINGS = 40
"""Maximum readings per window: a window longer than 20 minutes keeps every second reading, or fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowReading:
    at: float
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWindow:
    """The readings of one process, oldest first. The first is as old as the window, or the process's first.

    `stirred_at`: when its tokens last increased, or when it last was idle.
    """

    readings: tuple[WindowReading, ...]
    stirred_at: float

    @property
    def last(self) -> WindowReading:
        return self.readings[-1]

    @property
    def seconds(self) -> float:
        return self.last.at - self.readings[0].at

    def silent_seconds(self) -> float:
        """How long the server has had requests under way without a token."""
        return self.last.at - self.stirred_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Increase:
    """Counts of all servers together over a time; `under_way` is the mean per server."""

    requests: float = 0.0
    verify_steps: float = 0.0
    accepted: float = 0.0
    ttft_seconds: float = 0.0
    first_tokens: float = 0.0
    itl_seconds: float = 0.0
    later_tokens: float = 0.0
    under_way: float = 0.0

    @property
    def accept_length(self) -> float | None:
        return 1 + max(0.0, self.accepted) / self.verify_steps if self.verify_steps > 0 else None

    @property
    def ttft(self) -> float | None:
        return self.ttft_seconds / self.first_tokens if self.first_tokens > 0 else None

    @property
    def itl(self) -> float | None:
        return self.itl_seconds / self.later_tokens if self.later_tokens > 0 else None


def add_reading(
    before: ServerWindow | None, monitor: Monitor, counts: Counts, at: float, window: float
) -> ServerWindow:
    """The window with one more reading. If a counter fell, the window starts again: counts from before and after a
    restart are never compared."""
    fell = before is not None and any(
        getattr(counts, name) < getattr(before.last.counts, name) for name in ("requests", "first_tokens", "moved")
    )
    if before is None or fell:
        return ServerWindow(readings=(WindowReading(at=at, counts=counts),), stirred_at=at)
    last = before.last.counts
    if monitor.accept_length:
        counts = _steps_by_gauge(last, counts)
    stirred = counts.moved > last.moved or not counts.under_way
    kept = _thinned(before.readings, window)
    return ServerWindow(
        readings=_recent((*kept, WindowReading(at=at, counts=counts)), at - window),
        stirred_at=at if stirred else before.stirred_at,
    )


def _steps_by_gauge(last: Counts, now: Counts) -> Counts:
    """`now` with verify steps computed from its tokens since `last` and the gauge of its acceptance length.

    Without a gauge these tokens count neither as steps nor as accepted.
    """
    tokens = max(0.0, now.tokens - last.tokens) if now.accept_length else 0.0
    steps = tokens / now.accept_length if tokens else 0.0
    return replace(now, verify_steps=last.verify_steps + steps, accepted=last.accepted + tokens - steps)


def _thinned(readings: tuple[WindowReading, ...], window: float) -> tuple[WindowReading, ...]:
    """Drop the last reading if it came too soon after the one before for `MOST_READINGS` per window."""
    close = len(readings) > 2 and readings[-1].at - readings[-2].at < window / MOST_READINGS
    return readings[:-1] if close else readings


def _recent(readings: tuple[WindowReading, ...], since: float) -> tuple[WindowReading, ...]:
    """Readings since then, and the last one before."""
    older = sum(reading.at <= since for reading in readings)
    return readings[max(0, older - 1) :]


def halves(servers: Iterable[ServerWindow]) -> tuple[Increase, Increase]:
    """The counts of the servers in the older and in the newer half of their readings."""
    older, newer = list[tuple[WindowReading, ...]](), list[tuple[WindowReading, ...]]()
    for server in servers:
        middle = (server.readings[0].at + server.last.at) / 2
        split = min(range(len(server.readings)), key=lambda i: abs(server.readings[i].at - middle))
        older.append(server.readings[: split + 1])
        newer.append(server.readings[split:])
    return window_increase(older), window_increase(newer)


def window_increase(servers: Iterable[tuple[WindowReading, ...]]) -> Increase:
    servers = [readings for readings in servers if readings]
    grown = {
        name: math.fsum(getattr(r[-1].counts, name) - getattr(r[0].counts, name) for r in servers)
        for name in TOTALS
        if name in Increase.__slots__
    }
    loads = [math.fsum(reading.counts.under_way for reading in r) / len(r) for r in servers]
    return Increase(**grown, under_way=math.fsum(loads) / len(loads) if loads else 0.0)
