"""The reflector under fire: every way a list or a watch can fail, on the API in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from tests.support.memory import Cluster, MemoryApi

from paceline.kube import ApiError, Listing, Manifest, Ref, Reflector, Resource, WatchEvent
from paceline.kube.errors import error_of
from paceline.kube.reflector import ABSENT_DELAY
from paceline.kube.resources import CONFIG_MAP


def config_map(name: str, value: str = "") -> Manifest:
    metadata = {"namespace": "default", "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


class Flaky(MemoryApi):
    """Its lists fail as told, one after the other."""

    def fail(self, errors: Iterable[ApiError]) -> None:
        self.errors = list(errors)

    async def list(self, resource: Resource, *more: Any, **others: Any) -> Listing:
        if self.errors:
            raise self.errors.pop(0)
        return await super().list(resource, *more, **others)


@asynccontextmanager
async def running(api: MemoryApi) -> AsyncIterator[tuple[Reflector, list[float]]]:
    """A reflector of config maps that does not really sleep, and how long it would have slept."""
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await asyncio.sleep(0)

    reflector = Reflector(api, CONFIG_MAP, sleep=sleep)
    task = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(30):
            await reflector.synced.wait()
            yield reflector, sleeps
    finally:
        assert not task.done(), task
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 (nothing here sets an event)
        await asyncio.sleep(0)


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
async def test_survives_any_answer_to_a_list(status: int):
    api = Flaky(Cluster())
    api.fail(error_of(status, {}, retry_after=7.0 if status == 429 else 0.0) for _ in range(8))
    async with running(api) as (_, sleeps):
        assert len(sleeps) == 8
        assert sleeps[-1] <= 45
        assert sleeps[5] > sleeps[0] or status == 429
        assert status != 429 or min(sleeps) >= 7


async def test_notices_a_deletion_that_no_event_told():
    cluster = Cluster()
    cluster.create(config_map("a"))
    cluster.create(config_map("b"))
    api = MemoryApi(cluster, deliver=lambda event: () if event.type == "DELETED" else (event,))
    async with running(api) as (reflector, _):
        cluster.delete(Ref(CONFIG_MAP, "default", "a"))
        cluster.create(config_map("c"))
        await until(lambda: len(reflector.store) == 3)  # the ghost
        api.freeze()
        cluster.create(config_map("d"))
        cluster.compact()
        api.thaw()  # what it missed is forgotten by now, so it lists again
        await until(lambda: reflector.store.get("default", "a") is None)
        assert [o["metadata"]["name"] for o in reflector.store.select()] == ["b", "c", "d"]


async def test_a_server_whose_every_list_is_too_old_is_not_asked_in_a_tight_loop():
    cluster = Cluster()
    api = MemoryApi(cluster)
    api.freeze()
    cluster.create(config_map("a"))
    cluster.compact()
    async with running(api) as (_, sleeps):
        await until(lambda: len(sleeps) > 5)
        assert sleeps[5] > 2


async def test_events_that_come_twice_are_told_once():
    cluster = Cluster()
    told: list[str] = []
    reflector = Reflector(
        MemoryApi(cluster, deliver=lambda event: (event, event)),
        CONFIG_MAP,
        on_change=lambda kind, new, old: told.append(kind),
    )
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    cluster.create(config_map("a"))
    await until(lambda: len(reflector.store) == 1)
    cluster.delete(Ref(CONFIG_MAP, "default", "a"))
    await until(lambda: len(reflector.store) == 0)
    task.cancel()
    assert told == ["ADDED", "DELETED"]


async def test_a_bookmark_is_a_sign_of_life_and_moves_on():
    cluster = Cluster()
    api = MemoryApi(cluster)
    async with running(api) as (reflector, _):
        await until(lambda: api.watches == 1)
        before = reflector.last_activity
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
        cluster.bookmark()
        await until(lambda: reflector.last_activity > before)
        assert reflector._position == str(cluster.version)


async def test_a_quiet_watch_that_the_server_ends_in_time_is_a_sign_of_life():
    now = 0.0

    class Quiet(MemoryApi):
        async def watch(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def, override]
            nonlocal now
            await asyncio.sleep(0)
            now += 60
            return
            yield WatchEvent("BOOKMARK", {})

    reflector = Reflector(Quiet(Cluster()), CONFIG_MAP, clock=lambda: now)
    task = asyncio.create_task(reflector.run())
    await until(lambda: now >= 600)
    assert reflector.age <= 60
    task.cancel()


async def test_a_frozen_view_shows_the_past_and_then_catches_up():
    cluster = Cluster()
    api = MemoryApi(cluster)
    async with running(api) as (reflector, _):
        api.freeze()
        cluster.create(config_map("a"))
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(reflector.store) == 0
        api.thaw()
        await until(lambda: len(reflector.store) == 1)


async def test_a_watch_that_ends_at_once_is_not_started_in_a_tight_loop():
    class Closing(MemoryApi):
        async def watch(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def, override]
            return
            yield WatchEvent("BOOKMARK", {})

    async with running(Closing(Cluster())) as (_, sleeps):
        await until(lambda: len(sleeps) > 5)
        assert sleeps[5] > 2


# Kinds that a cluster may lack.


@asynccontextmanager
async def looking_for(cluster: Cluster, api: MemoryApi) -> AsyncIterator[tuple[Reflector, list[bool]]]:
    """A reflector of a kind that may be absent; whether it was, each time that changed."""
    told: list[bool] = []
    sleep = partial(asyncio.sleep, 0)
    reflector = Reflector(
        api,
        CONFIG_MAP,
        optional=True,
        on_presence=lambda: told.append(reflector.absent),
        sleep=lambda seconds: sleep() if seconds == ABSENT_DELAY else asyncio.sleep(seconds),
    )
    task = asyncio.create_task(reflector.run())
    async with asyncio.timeout(30):
        await reflector.synced.wait()
        yield reflector, told
        assert not task.done(), task
    task.cancel()


async def test_a_kind_that_nobody_has_installed_is_a_list_of_nothing_until_it_is():
    cluster = Cluster()
    cluster.absent.add(CONFIG_MAP)
    async with looking_for(cluster, MemoryApi(cluster)) as (reflector, told):
        assert (reflector.absent, len(reflector.store), told) == (True, 0, [True])

        cluster.absent.clear()
        cluster.create(config_map("a"))
        await until(lambda: len(reflector.store) == 1)
        assert (reflector.absent, told) == (False, [True, False])


async def test_a_kind_that_is_uninstalled_takes_its_objects_along():
    cluster = Cluster()
    cluster.create(config_map("a"))
    api = MemoryApi(cluster)
    async with looking_for(cluster, api) as (reflector, told):
        await until(lambda: len(reflector.store) == 1)

        cluster.absent.add(CONFIG_MAP)
        api.disconnect()
        await until(lambda: reflector.absent)
        assert (len(reflector.store), told) == (0, [True])


async def test_looking_for_an_absent_kind_is_a_sign_of_life_and_no_tight_loop():
    now = 0.0
    cluster = Cluster()
    cluster.absent.add(CONFIG_MAP)

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        await asyncio.sleep(0)

    reflector = Reflector(MemoryApi(cluster), CONFIG_MAP, optional=True, clock=lambda: now, sleep=sleep)
    task = asyncio.create_task(reflector.run())
    await until(lambda: now >= 600)
    assert (reflector.age <= ABSENT_DELAY, now) == (True, 600)
    task.cancel()


async def test_a_kind_that_we_may_not_see_yet_keeps_nobody_from_starting():
    """An operator that was given a new image and not the new rights."""
    cluster = Cluster()
    cluster.create(config_map("a"))
    api = Flaky(cluster)
    api.fail([error_of(403, {}), error_of(403, {})])
    async with looking_for(cluster, api) as (reflector, told):
        await until(lambda: len(reflector.store) == 1)
        assert told == [True, False]


@pytest.mark.parametrize("code", [403, 404])
async def test_a_namespace_that_is_gone_or_forbidden_is_closed_until_it_can_be_seen_again(code: int):
    """What was there stays in the store: not to be seen is not deleted."""
    cluster = Cluster()
    cluster.create(config_map("a"))
    api = Flaky(cluster)
    api.fail([error_of(code, {})])
    reflector = Reflector(
        api,
        CONFIG_MAP,
        namespace="default",
        sleep=lambda seconds: asyncio.sleep(0 if seconds == ABSENT_DELAY else seconds),
    )
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    assert reflector.closed
    await until(lambda: len(reflector.store) == 1)
    assert not reflector.closed
    cluster.compact()
    api.fail([error_of(code, {})] * 3)
    api.disconnect()
    cluster.create(config_map("b"))
    cluster.compact()
    await until(lambda: reflector.closed)
    assert len(reflector.store) == 1
    await until(lambda: len(reflector.store) == 2)
    assert not reflector.closed
    task.cancel()


async def test_a_refusal_later_on_takes_nothing_away():
    cluster = Cluster()
    cluster.create(config_map("a"))
    api = Flaky(cluster)
    api.fail([])
    async with looking_for(cluster, api) as (reflector, told):
        await until(lambda: len(reflector.store) == 1)
        api.freeze()
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
        cluster.compact()
        api.fail([error_of(403, {})])
        api.disconnect()
        await until(lambda: not api.errors)  # it has to list again, and may not
        assert (reflector.absent, len(reflector.store), told) == (False, 1, [])
