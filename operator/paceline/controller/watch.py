"""Reads the counters of served pools, beside the planner, which is woken only when a judgement changes its kind.

What is read comes from pods, which nobody here has to trust: an answer is bounded in size and time, no redirect is
followed, nothing that could authorize is sent.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from zlib import crc32

import aiohttp

from paceline.controller import metrics
from paceline.controller.cluster import Cluster, Key
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, POOL_LABEL
from paceline.engines import ENGINES, Counts, Monitor, UnreadableError
from paceline.kube import Manifest
from paceline.kube.reading import TooLong, whole
from paceline.kube.resources import POD
from paceline.plan.objects import condition
from paceline.render.group import LEADER
from paceline.render.serving import REVISION_LABEL
from paceline.watch import Judgement, Kind, PoolWatch, Process, Watched, observe, period_seconds

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0
AT_ONCE = 32
"""Pages that are read at the same time."""
PATIENCE = aiohttp.ClientTimeout(total=10)
"""For a page. A server collects its page beside its work: SGLang's took 20 ms at rest."""
SERVER = "server"
"""The container."""
LONGEST_PAGE = 4 * 2**20
"""Bytes. SGLang's has 93,000 with one label set; every rank, and every label of the user's, multiplies that."""

Pods = Mapping[tuple[str, str, str, str], list[Manifest]]
"""Namespace, deployment, pool and revision → its pods."""


class Watcher:
    """One for the operator; `run` until cancelled."""

    def __init__(self, cluster: Cluster, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._clock = clock
        self._pools: dict[tuple[Key, str], PoolWatch] = {}
        self._due: dict[tuple[Key, str], float] = {}
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        async with session() as http, asyncio.TaskGroup() as looks:
            while True:
                for key, pool, pods in self.due():
                    looks.create_task(self._look(http, key, pool, pods))
                await asyncio.sleep(TICK_SECONDS)

    def due(self) -> list[tuple[Key, str, list[Manifest]]]:
        """The pools to look at now, with their ready servers. A pool's first look is somewhere in its period, so that
        a thousand of them are not read at once."""
        now = self._clock()
        wanted = {(key, pool): each for key, pools in self._cluster.watched.items() for pool, each in pools.items()}
        for gone in self._due.keys() - wanted.keys():
            del self._due[gone]
            self._pools.pop(gone, None)
            metrics.watched(*_labels(*gone), None)
        looks = list[tuple[Key, str]]()
        for one, watched in wanted.items():
            period = period_seconds(watched)
            first = now + period * (crc32(repr(one).encode()) % 1000) / 1000
            if self._due.setdefault(one, first) <= now:
                self._due[one] = now + period
                looks.append(one)
        if not looks:
            return []
        pods = ready_servers(self._cluster)
        return [
            (key, pool, pods.get((key.namespace, key.name, pool, wanted[key, pool].revision), []))
            for key, pool in looks
        ]

    async def _look(self, http: aiohttp.ClientSession, key: Key, pool: str, pods: list[Manifest]) -> None:
        try:
            await self.look(http, key, pool, pods)
        except Exception:  # one pool stops nobody
            log.exception("%s, pool %s: its counters", key, pool)

    async def look(self, http: aiohttp.ClientSession, key: Key, pool: str, pods: list[Manifest]) -> None:
        """Read the pods of one pool and judge it; wake its planner if the judgement has another kind."""
        watched = self._cluster.watched.get(key, {}).get(pool)
        if watched is None:
            return
        adapter = ENGINES[watched.engine]
        monitor = adapter.monitor(watched.version)
        read = [] if monitor.cannot else pods
        pages = await asyncio.gather(*(self._counts(http, monitor, pod, adapter.port) for pod in read))
        seen = {process(pod): page for pod, page in zip(read, pages, strict=True)}
        if self._cluster.watched.get(key, {}).get(pool) != watched:
            return  # it changed while we read: what was read is of servers that no longer count
        self._judge(key, pool, watched, seen)

    def _judge(self, key: Key, pool: str, watched: Watched, seen: Mapping[Process, Counts | str]) -> None:
        before = self._pools.get((key, pool))
        now = observe(before, watched, seen, self._clock(), datetime.now(UTC))
        self._pools[key, pool] = now
        known = self._cluster.judgements.get(key, {})
        self._cluster.judgements[key] = {**known, pool: now.judgement}
        metrics.watched(*_labels(key, pool), now.judgement.numbers)
        if _told(known.get(pool)) is not _told(now.judgement):
            log.info("%s, pool %s: %s: %s", key, pool, now.judgement.kind, now.judgement.message)
            self._cluster.queue.add(key)

    async def _counts(self, http: aiohttp.ClientSession, monitor: Monitor, pod: Manifest, port: int) -> Counts | str:
        """What a pod has counted, or why it could not be read."""
        try:
            async with self._at_once, http.get(url(pod, port, monitor.path), allow_redirects=False) as answer:
                if answer.status != 200:
                    return f"{pod['metadata']['name']}: {monitor.path} answered {answer.status}"
                return monitor.read(await whole(answer.content, LONGEST_PAGE))
        except (aiohttp.ClientError, OSError, TooLong, UnreadableError, ValueError) as error:
            return f"{pod['metadata']['name']}: {str(error) or type(error).__name__}"


def session() -> aiohttp.ClientSession:
    """No cookies, no credentials, no proxy, no compression, and no connection that outlives its page: a server closes
    it before the next look."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=AT_ONCE, force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=PATIENCE,
        headers={"Accept-Encoding": "identity", "User-Agent": "paceline"},
    )


def url(pod: Manifest, port: int, path: str) -> str:
    address = pod["status"]["podIP"]
    return f"http://[{address}]:{port}{path}" if ":" in address else f"http://{address}:{port}{path}"


def ready_servers(cluster: Cluster) -> Pods:
    """Those that the kubelet finds ready and nobody is deleting; of a server of several nodes the one that answers."""
    found: dict[tuple[str, str, str, str], list[Manifest]] = {}
    for pod in cluster.select(POD.kind, None, {COMPONENT_LABEL: "server"}):
        metadata, labels = pod["metadata"], pod["metadata"]["labels"]
        leads = all(labels.get(name, value) == value for name, value in LEADER.items())
        if leads and "deletionTimestamp" not in metadata and _ready(pod):
            of = (labels.get(name, "") for name in (DEPLOYMENT_LABEL, POOL_LABEL, REVISION_LABEL))
            found.setdefault((metadata["namespace"], *of), []).append(pod)
    return found


def process(pod: Manifest) -> Process:
    """A restarted container counts from zero, as another pod of the same name does."""
    statuses = pod["status"].get("containerStatuses") or ()
    container = next((each.get("containerID", "") for each in statuses if each["name"] == SERVER), "")
    return Process(pod=pod["metadata"]["name"], started=f"{pod['metadata']['uid']} {container}")


def _ready(pod: Manifest) -> bool:
    status = pod.get("status") or {}
    return bool(status.get("podIP") and condition(pod, "Ready"))


def _told(judgement: Judgement | None) -> Kind:
    """What a planner knows of it: nothing yet, and too little traffic, are the same to it."""
    return judgement.kind if judgement else Kind.IDLE


def _labels(key: Key, pool: str) -> tuple[str, str, str]:
    return key.namespace, key.name, pool
