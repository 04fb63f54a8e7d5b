"""Server-side apply: what it creates, changes, takes away and refuses."""

import pytest
from tests.conformance.conftest import Place

from paceline.kube import Conflict, Invalid, NotFound


def owners(manifest: dict, field: str) -> set[str]:
    """Who owns a field of spec."""
    entries = manifest["metadata"]["managedFields"]
    return {entry["manager"] for entry in entries if f"f:{field}" in entry["fieldsV1"].get("f:spec", {})}


async def test_creates_and_then_changes_nothing(place: Place):
    first = await place.apply(size=1, tags=["a", "b"], pools=[{"name": "p", "replicas": 1}])
    again = await place.apply(size=1, tags=["a", "b"], pools=[{"name": "p", "replicas": 1}])
    assert first["metadata"]["generation"] == 1
    assert first["metadata"]["uid"]
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_changes_what_it_says_and_counts_generations(place: Place):
    first = await place.apply(size=1)
    changed = await place.apply(size=2)
    labelled = await place.apply(size=2, labels={"a": "b"})
    assert changed["spec"] == {"size": 2}
    assert [m["metadata"]["generation"] for m in (first, changed, labelled)] == [1, 2, 2]
    assert int(labelled["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


async def test_takes_away_what_it_says_no_more(place: Place):
    await place.apply(size=1, color="red", options={"a": "1", "b": "2"}, labels={"x": "1", "y": "2"})
    left = await place.apply(size=1, options={"a": "1"}, labels={"x": "1"})
    assert left["spec"] == {"size": 1, "options": {"a": "1"}}
    assert left["metadata"]["labels"] == {"x": "1"}


async def test_leaves_what_another_manager_applied_too(place: Place):
    await place.apply(size=1, color="red", options={"a": "1", "b": "2"})
    await place.apply(by="two", color="red", options={"a": "1"})
    left = await place.apply(size=1)
    assert left["spec"] == {"size": 1, "color": "red", "options": {"a": "1"}}
    assert owners(left, "color") == {"two"}


async def test_a_plain_list_is_one_value(place: Place):
    await place.apply(tags=["a", "b"])
    changed = await place.apply(by="two", tags=["c"])
    assert changed["spec"]["tags"] == ["c"]
    assert owners(changed, "tags") == {"two"}


async def test_items_of_a_keyed_list_belong_to_those_who_applied_them(place: Place):
    await place.apply(pools=[{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}])
    await place.apply(by="two", pools=[{"name": "b", "note": "mine"}, {"name": "c"}])
    left = await place.apply(pools=[{"name": "a", "replicas": 2}])
    pools = {pool["name"]: pool for pool in left["spec"]["pools"]}
    assert pools == {
        "a": {"name": "a", "replicas": 2},
        "b": {"name": "b", "note": "mine"},
        "c": {"name": "c"},
    }


async def test_an_item_goes_with_its_last_owner_whoever_wrote_into_it(place: Place):
    await place.apply(size=1, pools=[{"name": "a"}, {"name": "b"}])
    widget = await place.get()
    widget["spec"]["pools"][0]["note"] = "scribbled"
    await place.api.update(widget)
    assert (await place.apply(size=1, pools=[{"name": "b"}]))["spec"]["pools"] == [{"name": "b"}]


async def test_items_are_in_the_order_of_the_last_apply(place: Place):
    await place.apply(pools=[{"name": "c"}, {"name": "b"}, {"name": "a"}])
    await place.apply(by="two", pools=[{"name": "z"}, {"name": "b"}])
    last = await place.apply(pools=[{"name": "a"}, {"name": "b"}, {"name": "c"}])
    assert [pool["name"] for pool in last["spec"]["pools"]] == ["z", "a", "b", "c"]


async def test_does_not_take_a_field_without_force(place: Place):
    before = await place.apply(size=1)
    with pytest.raises(Conflict, match=r"\.spec\.size"):
        await place.apply(by="two", force=False, size=2)
    assert await place.get() == before


async def test_takes_a_field_with_force(place: Place):
    await place.apply(size=1, color="red")
    taken = await place.apply(by="two", size=2)
    assert taken["spec"] == {"size": 2, "color": "red"}
    assert owners(taken, "size") == {"two"}
    assert (await place.apply(color="red"))["spec"] == {"size": 2, "color": "red"}


async def test_two_managers_may_say_the_same(place: Place):
    await place.apply(size=1)
    shared = await place.apply(by="two", force=False, size=1)
    assert owners(shared, "size") == {"one", "two"}


async def test_an_update_owns_what_it_changed(place: Place):
    widget = await place.apply(size=1, color="red")
    widget["spec"]["size"] = 7
    updated = await place.api.update(widget)
    assert owners(updated, "size") == {"paceline"}
    assert owners(updated, "color") == {"one"}
    with pytest.raises(Conflict):
        await place.apply(force=False, size=8, color="red")


async def test_never_sends_an_empty_map_where_there_was_something(place: Place):
    """It would become null. Leave the map out instead."""
    await place.apply(size=1, options={"a": "1"})
    with pytest.raises(Invalid):
        await place.apply(size=1, options={})
    assert (await place.apply(size=1))["spec"] == {"size": 1}


async def test_null_is_refused(place: Place):
    with pytest.raises(Invalid):
        await place.apply(size=None)


async def test_one_key_twice_is_refused(place: Place):
    with pytest.raises(Invalid):
        await place.apply(pools=[{"name": "a"}, {"name": "a"}])


async def test_a_uid_is_a_precondition(place: Place):
    with pytest.raises(Conflict):
        await place.apply(size=1, uid="00000000-0000-0000-0000-00000000dead")
    widget = await place.apply(size=1)
    with pytest.raises(Conflict):
        await place.apply(size=2, uid="00000000-0000-0000-0000-00000000dead")
    assert (await place.apply(size=2, uid=widget["metadata"]["uid"]))["spec"] == {"size": 2}


async def test_a_version_is_a_precondition(place: Place):
    widget = await place.apply(size=1)
    await place.apply(size=2)
    with pytest.raises(Conflict):
        await place.apply(size=3, resourceVersion=widget["metadata"]["resourceVersion"])


async def test_a_name_must_be_one(place: Place):
    with pytest.raises(Invalid):
        await place.apply("Not_A_Name", size=1)


async def test_the_namespace_must_be_there(place: Place):
    elsewhere = Place(place.api, "nowhere")
    with pytest.raises(NotFound):
        await elsewhere.apply(size=1)
