"""One story in a namespace of its own on a real API server, with operators of its own behind the proxy, and perhaps a
fault."""

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kubernetes.aio.client import ApiClient, Configuration
from tests.fault.real.history import OPERATOR, Past
from tests.fault.real.nature import Land, Nature
from tests.fault.real.proxy import Proxy
from tests.fault.real.trouble import Client, Trouble
from tests.fault.world import NAME

from paceline.controller.cluster import ObjectKey
from paceline.controller.cluster import WatchedCluster as View
from paceline.controller.kinds import RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.controller.reconcile import reconcile
from paceline.controller.shell import WORKERS
from paceline.kube import Manifest, Recorder, Ref, Transport
from paceline.plan.step import Event
from paceline.render import Settings

RESTART_SECONDS = 0.2
LOOK_SECONDS, QUIET_LOOKS = 0.1, 15
"""A case is at rest when so many looks have found nothing new, and nobody who waits: longer than a hint waits, and than
a watch that broke waits until it lists again."""
SOON_SECONDS = 100.0
"""A key that is due later only waits for the resync, or for what no story gets to."""
LONGEST_SECONDS = 300.0
TOKENS = itertools.count(1)


@dataclass(eq=False)
class Operator:
    """One life of an operator: all of `controller.shell` but Kopf, whose hints the own watch gives too."""

    view: View
    api: Transport
    task: asyncio.Task[None]
    client: Client

    @property
    def idle(self) -> bool:
        queue, clock = self.view.queue, asyncio.get_running_loop().time()
        soon = queue.due is not None and queue.due < clock + SOON_SECONDS
        return all(one.synced.is_set() for one in self.view.reflectors) and not (len(queue) or queue._working or soon)


@dataclass(eq=False)
class Case:
    namespace: str
    proxy: Proxy
    nature: Nature
    trouble: Trouble
    land: Land
    settings: Settings = field(default_factory=lambda: Settings(image="paceline"))
    operators: list[Operator] = field(default_factory=list)
    starting: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def past(self) -> Past:
        return self.nature.past(self.namespace)

    # What people do.

    async def apply(self, manifest: Manifest) -> None:
        manifest = manifest | {"metadata": manifest["metadata"] | {"namespace": self.namespace}}
        await self.nature.api.apply(manifest, manager="kubectl")

    async def edit(self, change: Callable[[Any], object], **metadata: Any) -> None:
        """`change` edits the spec in place."""
        found = await self.found()
        change(found["spec"])
        whole = {key: found[key] for key in ("apiVersion", "kind", "spec")}
        await self.apply(whole | {"metadata": {"name": NAME, **metadata}})

    async def annotate(self, key: str, value: str) -> None:
        await self.edit(lambda spec: None, annotations={key: value})

    async def delete(self) -> None:
        found = await self.found()
        await self.nature.api.delete(self._ref, uid=found["metadata"]["uid"])

    async def found(self) -> Manifest:
        found = await self.nature.api.get(self._ref)
        assert found is not None
        return found

    @property
    def _ref(self) -> Ref:
        return Ref(SPECULATIVE_DEPLOYMENT, self.namespace, NAME)

    async def release(self) -> None:
        """Rounds that were held may end."""
        self.land.released = True
        self.nature.queue.add(self.namespace)

    # Operators

    def operate(self) -> None:
        """Another operator, soon."""
        task = asyncio.create_task(self._start())
        self.starting.add(task)
        task.add_done_callback(self.starting.discard)

    async def _start(self) -> None:
        if self.operators:
            await asyncio.sleep(RESTART_SECONDS)
        token = f"operator-{next(TOKENS)}"
        settings = Configuration(host=self.proxy.url, api_key={"BearerToken": f"Bearer {token}"})
        api = Transport(ApiClient(settings), kinds=RECONCILED_KINDS)
        view = View(api, (self.namespace,))
        operator: Operator

        def kill() -> None:
            operator.task.cancel()
            self.operate()

        client = self.proxy.clients[token] = Client(self.trouble, kill=kill, second=self.operate)
        operator = Operator(view, api, asyncio.create_task(self._work(view, api)), client)
        self.operators.append(operator)

    async def _work(self, view: View, api: Transport) -> None:
        events = Recorder(api, controller=OPERATOR, instance="operator")

        async def record(regarding: Manifest, event: Event) -> None:
            await events.record(regarding, event.type, event.reason, event.note)

        async def one(key: ObjectKey) -> float | None:
            return await reconcile(view, key, self.settings, record)

        try:
            async with asyncio.TaskGroup() as group:
                for reflector in view.reflectors:
                    group.create_task(reflector.run())
                for reflector in view.reflectors:
                    await reflector.synced.wait()
                group.create_task(view.queue.run(one, workers=WORKERS))
        finally:
            await api.close()

    def restart(self) -> None:
        """Of all operators, one goes on, as another process."""
        for operator in self.alive:
            operator.client.dead = True
            operator.task.cancel()
        self.operate()

    @property
    def alive(self) -> list[Operator]:
        return [operator for operator in self.operators if not operator.client.dead]

    async def end(self) -> None:
        for task in [*self.starting, *(operator.task for operator in self.operators)]:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    # Waiting

    async def until(self, goal: Callable[[Past], bool]) -> None:
        async with asyncio.timeout(LONGEST_SECONDS):
            while not goal(self.past):  # noqa: ASYNC110 (many things may change it)
                await asyncio.sleep(0.02)

    async def rest(self) -> None:
        async with asyncio.timeout(LONGEST_SECONDS):
            quiet, seen = 0, (0, 0.0)
            while quiet < QUIET_LOOKS:  # not seconds: a busy loop sees nothing for a while
                now = (len(self.past.changes), self.trouble.last)
                quiet, seen = (quiet + 1 if now == seen and self._waits() else 0), now
                await asyncio.sleep(LOOK_SECONDS)

    def _waits(self) -> bool:
        return (
            self.trouble.over
            and not self.starting
            and bool(self.alive)
            and all(operator.idle for operator in self.alive)
            and self.nature.idle(self.namespace)
        )
