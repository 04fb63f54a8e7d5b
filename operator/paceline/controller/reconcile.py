"""One reconcile: gather, plan, publish the status, then act."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from paceline.controller import metrics
from paceline.controller.cluster import Cluster, Key
from paceline.controller.execute import execute, publish
from paceline.controller.gather import gather_deployment, gather_run
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.core.text import printable
from paceline.kube import ApiError, Conflict, Manifest, NotFound, TooManyRequests, Unavailable
from paceline.plan import deployment, run
from paceline.plan.objects import finished
from paceline.plan.step import Event, Plan
from paceline.render import Settings

log = logging.getLogger(__name__)

RESYNC_SECONDS = 600.0
"""A missed event costs at most this; nothing is written if nothing changed."""

CLOSED_SECONDS = 30.0
"""Until a namespace that is gone or forbidden is looked at again, in what the reflectors know of it."""


class Recorder(Protocol):
    """Tells people: an Event regarding an object."""

    async def __call__(self, regarding: Manifest, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """How one of our kinds is reconciled."""

    gather: Callable[[Cluster, Key, Settings, datetime], Awaitable[Any]]
    plan: Callable[[Any, datetime], Plan]


PLANNERS: Mapping[str, Kind] = {
    SPECULATIVE_DEPLOYMENT.plural: Kind(gather_deployment, deployment.plan),
    BENCHMARK_RUN.plural: Kind(gather_run, run.plan),
}


def now() -> datetime:
    """To the second, as statuses keep it."""
    return datetime.now(UTC).replace(microsecond=0)


@asynccontextmanager
async def telling(record: Recorder, regarding: Manifest) -> AsyncIterator[None]:
    """What keeps an object from having a status at all is told by an Event: there is no other place. It is tried again,
    later and later."""
    try:
        yield
    except ApiError as error:
        if not isinstance(error, PASSING) or TOO_LARGE in error.message:
            note = f"its status cannot be written, so nothing is done: {error}"
            await record(regarding, Event(reason="StatusRefused", note=printable(note), type="Warning"))
        raise
    except Exception as error:
        what = f"the operator cannot decide what to do: {type(error).__name__}: {error}"
        note = f"{what}; what serves goes on as it is; where it failed is in the operator's log"
        await record(regarding, Event(reason="OperatorFailed", note=printable(note), type="Warning"))
        raise


PASSING = (Conflict, NotFound, TooManyRequests, Unavailable)
"""Answers to a status that the next pass may not get."""
TOO_LARGE = "too large"
"""In etcd's words, which come with status 500 as an outage does; the API server's own are a 413."""


async def reconcile(
    cluster: Cluster, key: Key, settings: Settings, record: Recorder, clock: Callable[[], datetime] = now
) -> float | None:
    """Seconds until the next look; None once the object is gone, or is a run that has ended and left nothing to do."""
    if cluster.closed(key.namespace):  # a pass that does not see the children would start everything again
        return CLOSED_SECONDS
    kind = PLANNERS[key.plural]
    with metrics.reconciling(key.plural):
        snapshot = await kind.gather(cluster, key, settings, clock())
        if snapshot is None:
            metrics.forget(key.plural, key.namespace, key.name)
            return None
        at = clock()
        async with telling(record, snapshot.manifest):
            plan = kind.plan(snapshot, at)
            if plan.status is not None:
                await publish(cluster, snapshot.manifest, dict(plan.status))
        if plan.status is not None:
            metrics.show(key.plural, snapshot.manifest, plan.status)
        for event in plan.events:
            await record(snapshot.manifest, event)
        told_before = cluster.refusals.pop(key, {})
        refused = await execute(cluster, plan.actions)
        for error in refused.values():  # trying again will not help: somebody must hear of it
            await record(snapshot.manifest, Event(reason="Refused", note=str(error), type="Warning"))
        if refused:
            cluster.refusals[key] = {name: str(error) for name, error in refused.items()}
            raise next(iter(refused.values()))
    if told_before:
        return 0.0  # status says so until the next pass
    if plan.requeue_at is None and not plan.actions and finished(snapshot.manifest):
        return None
    wait = RESYNC_SECONDS if plan.requeue_at is None else (plan.requeue_at - at).total_seconds()
    return min(max(wait, 0.0), RESYNC_SECONDS)
