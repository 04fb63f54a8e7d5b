"""The status subresource: spec and status never touch each other."""

import pytest
from tests.conformance.conftest import Place

from paceline.kube import NotFound


async def test_the_object_does_not_take_a_status(place: Place):
    assert "status" not in await place.apply(size=1, status={"phase": "New"})


async def test_the_status_takes_nothing_else(place: Place):
    await place.apply(size=1)
    widget = await place.replace_status(size=9, labels={"a": "b"}, status={"phase": "New"})
    assert widget["spec"] == {"size": 1}
    assert widget["status"] == {"phase": "New"}
    assert "labels" not in widget["metadata"]


async def test_a_status_is_no_new_generation(place: Place):
    before = await place.apply(size=1)
    after = await place.replace_status(status={"phase": "New"})
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
    assert int(after["metadata"]["resourceVersion"]) > int(before["metadata"]["resourceVersion"])


async def test_the_same_status_changes_nothing(place: Place):
    await place.apply(size=1)
    first = await place.replace_status(status={"phase": "New"})
    again = await place.replace_status(status={"phase": "New"})
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_condition_said_no_more_is_gone(place: Place):
    await place.apply(size=1)
    both = [{"type": "Ready", "status": "False"}, {"type": "Stalled", "status": "True"}]
    await place.replace_status(status={"phase": "New", "conditions": both})
    widget = await place.replace_status(status={"conditions": [{"type": "Ready", "status": "True"}]})
    assert widget["status"] == {"conditions": [{"type": "Ready", "status": "True"}]}


async def test_an_apply_of_the_object_leaves_the_status(place: Place):
    await place.apply(size=1)
    await place.replace_status(status={"phase": "New"})
    assert (await place.apply(size=2))["status"] == {"phase": "New"}


async def test_no_object_no_status(place: Place):
    with pytest.raises(NotFound):
        await place.replace_status(status={"phase": "New"})
