"""A cluster, its nature, and operators that work in it, all on a virtual clock.

    async with World() as world:
        world.operate()                     # an operator; when it crashes another one takes its place
        world.apply(example("latency"))
        await world.settle()

One `Process` is the real controller on the API in memory: stores, queue, gather, plan, execute. Only Kopf is left out:
its hints come from one more watch, as Kopf's do.
"""

import asyncio
import copy
import logging
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from types import TracebackType
from typing import Self

import tests.fault.quick  # noqa: F401 (for its effect)
from tests.fault.nature import Nature
from tests.support.memory import Cluster, Crash, MemoryApi

from paceline import api
from paceline.controller.cluster import ObjectKey, turn_of
from paceline.controller.cluster import WatchedCluster as View
from paceline.controller.kinds import RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.controller.reconcile import reconcile
from paceline.controller.shell import WORKERS
from paceline.kube import ApiError, Manifest, Recorder, Ref, Reflector, WorkQueue
from paceline.kube.resources import EVENT
from paceline.plan.step import Event
from paceline.render import Settings
from paceline.watch import Judgement, Watched

START = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
NAMESPACE, NAME = "models", "qwen3-coder-next"
RESTART_SECONDS = 5.0
PASS_SECONDS = 0.05
"""How long a reconcile takes: in no time, two that disagree would write for ever."""
QUIET_SECONDS = 700.0
"""Beyond the resync, and every progress deadline of a story: who has not acted by then never will."""
MOST_CHAPTERS = 30
COUNTED_SECONDS = 60.0
"""How often the servers' counters are judged."""
Judge = Callable[[Watched], Judgement]
"""What the counters of a pool's servers show."""


class Process:
    """One life of the operator."""

    def __init__(self, world: "World", api: MemoryApi) -> None:
        self.world = world
        self.api = api
        self.view = View(api)
        self.view.queue = WorkQueue(group=turn_of, clock=world.loop.time, jitter=lambda: 0.0)
        self.hints = Reflector(api, SPECULATIVE_DEPLOYMENT, on_change=self._hint)
        self.passes = 0
        self.deposed = asyncio.Event()
        """Set when it has lost the Lease."""
        self.events = Recorder(api, controller="paceline.dev/operator", instance="operator", now=world.now)

    async def run(self) -> None:
        """Until cancelled or crashed; as `controller.shell` does it."""
        async with asyncio.TaskGroup() as group:
            for reflector in self.view.reflectors:
                group.create_task(reflector.run())
            for reflector in self.view.reflectors:
                await reflector.synced.wait()
            group.create_task(self._end_without_the_lease())
            if self.world.judge:
                group.create_task(self._watch_counters(self.world.judge))
            group.create_task(self.hints.run())
            group.create_task(self.view.queue.run(self.reconcile, workers=WORKERS))

    async def _end_without_the_lease(self) -> None:
        """The work ends wherever it waits, and the process with it."""
        await self.deposed.wait()
        raise Crash

    async def _watch_counters(self, judge: "Judge") -> None:
        """As `controller.watch` does it, where what the counters show is known."""
        while True:
            await asyncio.sleep(COUNTED_SECONDS)
            for key, pools in self.view.watched.items():
                found = {pool: judge(watched) for pool, watched in pools.items()}
                if self.view.judgements.get(key) != found:
                    self.view.judgements[key] = found
                    self.view.queue.hint(key)

    async def reconcile(self, key: ObjectKey) -> float | None:
        await asyncio.sleep(PASS_SECONDS)
        self.passes += 1
        done, end = len(self.api.writes), "crashed"
        try:
            again = await reconcile(self.view, key, self.world.settings, self._record, self.world.now)
            end = ""
        except ApiError as error:
            end = str(error)
            raise
        finally:
            if any(write.ref.resource != EVENT for write in self.api.writes[done:]):
                self.world.acted_at = (self.world.now() - self.world.start).total_seconds()
            writes = [f"{write.verb} {write.ref.resource.kind} {write.ref.name}" for write in self.api.writes[done:]]
            if writes or end:
                self.world.note(f"  {key.plural[:-1]}: {', '.join(filter(None, (*writes, end)))}")
        return again

    async def _record(self, regarding: Manifest, event: Event) -> None:
        await self.events.record(regarding, event.type, event.reason, event.note)

    def _hint(self, _: str, found: Manifest, __: Manifest | None) -> None:
        self.view.hear(
            ObjectKey(SPECULATIVE_DEPLOYMENT.plural, found["metadata"]["namespace"], found["metadata"]["name"])
        )


Life = Callable[["World"], MemoryApi]
"""How a process sees the cluster, and what goes wrong in between."""


class World:
    """Made on the loop that it lives on; its time begins at `start`."""

    def __init__(self, start: datetime = START, twin_of: "World | None" = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.start, self._born = start, self.loop.time()
        self.lives: list[Process] = []
        """Every process there was; the last one is at work."""
        self.settings = Settings(image="paceline")
        """Of the operators that start from now on, and of those that run."""
        self.judge: Judge | None = twin_of.judge if twin_of else None
        self.acted_at = 0.0
        """Seconds from the start to the last write of an operator, Events left out."""
        self.complaints: list[str] = []
        """What a reconcile raised that is no answer of the API: a bug."""
        self.trace: list[str] = []
        """What happened, for a person to read."""
        if twin_of is None:
            self.cluster = Cluster(
                kinds=RECONCILED_KINDS, crds=_crds(), immutable={"BenchmarkRun": "spec"}, now=self.now
            )
            self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
            self.nature = Nature(cluster=self.cluster)
        else:
            self.cluster = _twin(twin_of.cluster, self.now)
            self.nature = replace(twin_of.nature, cluster=self.cluster, started=dict(twin_of.nature.started))

    def twin(self) -> "World":
        """Begins with what this world has now, also on another loop; operators and all that happened are forgotten."""
        return World(self.now(), twin_of=self)

    def now(self) -> datetime:
        return (self.start + timedelta(seconds=self.loop.time() - self._born)).replace(microsecond=0)

    async def __aenter__(self) -> Self:
        random.seed(0)  # the jitter of backoffs
        self._ears = _Ears(self.complaints)
        logging.getLogger("paceline").addHandler(self._ears)
        self._tasks = asyncio.TaskGroup()
        await self._tasks.__aenter__()
        self._running = [self._tasks.create_task(self.nature.live())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._running:
            task.cancel()
        try:
            await self._tasks.__aexit__(kind, error, trace)
        finally:
            logging.getLogger("paceline").removeHandler(self._ears)
        assert not self.complaints, self.complaints

    def operate(self, *lives: Life) -> None:
        """One process after another, each crash followed by a restart; the last one is without faults."""
        self._running.append(self._tasks.create_task(self._operate(*lives, faultless)))

    async def _operate(self, *lives: Life) -> None:
        for life in lives:
            process = Process(self, life(self))
            self.note("an operator starts")
            self.lives.append(process)
            try:
                await process.run()
            except* Crash:
                await asyncio.sleep(RESTART_SECONDS)

    def apply(self, manifest: Manifest) -> None:
        """What people do."""
        self.cluster.apply(manifest, manager="kubectl")

    def edit(self, change: Callable[[Manifest], object]) -> None:
        """`change` edits the spec in place."""
        found = self.found()
        change(found["spec"])
        metadata = {"name": NAME, "namespace": NAMESPACE}
        self.apply(
            {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata, "spec": found["spec"]}
        )

    def annotate(self, key: str, value: str) -> None:
        found = self.found()
        metadata = {"name": NAME, "namespace": NAMESPACE, "annotations": {key: value}}
        self.apply(
            {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata, "spec": found["spec"]}
        )

    def delete(self) -> None:
        self.cluster.delete(Ref(SPECULATIVE_DEPLOYMENT, NAMESPACE, NAME))

    def found(self) -> Manifest:
        found = self.cluster.get(Ref(SPECULATIVE_DEPLOYMENT, NAMESPACE, NAME))
        assert found is not None
        return found

    def note(self, what: str) -> None:
        self.trace.append(f"{self.now():%H:%M:%S} {what}")

    def later(self, seconds: float, do: Callable[["World"], object]) -> None:
        self.loop.call_later(seconds, do, self)

    async def settle(self) -> None:
        """Until nobody has changed anything for a long time."""
        for _ in range(MOST_CHAPTERS):
            version = self.cluster.version
            await asyncio.sleep(QUIET_SECONDS)
            if self.cluster.version == version:
                return
        raise AssertionError("never comes to rest")

    async def reach(self, goal: Callable[["World"], bool]) -> None:
        """Until the cluster is so, and not one change longer."""
        async with asyncio.timeout(MOST_CHAPTERS * QUIET_SECONDS):
            while not goal(self):
                await self.cluster.changed()


def faultless(world: World) -> MemoryApi:
    return MemoryApi(world.cluster)


class _Ears(logging.Handler):
    def __init__(self, heard: list[str]) -> None:
        super().__init__(logging.ERROR)
        self.heard = heard

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append(logging.Formatter().format(record))


@cache
def _crds() -> list[Manifest]:
    return api.crds()


def _twin(cluster: Cluster, now: Callable[[], datetime]) -> Cluster:
    """What a cluster holds is never edited, only replaced: the two may share it."""
    twin = copy.copy(cluster)
    twin.now = now
    twin.changes = []
    twin.compact()
    twin._objects = dict(cluster._objects)
    twin._changed = asyncio.Event()
    return twin
