"""One reconcile: gather, plan, publish the status, then act."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Protocol

from paceline.controller import metrics
from paceline.controller.cluster import ObjectKey, WatchedCluster, phase
from paceline.controller.execute import execute, nothing_to_confirm, publish
from paceline.controller.gather import confirm, gather_deployment, gather_run
from paceline.controller.kinds import BENCHMARK_RUN, RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.core.text import printable
from paceline.kube import ApiError, Conflict, Manifest, NotFound, TooManyRequests, Unavailable, ref_of
from paceline.plan import deployment, run
from paceline.plan.objects import finished
from paceline.plan.step import Event, Plan
from paceline.render import Settings

log = logging.getLogger(__name__)

RESYNC_SECONDS, REST_SECONDS = 600.0, 3600.0
"""Maximum seconds between passes, in case an event was missed: for an object that waits, maybe for something unwatched
(a ConfigMap, an object without our label), and for a deployment at rest. A watch that misses events lists again and
compares with the store, so this is rarely needed; and each pass over a thousand deployments at rest takes eight
seconds."""

CLOSED_SECONDS = 30.0
"""Delay before the next pass in a namespace that the reflectors report as gone or forbidden."""


class EventRecorder(Protocol):
    """Records an Event about an object."""

    async def __call__(self, regarding: Manifest, event: Event) -> None: ...


@dataclass(frozen=True, slots=True)
class Planner:
    """How one of our kinds is reconciled."""

    gather: Callable[[WatchedCluster, ObjectKey, Settings, datetime], Awaitable[Any]]
    plan: Callable[[Any, datetime], Plan]
    rests: Callable[[Any, Plan], bool]
    """Whether only a change of a watched object can change the plan."""


def _serves(snapshot: deployment.Snapshot, plan: Plan) -> bool:
    status = plan.status or {}
    is_true = {condition["type"] for condition in status.get("conditions", ()) if condition["status"] == "True"}
    return "Ready" in is_true and not is_true & {"Reconciling", "Stalled"} and not snapshot.config_maps


PLANNERS: Mapping[str, Planner] = {
    SPECULATIVE_DEPLOYMENT.plural: Planner(gather_deployment, deployment.plan, _serves),
    BENCHMARK_RUN.plural: Planner(gather_run, run.plan, lambda snapshot, plan: False),
}


def spread(key: ObjectKey) -> float:
    """A number from 0.75 to 1, fixed for each key, so that objects reconciled together at a start are not due together
    again."""
    return 0.75 + phase(str(key)) / 4


def now() -> datetime:
    """The time in whole seconds, as in status."""
    return datetime.now(UTC).replace(microsecond=0)


@asynccontextmanager
async def reporting(record: EventRecorder, regarding: Manifest) -> AsyncIterator[None]:
    """If a failure prevents writing a status, report it by an Event, the only place left. The queue retries with
    growing delays."""
    try:
        yield
    except ApiError as error:
        if not isinstance(error, PASSING) or TOO_LARGE in error.message:
            metrics.status_refused(ref_of(regarding, RECONCILED_KINDS).resource.plural)
            note = f"the status cannot be written, so no action is taken: {error}"
            await record(regarding, Event(reason="StatusRefused", note=printable(note), type="Warning"))
        raise
    except Exception as error:
        failure = f"the operator failed to plan: {type(error).__name__}: {error}"
        note = f"{failure}; running servers are not changed; the operator's log has the traceback"
        await record(regarding, Event(reason="OperatorFailed", note=printable(note), type="Warning"))
        raise


PASSING = (Conflict, NotFound, TooManyRequests, Unavailable)
"""Errors of a status write that may be gone in the next pass."""
QUOTED = 300
"""Characters kept of a refusal's beginning, and of its end."""
TOO_LARGE = "too large"
"""Part of etcd's message, which has status 500 like an outage; the API server's own limit has 413."""


def _shortened(refusal: str) -> str:
    """Cut the middle: an API server quotes the whole refused object and gives the reason at the end."""
    return refusal if len(refusal) <= 2 * QUOTED else f"{refusal[:QUOTED]} … {refusal[-QUOTED:]}"


async def reconcile(
    cluster: WatchedCluster,
    key: ObjectKey,
    settings: Settings,
    record: EventRecorder,
    clock: Callable[[], datetime] = now,
) -> float | None:
    """Run one pass. Returns the seconds until the next, or None for a deleted object or a finished run without work."""
    if cluster.closed(key.namespace):  # with its children hidden, a pass would create everything again
        return CLOSED_SECONDS
    kind = PLANNERS[key.plural]
    with metrics.reconciling(key.plural):
        snapshot = await kind.gather(cluster, key, settings, clock())
        if snapshot is None:
            metrics.forget(key.plural, key.namespace, key.name)
            return None
        at = clock()
        async with reporting(record, snapshot.manifest):
            plan = kind.plan(snapshot, at)
            written = await _publish(cluster, key, snapshot.manifest, plan)
        if plan.status is not None:
            metrics.show(key.plural, snapshot.manifest, plan.status)
        cluster.watch(key, plan.watched)
        for event in plan.events:
            await record(snapshot.manifest, event)
        refused_before = cluster.refusals.pop(key, {})
        unchanged = nothing_to_confirm if written else partial(confirm, cluster, key, snapshot.manifest)
        refused = await execute(cluster, plan.actions, unchanged)
        for error in refused.values():  # a retry does not help: report it
            await record(snapshot.manifest, Event(reason="Refused", note=_shortened(str(error)), type="Warning"))
        if refused:
            cluster.refusals[key] = {name: _shortened(str(error)) for name, error in refused.items()}
            raise next(iter(refused.values()))
    if refused_before:
        return 0.0  # status still shows the refusal until the next pass
    if plan.requeue_at is None and not plan.actions and finished(snapshot.manifest):
        return None
    longest = REST_SECONDS if kind.rests(snapshot, plan) else RESYNC_SECONDS
    if plan.requeue_at is None:
        return longest * spread(key)
    return min(max((plan.requeue_at - at).total_seconds(), 0.0), longest)


async def _publish(cluster: WatchedCluster, key: ObjectKey, manifest: Manifest, plan: Plan) -> bool:
    """Whether the status was written. After a conflict the next pass reads the object from the server."""
    if plan.status is None:
        return False
    try:
        return await publish(cluster, manifest, dict(plan.status))
    except (Conflict, NotFound):
        cluster.doubted.add(key)
        raise
