"""Versions: in which order things happened, and what a watch says of a time in which nothing did."""

import asyncio
from contextlib import aclosing

import pytest
from tests.conformance.conftest import WIDGET, Place
from tests.conformance.test_list_and_watch import events, version

from paceline.kube import Gone, Manifest, WatchEvent, transport
from paceline.kube.resources import CONFIG_MAP, version_of

SHORT_WATCH = 6
"""Seconds: the real server sends a bookmark two seconds before it ends a watch."""


async def test_versions_grow_over_all_kinds(place: Place):
    """A list knows all that was answered before it, and nothing later than its own version."""
    first = await place.apply(size=1)
    other = await place.api.create(config_map(place.namespace, "x"))
    second = await place.apply(size=2)
    assert version_of(first) < version_of(other) < version_of(second)
    listing = await place.api.list(WIDGET, place.namespace)
    assert version_of(listing.items[0]) == version_of(second) <= int(listing.resource_version)
    assert int((await place.api.list(CONFIG_MAP, place.namespace)).resource_version) >= version_of(second)


async def test_a_list_of_nothing_has_a_version_to_watch_from(place: Place):
    start = await version(place)
    await place.apply("later", size=1)
    assert [(kind, name) for kind, name, _ in await events(place, start, 1)] == [("ADDED", "later")]


async def test_a_read_is_never_older_than_the_last_answer(place: Place):
    """By name and by list: a pass that reads after its own write sees it."""
    for size in range(20):
        written = await place.apply(size=size)
        assert (await place.get())["metadata"]["resourceVersion"] == written["metadata"]["resourceVersion"]
        listing = await place.api.list(WIDGET, place.namespace)
        assert [version_of(item) for item in listing.items] == [version_of(written)]


async def test_a_deletion_is_younger_than_all_of_the_object(place: Place):
    start = await version(place)
    widget = await place.apply(size=1)
    await place.api.delete(place.ref(), uid=widget["metadata"]["uid"])
    again = await place.apply(size=1)
    told = await events(place, start, 3)
    assert [kind for kind, _, _ in told] == ["ADDED", "DELETED", "ADDED"]
    assert version_of(widget) < told[1][2] < version_of(again)


async def test_what_changes_nothing_is_told_to_nobody(place: Place):
    """Nor a second later, when managedFields would have another time."""
    await place.apply(size=1)
    await place.replace_status(status={"phase": "New"})
    start = await version(place)
    await asyncio.sleep(1.1)
    await place.apply(size=1)
    await place.replace_status(status={"phase": "New"})
    await place.apply("other", size=1)
    assert [(kind, name) for kind, name, _ in await events(place, start, 1)] == [("ADDED", "other")]


def config_map(namespace: str, name: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name}}


async def first(place: Place, start: str) -> WatchEvent:
    """Of a watch of ConfigMaps, bookmarks too."""
    async with aclosing(place.api.watch(CONFIG_MAP, place.namespace, "", start)) as watch:
        return await anext(watch)


async def test_a_bookmark_is_a_place_to_go_on_from(place: Place, monkeypatch: pytest.MonkeyPatch):
    """It is as young as what happened to others of the kind, of which a watch of one namespace is told nothing. While
    nothing happens to the kind at all, the real server sends none."""
    monkeypatch.setattr(transport, "WATCH_SECONDS", SHORT_WATCH)
    start = (await place.api.list(CONFIG_MAP, place.namespace)).resource_version
    await place.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{place.namespace}-b"}})
    listening = asyncio.create_task(first(place, start))
    await asyncio.sleep(0.5)
    other = await place.api.create(config_map(f"{place.namespace}-b", "x"))
    if hasattr(place.api, "cluster"):
        place.api.cluster.bookmark()  # the real one sends it by itself
    bookmark = await listening
    assert bookmark.type == "BOOKMARK"
    assert version_of(bookmark.object) >= version_of(other)
    after = await place.api.create(config_map(place.namespace, "x"))
    told = await first(place, bookmark.object["metadata"]["resourceVersion"])
    assert (told.type, version_of(told.object)) == ("ADDED", version_of(after))


async def test_pages_are_of_one_moment(place: Place):
    """What is written while a list is read page by page is not in it, and the watch from its version tells it."""
    for number in range(6):
        await place.apply(f"w{number}", size=1)

    seen: list[str] = []

    def noted(manifest: dict) -> dict:
        seen.append(manifest["metadata"]["name"])
        return manifest

    reading = asyncio.create_task(place.api.list(WIDGET, place.namespace, limit=1, reduce=noted))
    while not seen and not reading.done():  # noqa: ASYNC110
        await asyncio.sleep(0)
    await place.apply("w9", size=1)
    listing = await reading
    found = [item["metadata"]["name"] for item in listing.items]
    told = [] if "w9" in found else [name for _, name, _ in await events(place, listing.resource_version, 1)]
    assert found + told == ["w0", "w1", "w2", "w3", "w4", "w5", "w9"]


async def test_a_watch_from_before_the_last_compaction_is_gone_and_a_list_is_not(place: Place):
    await place.apply(size=1)
    if hasattr(place.api, "cluster"):
        place.api.cluster.compact()
    with pytest.raises(Gone):
        await events(place, "1", 1)
    start = await version(place)
    await place.apply(size=2)
    assert [kind for kind, _, _ in await events(place, start, 1)] == ["MODIFIED"]
