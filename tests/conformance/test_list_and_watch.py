"""Lists, label selectors, and watches that go on where they stopped."""

import asyncio
from contextlib import aclosing

import pytest
from tests.conformance.conftest import WIDGET, Place

from paceline.kube import Gone, Invalid, WatchEvent
from paceline.kube.resources import EVENT


async def events(place: Place, version: str, number: int, selector: str = "") -> list[tuple[str, str, int]]:
    """(type, name, version) of the next events; bookmarks do not count."""
    found: list[WatchEvent] = []
    async with asyncio.timeout(10), aclosing(place.api.watch(WIDGET, place.namespace, selector, version)) as watch:
        async for event in watch:
            if event.type != "BOOKMARK":
                found.append(event)
            if len(found) == number:
                break
    return [(e.type, e.object["metadata"]["name"], int(e.object["metadata"]["resourceVersion"])) for e in found]


async def version(place: Place) -> str:
    return (await place.api.list(WIDGET, place.namespace)).resource_version


async def test_a_list_reads_all_pages(place: Place):
    for n in range(7):
        await place.apply(f"w{n}", size=n)
    listing = await place.api.list(WIDGET, place.namespace, limit=3)
    assert [item["metadata"]["name"] for item in listing.items] == [f"w{n}" for n in range(7)]
    assert {(item["apiVersion"], item["kind"]) for item in listing.items} == {(WIDGET.api_version, "Widget")}


async def test_a_list_of_all_namespaces(place: Place):
    await place.apply("here", size=1)
    everywhere = (await place.api.list(WIDGET)).items
    assert (place.namespace, "here") in {(i["metadata"]["namespace"], i["metadata"]["name"]) for i in everywhere}


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("", ["a", "b", "c"]),
        ("color=red", ["a"]),
        ("color==red", ["a"]),
        ("color!=red", ["b", "c"]),
        ("color", ["a", "b"]),
        ("!color", ["c"]),
        ("color in (red, blue)", ["a", "b"]),
        ("color notin (red)", ["b", "c"]),
        ("color,color!=red", ["b"]),
    ],
)
async def test_selectors(place: Place, selector: str, found: list[str]):
    await place.apply("a", size=1, labels={"color": "red"})
    await place.apply("b", size=1, labels={"color": "blue"})
    await place.apply("c", size=1)
    listing = await place.api.list(WIDGET, place.namespace, selector)
    assert [item["metadata"]["name"] for item in listing.items] == found


async def test_a_field_selector(place: Place):
    for name in "ab":
        await place.apply(name, size=1)
    listing = await place.api.list(WIDGET, place.namespace, fields="metadata.name=b")
    assert [item["metadata"]["name"] for item in listing.items] == ["b"]


async def test_events_of_one_object(place: Place):
    """By the uid of what they are about, or by its name: nothing else of a cluster's Events is ever read."""
    for uid in ("one", "other"):
        about = {"kind": "Job", "namespace": place.namespace, "name": uid, "uid": uid}
        told = {"type": "Warning", "reason": "FailedCreate", "message": uid}
        metadata = {"name": f"{uid}.1", "namespace": place.namespace}
        await place.api.create(
            {"apiVersion": "v1", "kind": "Event", "metadata": metadata, "involvedObject": about, **told}
        )
    for fields in ("involvedObject.uid=one", "involvedObject.kind=Job,involvedObject.name=one"):
        listing = await place.api.list(EVENT, place.namespace, fields=fields)
        assert [item["message"] for item in listing.items] == ["one"]
    assert not (
        await place.api.list(EVENT, place.namespace, fields="involvedObject.kind=Pod,involvedObject.name=one")
    ).items


async def test_a_selector_that_is_none(place: Place):
    with pytest.raises(Invalid):
        await place.api.list(WIDGET, place.namespace, "a b")


async def test_a_watch_tells_what_came_after_the_list(place: Place):
    await place.apply("old", size=1)
    start = await version(place)
    first = await place.apply(size=1)
    second = await place.apply(size=2)
    third = await place.replace_status(status={"phase": "New"})
    await place.api.delete(place.ref(), uid=first["metadata"]["uid"])
    told = await events(place, start, 4)
    versions = [int(m["metadata"]["resourceVersion"]) for m in (first, second, third)]
    assert [t for t, _, _ in told] == ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert {name for _, name, _ in told} == {"w"}
    assert [v for _, _, v in told][:3] == versions
    assert told[3][2] > versions[2]


async def test_a_watch_goes_on_from_any_event(place: Place):
    start = await version(place)
    for n in range(4):
        await place.apply(size=n)
    told = await events(place, start, 4)
    assert await events(place, str(told[1][2]), 2) == told[2:]


async def test_a_watch_hears_what_happens_while_it_is_open(place: Place):
    start = await version(place)
    watching = asyncio.create_task(events(place, start, 2))
    await asyncio.sleep(0.1)
    await place.apply("a", size=1)
    await place.apply("b", size=1)
    assert [(kind, name) for kind, name, _ in await watching] == [("ADDED", "a"), ("ADDED", "b")]


async def test_an_object_that_stops_to_match_is_deleted_for_the_watch(place: Place):
    await place.apply("a", size=1, labels={"color": "red"})
    start = await version(place)
    await place.apply("a", size=2, labels={"color": "red"})
    await place.apply("a", size=2, labels={"color": "blue"})
    await place.apply("b", size=1, labels={"color": "blue"})
    await place.apply("b", size=1, labels={"color": "red"})
    told = await events(place, start, 3, "color=red")
    assert [(kind, name) for kind, name, _ in told] == [("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]


async def test_a_version_of_long_ago_is_gone(place: Place):
    await place.apply(size=1)
    if hasattr(place.api, "cluster"):
        place.api.cluster.compact()  # the real one's watch cache began when the kind was made
    with pytest.raises(Gone):
        await events(place, "1", 1)
