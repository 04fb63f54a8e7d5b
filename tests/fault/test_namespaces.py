"""A namespace that the operator is told to work in and that is gone, or closed to it, is nobody else's trouble."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from prometheus_client import REGISTRY
from tests.fault.healthy import fault_of
from tests.fault.stories import example
from tests.fault.virtual import run
from tests.fault.world import NAMESPACE, World
from tests.support.memory import MemoryApi

from paceline.controller import shell
from paceline.controller.cluster import ObjectKey
from paceline.controller.cluster import WatchedCluster as View
from paceline.controller.kinds import SPECULATIVE_DEPLOYMENT
from paceline.kube import Forbidden, Listing, Manifest, Recorder, Ref, Resource, WatchEvent, WorkQueue
from paceline.render import Settings

NOTHING, EVERYTHING = "nothing", "everything"


@dataclass(frozen=True)
class Told:
    """Of the operator's settings what its work needs."""

    render: Settings
    prometheus: str = ""


class Closed(MemoryApi):
    """Shows nothing of `closed`."""

    closed = NOTHING

    async def list(self, resource: Resource, namespace: str | None = None, *more: Any, **others: Any) -> Listing:
        self._check(namespace)
        return await super().list(resource, namespace, *more, **others)

    async def get(self, ref: Ref) -> Manifest | None:
        self._check(ref.namespace)
        return await super().get(ref)

    async def watch(
        self, resource: Resource, namespace: str | None = None, selector: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        self._check(namespace)
        async for event in super().watch(resource, namespace, selector, resource_version):
            yield event

    def _check(self, namespace: str | None) -> None:
        if self.closed in (namespace, EVERYTHING):
            raise Forbidden(403, "Forbidden", f"may not look into the namespace {namespace}")


def operator(world: World, api: MemoryApi, *namespaces: str) -> tuple[View, "asyncio.Task[None]"]:
    view = View(api, namespaces)
    view.queue = WorkQueue(clock=world.loop.time)
    events = Recorder(api, controller="paceline.dev/operator", instance="operator", now=world.now)

    async def work() -> None:
        async with shell.watching(view):
            await shell._work(view, Told(Settings(image="paceline")), events)  # type: ignore[arg-type]

    return view, asyncio.create_task(work())


def told_closed() -> dict[str, float | None]:
    return {
        namespace: REGISTRY.get_sample_value("paceline_namespace_closed", {"namespace": namespace})
        for namespace in (NAMESPACE, "other")
    }


KEY = ObjectKey(SPECULATIVE_DEPLOYMENT.plural, NAMESPACE, "qwen3-coder-next")


def test_one_namespace_gone_leaves_the_others_at_work() -> None:
    async def told() -> None:
        async with World() as world:
            api = Closed(world.cluster)
            api.closed = "gone"
            view, work = operator(world, api, NAMESPACE, "gone")
            world.apply(example("latency"))
            view.hear(KEY)
            await asyncio.sleep(3600)
            assert "conditions" in world.found()["status"]
            assert fault_of(view) is None
            work.cancel()

    run(told())


def test_a_namespace_that_is_closed_for_an_hour_goes_on_as_it_was() -> None:
    """What cannot be seen is not taken for deleted: nothing is made twice, and nothing is written meanwhile."""

    async def told() -> None:
        async with World() as world:
            api = Closed(world.cluster)
            view, work = operator(world, api, NAMESPACE, "other")
            world.apply(example("latency"))
            view.hear(KEY)
            await asyncio.sleep(3600)
            before, made = world.found()["status"], {ref for ref in world.cluster._objects if ref.namespace}
            assert before["conditions"]
            api.closed = NAMESPACE
            api.disconnect()
            written = len(api.writes)
            await asyncio.sleep(3600)
            assert told_closed() == {NAMESPACE: 1, "other": 0}
            assert (len(api.writes), fault_of(view)) == (written, None)
            api.closed = NOTHING
            await asyncio.sleep(3600)
            assert told_closed() == {NAMESPACE: 0, "other": 0}
            assert made <= set(world.cluster._objects), "nothing was lost"
            world.edit(lambda spec: spec.update(suspend=True))
            view.hear(KEY)
            await asyncio.sleep(60)
            assert world.found()["status"]["observedGeneration"] == world.found()["metadata"]["generation"]
            work.cancel()

    run(told())


def test_an_object_that_comes_in_an_outage_is_served_soon_after_its_end() -> None:
    """Twenty minutes without an answer, in which its delay has grown to minutes."""

    async def told() -> None:
        async with World() as world:
            api = Closed(world.cluster)
            view, work = operator(world, api)
            await asyncio.sleep(60)
            api.closed = EVERYTHING
            api.disconnect()
            world.apply(example("latency"))
            view.hear(KEY)
            await asyncio.sleep(1200)
            assert "status" not in world.found()
            api.closed = NOTHING
            await asyncio.sleep(60)
            assert "conditions" in world.found()["status"]
            work.cancel()

    run(told())
