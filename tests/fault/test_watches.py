"""What the operator hears of the cluster comes late, twice, in another order, or not at all; and two may listen."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import pytest
from tests.fault.forks import Mishap, at_each_write
from tests.fault.mishaps import go_deaf, nudge
from tests.fault.oracle import ending
from tests.fault.stories import CHANGED, HELD, PROMOTED, Story, same_end, should, tell
from tests.fault.world import NAMESPACE, Life, World
from tests.support.memory import MemoryApi

from paceline.controller.cluster import CHILDREN
from paceline.controller.kinds import BENCHMARK_RUN
from paceline.kube import Ref, Resource, WatchEvent
from paceline.kube.resources import CLAIM, DEPLOYMENT, REVISION, SERVICE

STORIES = {"promoted": PROMOTED, "changed": CHANGED, "held": HELD}


class Slow(MemoryApi):
    """Its watches tell everything, but late; what is read is as fresh as ever, as it is from a real API server."""

    late: Callable[[Resource], float]
    """Seconds, for each event of a kind."""

    async def watch(
        self, resource: Resource, namespace: str | None = None, selector: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent, None]:
        async with aclosing(super().watch(resource, namespace, selector, resource_version)) as events:
            async for event in events:
                await asyncio.sleep(self.late(resource))
                yield event


def slow(late: Callable[[Resource], float]) -> Life:
    def life(world: World) -> MemoryApi:
        api = Slow(world.cluster)
        api.late = late
        return api

    return life


@pytest.mark.parametrize("story", ["promoted", "held"])
def test_the_old_leader_is_deaf_and_works_on(story: str) -> None:
    """Nothing is made twice, and what is served and measured is the same. It may only remove, and fail to make again,
    Jobs of rounds that it does not know to have ended."""

    def cut_off(world: World) -> None:
        go_deaf(world)
        world.operate()

    def check(world: World) -> list[str]:
        found = same_end(STORIES[story], told=False)(world)
        known = ("Job ", "Pod ", "removed 1 times: Job ", "removed 1 times: Pod ", "told: 422 Invalid: Job ")
        return [line for line in found if not line.startswith(known)]

    at_each_write(STORIES[story], Mishap(what="cut off", when="after", do=cut_off), check).go()


@pytest.mark.parametrize("kind", CHILDREN, ids=lambda kind: kind.plural)
def test_one_watch_is_behind_the_others(kind: Resource) -> None:
    world = tell(PROMOTED, slow(lambda resource: 20.0 if resource == kind else 0.0))
    assert not same_end(PROMOTED, told=False)(world)


@pytest.mark.parametrize("story", STORIES)
def test_each_event_comes_late_and_twice(story: str) -> None:
    def life(world: World) -> MemoryApi:
        api = slow(lambda resource: random.uniform(0.0, 5.0))(world)
        api.deliver = lambda event: (event, event)
        world.later(1.0, lambda world: nudge(world.lives[-1], 600.0))
        return api

    assert not same_end(STORIES[story], told=True)(tell(STORIES[story], life))


@pytest.mark.parametrize("kind", [DEPLOYMENT, SERVICE, REVISION, CLAIM, BENCHMARK_RUN], ids=lambda kind: kind.plural)
def test_a_child_that_is_deleted_unheard_comes_back(kind: Resource) -> None:
    """No event will ever tell: only the list after the 410 shows that it is gone. A new claim is empty, so the same
    commits are fetched into it."""

    def delete(world: World) -> None:
        for found in world.cluster.list(kind).items:
            world.cluster.delete(Ref(kind, NAMESPACE, found["metadata"]["name"]))

    def act(world: World) -> None:
        world.later(10, go_deaf)
        world.later(20, delete)

    is_, was = ending(tell(Story(act, after=PROMOTED)).cluster), should(PROMOTED)
    assert any(ref.startswith(kind.kind) for ref in is_.made)
    again = {ref for ref in is_.made if kind is CLAIM and "-fetch-" in ref}
    assert {ref: found.get("spec") for ref, found in is_.objects.items() if ref not in again} == {
        ref: found.get("spec")
        for ref, found in was.objects.items()
        if ref not in again and (ref in is_.made or ref not in is_.removed)
    }
    assert bool(again) == (kind is CLAIM)
    assert all('\\"commit\\"' in json.dumps(is_.objects[ref]["spec"]) for ref in again)
