"""Kopf as a shell: it watches our objects, names the changed ones, and handles shutdown.

Nothing else of Kopf is used: no handlers that write, no index, no finalizer, no posting, no peering (docs/decisions).
Only the holder of a Lease works. A process that loses it exits, because only a new process starts without old state.
"""

import asyncio
import itertools
import logging
import random
import socket
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast
from uuid import uuid4

import kopf
from prometheus_client import start_http_server

from paceline.controller import metrics
from paceline.controller.cluster import Cluster, Key
from paceline.controller.health import Health, serving
from paceline.controller.kinds import KINDS, SPECULATIVE_DEPLOYMENT
from paceline.controller.reconcile import reconcile
from paceline.controller.settings import OperatorSettings
from paceline.controller.watch import Watcher
from paceline.kube import Lease, Manifest, Outbox, Recorder, Throttle, Transport, connect, leading, names_only
from paceline.plan.step import Event

log = logging.getLogger(__name__)

WORKERS = 4
EVENTS = (25.0, 50)
"""Events per second on average, and at once: a limit apart from that of the work, which must not wait for them."""
EVERYWHERE = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
"""IPv4 and IPv6 if the machine has both: a cluster may have only one of them."""
SILENT_SECONDS = 300.0
"""A watch ends by itself within 75 s, which counts as activity; a longer silence means that it is dead."""
STUCK_SECONDS = 300.0


def run(settings: OperatorSettings) -> int:
    """Run until a signal stops it. Returns 1 if the Lease was lost."""
    start_http_server(settings.metrics_port, addr=EVERYWHERE)
    return asyncio.run(_lead(settings))


async def _lead(settings: OperatorSettings) -> int:
    """Wait for the Lease, and work while it is held."""
    health = Health()
    # A new identity for each process: a restart must not take its predecessor's lease for its own.
    identity = f"{settings.identity}_{uuid4().hex[:8]}"
    async with (
        serving(health, settings.probe_port),
        leading(connect, lambda own: Lease(own, settings.home, "paceline", identity)) as lost,
        await connect(kinds=KINDS, throttle=Throttle(settings.qps, settings.burst)) as api,
    ):
        cluster = Cluster(api, settings.namespaces)
        health.check = partial(fault, cluster)
        events = api.beside(Throttle(*EVENTS))
        recorder = Recorder(events, controller="paceline.dev/operator", instance=settings.identity)
        await _operate(cluster, api, settings, recorder, lost)
        return 1 if lost.is_set() else 0


async def _operate(
    cluster: Cluster, api: Transport, settings: OperatorSettings, events: Recorder, lost: asyncio.Event
) -> None:
    """Start the children's watches first: a pass without its children in view would create everything again.

    Work stops as soon as the lease is `lost`: Kopf would first wait 5 s for tasks that it considers its own."""
    stop = asyncio.Event()
    work = asyncio.create_task(_work(cluster, settings, events))
    work.add_done_callback(lambda _: stop.set())
    losing = asyncio.create_task(lost.wait())
    losing.add_done_callback(lambda _: work.cancel())
    registry = _registry(cluster, api)

    async def end_work(**_: Any) -> None:
        work.cancel()

    kopf.on.cleanup(id="end-work", registry=registry)(end_work)  # on a signal, before Kopf waits
    try:
        await kopf.operator(
            registry=registry,
            settings=_kopf_settings(),
            # Kopf would look up the user's name for one; a container's uid has none.
            identity=cast("Any", settings.identity),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=stop,
        )
    finally:
        losing.cancel()
        work.cancel()
        await asyncio.gather(losing, work, return_exceptions=True)
    if not work.cancelled() and (error := work.exception()):
        raise error


async def _work(cluster: Cluster, settings: OperatorSettings, events: Recorder) -> None:
    outbox = Outbox(events)

    async def record(regarding: Manifest, event: Event) -> None:
        outbox.put(regarding, event.type, event.reason, event.note)

    async def reconcile_key(key: Key) -> float | None:
        return await reconcile(cluster, key, settings.render, record)

    metrics.of_namespaces(cluster.namespaces, cluster.closed)
    async with asyncio.TaskGroup() as group:
        group.create_task(outbox.run())
        for reflector in cluster.reflectors:
            group.create_task(reflector.run())
        for reflector in cluster.reflectors:
            await reflector.synced.wait()
        group.create_task(Watcher(cluster, settings.prometheus).run())
        group.create_task(cluster.queue.run(reconcile_key, workers=WORKERS))


def fault(cluster: Cluster) -> str | None:
    """Why this process should be restarted; None if it is healthy."""
    silent = max(reflector.age for reflector in cluster.reflectors)
    if silent > SILENT_SECONDS:
        return f"a watch has been silent for {silent:.0f} s"
    if cluster.queue.stuck > STUCK_SECONDS:
        return f"no pass has ended for {cluster.queue.stuck:.0f} s"
    return None


def _registry(cluster: Cluster, api: Transport) -> kopf.OperatorRegistry:
    """The handlers of Kopf: they only queue the name of a changed object. Runs are queued by their reflector."""
    registry = kopf.OperatorRegistry()
    plural = SPECULATIVE_DEPLOYMENT.plural

    async def hint(namespace: str | None, name: str | None, meta: Mapping[str, Any], **_: Any) -> None:
        version = int(meta.get("resourceVersion") or 0)
        cluster.hear(Key(plural, namespace or "", name or ""), version)

    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=api.server, aiohttp_session=api.session(names_only(plural)))

    kopf.on.event(SPECULATIVE_DEPLOYMENT.group, plural, id=plural, registry=registry)(hint)
    kopf.on.login(id="login", registry=registry)(login)
    return registry


def _kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.peering.standalone = True
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.networking.error_backoffs = _Patient()
    settings.watching.server_timeout = 300
    settings.watching.chunk_size = 100
    return settings


class _Patient:
    """Endless backoffs, so that a rolling restart of the API server does not restart the operator."""

    def __iter__(self) -> Iterator[float]:
        first = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
        return (delay * (1 + random.random() / 2) for delay in itertools.chain(first, itertools.repeat(20.0)))
