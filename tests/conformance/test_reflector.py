"""A reflector on either API: what it tells, and what it notices after a gap."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.conformance.conftest import WIDGET, Place

from paceline.kube import Ref, Reflector, Resource


@asynccontextmanager
async def running(reflector: Reflector) -> AsyncIterator[None]:
    task = asyncio.create_task(reflector.run())
    try:
        async with asyncio.timeout(10):
            await reflector.synced.wait()
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until_told(told: list[tuple[str, str]], *expected: tuple[str, str]) -> None:
    async with asyncio.timeout(10):
        while told != list(expected):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    told.clear()


async def test_a_store_follows_the_cluster(place: Place):
    told: list[tuple[str, str]] = []
    reflector = Reflector(
        place.api,
        WIDGET,
        namespace=place.namespace,
        selector="color",
        on_change=lambda kind, widget, old: told.append((kind, widget["metadata"]["name"])),
    )
    await place.apply("before", size=1, labels={"color": "red"})
    await place.apply("other", size=1)
    async with running(reflector):
        await until_told(told, ("ADDED", "before"))
        widget = await place.apply("after", size=1, labels={"color": "blue"})
        await until_told(told, ("ADDED", "after"))
        await place.api.delete(place.ref("after"), uid=widget["metadata"]["uid"])
        await until_told(told, ("DELETED", "after"))
    stored = reflector.store.select(place.namespace, {"color": "red"})
    assert [widget["metadata"]["name"] for widget in stored] == ["before"]
    assert "managedFields" not in stored[0]["metadata"]


async def test_what_happened_in_a_gap_is_told_once(place: Place):
    told: list[tuple[str, str]] = []
    reflector = Reflector(
        place.api,
        WIDGET,
        namespace=place.namespace,
        on_change=lambda kind, widget, old: told.append((kind, widget["metadata"]["name"])),
    )
    gone, _, again = [await place.apply(name, size=1) for name in ("gone", "kept", "again")]
    async with running(reflector):
        await until_told(told, ("ADDED", "again"), ("ADDED", "gone"), ("ADDED", "kept"))
    await place.api.delete(place.ref("gone"), uid=gone["metadata"]["uid"])
    await place.api.delete(place.ref("again"), uid=again["metadata"]["uid"])
    await place.apply("again", size=2)
    await place.apply("new", size=1)
    reflector._position = None  # as after 410 Gone
    async with running(reflector):
        await until_told(told, ("DELETED", "gone"), ("DELETED", "again"), ("ADDED", "again"), ("ADDED", "new"))


async def test_a_kind_that_is_not_installed_is_absent(place: Place):
    nothing = Resource("nobody.paceline.dev", "v1", "nothings", "Nothing")
    reflector = Reflector(place.api, nothing, namespace=place.namespace, optional=True)
    async with running(reflector):
        assert (reflector.absent, len(reflector.store)) == (True, 0)
    assert await place.api.get(Ref(nothing, place.namespace, "x")) is None
