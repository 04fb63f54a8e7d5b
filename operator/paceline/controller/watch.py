"""Judges the counters of served pools, and wakes the planner only when the kind of a judgement changes."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import aiohttp

from paceline.controller import metrics
from paceline.controller.cluster import ObjectKey, WatchedCluster, phase
from paceline.controller.pages import AT_ONCE, from_pods, session
from paceline.controller.prometheus import from_prometheus
from paceline.core import GuardSource
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, POOL_LABEL
from paceline.engines import ENGINES, Counts
from paceline.kube import Manifest
from paceline.kube.resources import POD
from paceline.plan.objects import condition
from paceline.render.group import LEADER
from paceline.render.serving import REVISION_LABEL
from paceline.watch import Judgement, JudgementKind, PoolWatch, Process, Watched, observe, period_seconds

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0


class Watcher:
    """One per operator; `run` until cancelled. `prometheus`: URL of the server for pools with guard.source Prometheus;
    empty if the installation names none."""

    def __init__(
        self, cluster: WatchedCluster, prometheus: str = "", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cluster = cluster
        self._prometheus = prometheus
        self._clock = clock
        self._pools: dict[tuple[ObjectKey, str], PoolWatch] = {}
        self._due: dict[tuple[ObjectKey, str], float | None] = {}
        """When each pool is due for a look; None during a look."""
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        async with session() as http, asyncio.TaskGroup() as looks:
            while True:
                for key, pool, pods in self.due():
                    looks.create_task(self._look(http, key, pool, pods))
                await asyncio.sleep(TICK_SECONDS)

    def due(self) -> list[tuple[ObjectKey, str, list[Manifest]]]:
        """The pools to look at now, with their ready servers. A pool's first look is somewhere in its period, so that
        a thousand of them are not read at once."""
        now = self._clock()
        wanted = {(key, pool): each for key, pools in self._cluster.watched.items() for pool, each in pools.items()}
        for gone in self._due.keys() - wanted.keys():
            del self._due[gone]
            self._pools.pop(gone, None)
            metrics.export_watched(*_labels(*gone), None)
        for new in wanted.keys() - self._due.keys():
            self._due[new] = now + period_seconds(wanted[new]) * phase(repr(new))
        looks = [one for one, due in self._due.items() if due is not None and due <= now]
        self._due |= dict.fromkeys(looks)
        return [(key, pool, ready_servers(self._cluster, key, pool, wanted[key, pool].revision)) for key, pool in looks]

    async def _look(self, http: aiohttp.ClientSession, key: ObjectKey, pool: str, pods: list[Manifest]) -> None:
        began = self._clock()
        try:
            await self.look(http, key, pool, pods)
        except Exception:  # the other pools must still be looked at
            log.exception("%s, pool %s: its counters", key, pool)
        finally:
            self.looked(key, pool, began)

    def looked(self, key: ObjectKey, pool: str, began: float) -> None:
        """A look has ended: the next is due one period after its start."""
        watched = self._cluster.watched.get(key, {}).get(pool)
        if watched and (key, pool) in self._due:
            self._due[key, pool] = began + period_seconds(watched)

    async def look(self, http: aiohttp.ClientSession, key: ObjectKey, pool: str, pods: list[Manifest]) -> None:
        """Read the pods of one pool and judge it; wake its planner if the judgement has another kind."""
        watched = self._cluster.watched.get(key, {}).get(pool)
        if watched is None:
            return
        seen = await self._read(http, watched, pods)
        if self._cluster.watched.get(key, {}).get(pool) != watched:
            return  # changed while we read: these servers no longer count
        self._judge(key, pool, watched, seen)

    async def _read(
        self, http: aiohttp.ClientSession, watched: Watched, pods: list[Manifest]
    ) -> Mapping[Process, Counts | str]:
        adapter = ENGINES[watched.engine]
        monitor = adapter.monitor(watched.version)
        if monitor.cannot:
            return {}
        if watched.source is GuardSource.PROMETHEUS:
            async with self._at_once:
                return await from_prometheus(http, self._prometheus, monitor, pods)
        return await from_pods(http, self._at_once, monitor, pods, adapter.port)

    def _judge(self, key: ObjectKey, pool: str, watched: Watched, seen: Mapping[Process, Counts | str]) -> None:
        before = self._pools.get((key, pool))
        now = observe(before, watched, seen, self._clock(), datetime.now(UTC))
        self._pools[key, pool] = now
        known = self._cluster.judgements.get(key, {})
        self._cluster.judgements[key] = {**known, pool: now.judgement}
        metrics.export_watched(*_labels(key, pool), now.judgement)
        if _told(known.get(pool)) is not _told(now.judgement):
            log.info("%s, pool %s: %s: %s", key, pool, now.judgement.kind, now.judgement.message)
            self._cluster.queue.add(key)


def ready_servers(cluster: WatchedCluster, key: ObjectKey, pool: str, revision: str) -> list[Manifest]:
    """Pods of a pool that are ready and not being deleted; for a server over several nodes, only the one that
    answers."""
    labels = {DEPLOYMENT_LABEL: key.name, COMPONENT_LABEL: "server", POOL_LABEL: pool, REVISION_LABEL: revision}
    return [pod for pod in cluster.select(POD.kind, key.namespace, labels) if _leads(pod) and _ready(pod)]


def _leads(pod: Manifest) -> bool:
    labels = pod["metadata"]["labels"]
    return all(labels.get(name, value) == value for name, value in LEADER.items())


def _ready(pod: Manifest) -> bool:
    status = pod.get("status") or {}
    ends = "deletionTimestamp" in pod["metadata"]
    return bool(status.get("podIP") and condition(pod, "Ready")) and not ends


def _told(judgement: Judgement | None) -> JudgementKind:
    """What the planner sees of a judgement; a pool without one yet counts as one with too little traffic."""
    return judgement.kind if judgement else JudgementKind.IDLE


def _labels(key: ObjectKey, pool: str) -> tuple[str, str, str]:
    return key.namespace, key.name, pool
