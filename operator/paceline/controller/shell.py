"""Kopf as a shell: it watches our objects, names the changed ones, and handles shutdown.

Nothing else of Kopf is used: no handlers that write, no index, no finalizer, no posting, no peering (docs/decisions).
Only the holder of the Lease works. A process that loses it exits, because only a new process starts without old state.
"""

import asyncio
import gc
import itertools
import logging
import random
import socket
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from signal import SIGINT, SIGTERM
from typing import Any, cast
from uuid import uuid4

import kopf
from prometheus_client import start_http_server

from paceline.controller import metrics
from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.health import Health, serving
from paceline.controller.kinds import RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.controller.readers import Readers, authenticated
from paceline.controller.reconcile import reconcile
from paceline.controller.settings import OperatorSettings
from paceline.controller.watch import Watcher
from paceline.kube import (
    Contact,
    Leading,
    Lease,
    Manifest,
    Outbox,
    Recorder,
    Ref,
    Throttle,
    Transport,
    ask_anew,
    connect,
    leading,
    names_only,
)
from paceline.kube.resources import LEASE
from paceline.plan.step import Event

log = logging.getLogger(__name__)

WORKERS = 8
LEASE_NAME = "paceline"
EVENTS = (25.0, 50)
"""Events: mean per second, and burst. A separate limit, so that the work does not wait for Events."""
REVIEWS = (5.0, 20)
"""Access reviews for the metrics: mean per second, and burst."""
EVERYWHERE = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
"""IPv4 and IPv6 if the machine has both: a cluster may have only one of them."""


GARBAGE = (20_000, 20, 100)
"""Thresholds of the garbage collector: new objects before it looks for cycles (default 700), and how often it scans
older generations. A pass creates thousands of objects but no cycles, and spent a fifth of its time on scanning."""


def run(settings: OperatorSettings) -> int:
    """Run until a signal stops it. Returns 1 if the Lease was lost."""
    gc.freeze()  # imported objects stay
    gc.set_threshold(*GARBAGE)
    if not settings.metrics_tls:
        start_http_server(settings.metrics_port, addr=EVERYWHERE)
    return asyncio.run(_lead(settings))


async def _lead(settings: OperatorSettings) -> int:
    """Watch, wait for the Lease, and work while it is held. A standby has its stores filled when it takes over."""
    contact = Contact()

    def answered(method: str, status: int) -> None:
        contact.heard(status)
        metrics.answered(method, status)

    reach = partial(connect, kinds=RECONCILED_KINDS, answered=answered)
    # A new identity for each process: a restart must not take its predecessor's lease for its own.
    identity = f"{settings.identity}_{uuid4().hex[:8]}"
    async with (
        await reach(throttle=Throttle(settings.qps, settings.burst)) as api,
        serving(
            health := Health(cluster=WatchedCluster(api, settings.namespaces), contact=contact), settings.probe_port
        ),
        watching(cluster := health.cluster, ask_anew(contact, reach, Ref(LEASE, settings.home, LEASE_NAME))),
        authenticated(Readers(api.beside(Throttle(*REVIEWS)).create), settings.metrics_tls, settings.metrics_port),
    ):
        metrics.of_watches(cluster.reflectors)
        async with leading(reach, lambda own: Lease(own, settings.home, LEASE_NAME, identity)) as led:
            health.led = led
            metrics.LEADING.set_function(lambda: not led.lost.is_set())
            events = api.beside(Throttle(*EVENTS))
            recorder = Recorder(events, controller="paceline.dev/operator", instance=settings.identity)
            await _operate(cluster, api, settings, recorder, led)
            return 1 if led.lost.is_set() else 0


@asynccontextmanager
async def watching(cluster: WatchedCluster, *beside: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run the watches, and the coroutines `beside`, while the context lasts."""
    async with asyncio.TaskGroup() as group:
        runs = [reflector.run() for reflector in cluster.reflectors]
        watches = [group.create_task(run) for run in (*runs, *beside)]
        try:
            yield
        finally:
            for watch in watches:
                watch.cancel()


async def _operate(
    cluster: WatchedCluster, api: Transport, settings: OperatorSettings, events: Recorder, led: Leading
) -> None:
    """Work until a signal arrives or the lease is lost. In both cases the work ends first and the lease is released
    next, before Kopf stops: Kopf waits for its streams, and for tasks that it considers its own, and a rival would have
    to wait, too."""
    stop = asyncio.Event()
    work = asyncio.create_task(_work(cluster, settings, events))

    def ended(_: object) -> None:
        led.release()
        stop.set()

    work.add_done_callback(ended)
    losing = asyncio.create_task(led.lost.wait())
    losing.add_done_callback(lambda _: work.cancel())
    others = asyncio.all_tasks()
    try:
        tasks = await kopf.spawn_tasks(
            registry=_registry(cluster, api),
            settings=_kopf_settings(),
            # Without an identity Kopf looks up the user name, which a container's uid lacks.
            identity=cast("Any", settings.identity),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=stop,
        )
        for signal in (SIGTERM, SIGINT):  # replaces Kopf's handlers
            asyncio.get_running_loop().add_signal_handler(signal, work.cancel)
        await kopf.run_tasks(tasks, ignored=others)
    finally:
        losing.cancel()
        work.cancel()
        await asyncio.gather(losing, work, return_exceptions=True)
    if not work.cancelled() and (error := work.exception()):
        raise error


async def _work(cluster: WatchedCluster, settings: OperatorSettings, events: Recorder) -> None:
    """Start no pass before every watch has its list: with children hidden, a pass would create them again."""

    outbox = Outbox(events)

    async def record(regarding: Manifest, event: Event) -> None:
        outbox.put(regarding, event.type, event.reason, event.note)

    async def reconcile_key(key: ObjectKey) -> float | None:
        return await reconcile(cluster, key, settings.render, record)

    metrics.of_namespaces(cluster.namespaces, cluster.closed)
    metrics.of_queue(cluster.queue)
    async with asyncio.TaskGroup() as group:
        group.create_task(outbox.run())
        for reflector in cluster.reflectors:
            await reflector.synced.wait()
        group.create_task(Watcher(cluster, settings.prometheus).run())
        group.create_task(cluster.queue.run(reconcile_key, workers=WORKERS))


def _registry(cluster: WatchedCluster, api: Transport) -> kopf.OperatorRegistry:
    """The handlers of Kopf: they only queue the name of a changed object. Runs are queued by their reflector."""
    registry = kopf.OperatorRegistry()
    plural = SPECULATIVE_DEPLOYMENT.plural

    async def hint(namespace: str | None, name: str | None, meta: Mapping[str, Any], **_: Any) -> None:
        version = int(meta.get("resourceVersion") or 0)
        cluster.hear(ObjectKey(plural, namespace or "", name or ""), version)

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
