"""One look at a pool: its servers' counts become windows, and the windows a judgement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from paceline.engines import ENGINES
from paceline.engines.monitor import Counts
from paceline.watch.judge import Facts, judge
from paceline.watch.model import Judgement, Watched
from paceline.watch.windows import ServerWindow, read

LONGEST_PERIOD, LEAST_PERIOD = 30.0, 1.0
READINGS = 20
"""Of a window, at least: ten of each half. A window of ten minutes is read every 30 seconds."""


def period_seconds(watched: Watched) -> float:
    """Between two looks at a pool."""
    return min(LONGEST_PERIOD, max(LEAST_PERIOD, watched.window.total_seconds() / READINGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A server's process: another one of the same pod counts from zero."""

    pod: str
    started: str
    """Differs from one process of the pod to the next, and of a pod of the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolWatch:
    """What is remembered of a pool between two looks. `read_at` is when a server was last read, or watching began."""

    watched: Watched
    read_at: float
    servers: Mapping[Process, ServerWindow] = field(default_factory=dict)
    judgement: Judgement | None = None


def observe(
    before: PoolWatch | None, watched: Watched, seen: Mapping[Process, Counts | str], at: float, now: datetime
) -> PoolWatch:
    """What is known after a look at `at`, in seconds of a clock that never steps back; `now` is the time of day.

    `seen` are the ready servers, each with its counts or with why it could not be read. Another revision, or another
    way of judging it, begins anew: nothing that one server did is held against its successor.
    """
    if before is None or before.watched.revision != watched.revision or before.watched.window != watched.window:
        before = PoolWatch(watched=watched, read_at=at)
    monitor = ENGINES[watched.engine].monitor(watched.version)
    window = watched.window.total_seconds()
    counted = {process: counts for process, counts in seen.items() if isinstance(counts, Counts)}
    servers = {
        process: read(before.servers.get(process), monitor, counts, at, window) for process, counts in counted.items()
    }
    unread = {process: known for process, known in before.servers.items() if process in seen and process not in counted}
    read_at = at if counted else before.read_at
    facts = Facts(
        watched=watched,
        monitor=monitor,
        servers={process.pod: server for process, server in servers.items()},
        silent_seconds=at - read_at,
        error=next((str(error) for process, error in seen.items() if process not in counted), ""),
        before=before.judgement.kind if before.judgement else None,
    )
    kind, message = judge(facts)
    known = before.judgement
    since = known.since if known and known.kind is kind else now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return PoolWatch(
        watched=watched,
        read_at=read_at,
        servers=servers | unread,
        judgement=Judgement(kind=kind, message=message, revision=watched.revision, since=since, numbers=facts.numbers),
    )
