"""One look at a pool: update the windows of its servers, and judge them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from paceline.engines import ENGINES
from paceline.engines.monitor import Counts
from paceline.watch.judge import Facts, judge_servers
from paceline.watch.model import Judgement, Watched
from paceline.watch.windows import ServerWindow, add_reading

LONGEST_PERIOD, LEAST_PERIOD = 30.0, 1.0
READINGS = 20
"""Minimum readings per window: ten in each half. A window of ten minutes is read every 30 seconds."""

_PATIENCE = 0.5
"""Fraction of a window: a server unread for this long is forgotten; a pool of such servers is Unreadable."""


def period_seconds(watched: Watched) -> float:
    """Seconds between two looks at a pool."""
    return min(LONGEST_PERIOD, max(LEAST_PERIOD, watched.window.total_seconds() / READINGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of a server; another process of the same pod counts from zero."""

    pod: str
    started: str
    """Differs between processes of a pod, and between pods of the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWatch:
    """The state of a pool between two looks. `read_at`: when a server was last read, or when watching began."""

    watched: Watched
    read_at: float
    servers: Mapping[Process, ServerWindow]
    judgement: Judgement


def observe(
    before: PoolWatch | None, watched: Watched, seen: Mapping[Process, Counts | str], at: float, now: datetime
) -> PoolWatch:
    """The state after a look at `at`, in seconds of a monotonic clock; `now` is the time of day.

    `seen`: the ready servers, each with its counts or the reason that it could not be read. Another revision or window
    starts from scratch: the past of one server does not count against its successor.
    """
    if before and (before.watched.revision, before.watched.window) != (watched.revision, watched.window):
        before = None
    monitor = ENGINES[watched.engine].monitor(watched.version)
    known = before.servers if before else {}
    errors = [counts for counts in seen.values() if isinstance(counts, str)]
    counted = {
        process: add_reading(known.get(process), monitor, counts, at, watched.window.total_seconds())
        for process, counts in seen.items()
        if isinstance(counts, Counts)
    }
    missed = {
        process: server
        for process, server in known.items()
        if process in seen.keys() - counted.keys() and at - server.last.at < _PATIENCE * watched.window.total_seconds()
    }
    read_at = before.read_at if before and errors and not counted else at
    facts = Facts(
        watched=watched,
        monitor=monitor,
        servers={process.pod: server for process, server in (missed | counted).items()},
        silent_seconds=at - read_at,
        error=next(iter(errors), ""),
        before=before.judgement.kind if before else None,
    )
    kind, message = judge_servers(facts)
    stays = before if before and before.judgement.kind is kind else None
    since = stays.judgement.since if stays else now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return PoolWatch(
        watched=watched,
        read_at=read_at,
        servers=missed | counted,
        judgement=Judgement(kind=kind, message=message, revision=watched.revision, since=since, numbers=facts.numbers),
    )
