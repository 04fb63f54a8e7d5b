"""What one server counted lately, as the readings of a window. Times are seconds of a clock that never steps back."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from paceline.engines.monitor import TOTALS, Counts, Monitor

MOST_READINGS = 40
"""Of a window: a longer window than 20 minutes keeps every second one, or fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowReading:
    at: float
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWindow:
    """The readings of one process, the oldest first. The first is as old as the window, or the process' first.

    `stirred_at` is when its tokens last moved, or when it last had nothing to do.
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
        """How long it has had requests under way without a token."""
        return self.last.at - self.stirred_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Increase:
    """What servers counted in a time, all together; `under_way` is the mean of one server."""

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
    """The window with one more reading. A counter that fell began anew, and the window with it: what a process counted
    before its restart is never compared with what came after."""
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
    """`now` with verify steps that follow from its tokens since `last` and the gauge of its acceptance length.

    Without a gauge the tokens are left out, of the steps and of what was accepted.
    """
    tokens = max(0.0, now.tokens - last.tokens) if now.accept_length else 0.0
    steps = tokens / now.accept_length if tokens else 0.0
    return replace(now, verify_steps=last.verify_steps + steps, accepted=last.accepted + tokens - steps)


def _thinned(readings: tuple[WindowReading, ...], window: float) -> tuple[WindowReading, ...]:
    """Without the last where it came sooner after the one before than a window's readings need."""
    close = len(readings) > 2 and readings[-1].at - readings[-2].at < window / MOST_READINGS
    return readings[:-1] if close else readings


def _recent(readings: tuple[WindowReading, ...], since: float) -> tuple[WindowReading, ...]:
    """Those since then, and the last before."""
    older = sum(reading.at <= since for reading in readings)
    return readings[max(0, older - 1) :]


def halves(servers: Iterable[ServerWindow]) -> tuple[Increase, Increase]:
    """What the servers counted in the older and in the newer half of their readings."""
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
