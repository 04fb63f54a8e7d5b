"""Create, update, delete; and what built-in kinds do."""

import pytest
from tests.conformance.conftest import Place

from paceline.kube import Conflict, Invalid, Manifest, NotFound, Ref
from paceline.kube.resources import DEPLOYMENT, JOB

OTHER_UID = "00000000-0000-0000-0000-00000000dead"


def workload(place: Place, kind: str, **spec: object) -> Manifest:
    resource = {"Deployment": DEPLOYMENT, "Job": JOB}[kind]
    return {
        "apiVersion": resource.api_version,
        "kind": kind,
        "metadata": {"namespace": place.namespace, "name": "x"},
        "spec": {
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}
                | ({"restartPolicy": "Never"} if kind == "Job" else {}),
            },
            **({"selector": {"matchLabels": {"a": "b"}}} if kind == "Deployment" else {}),
            **spec,
        },
    }


async def test_what_is_not_there_is_none(place: Place):
    assert await place.api.get(place.ref()) is None


async def test_a_name_is_created_once(place: Place):
    await place.api.create(place.widget(size=1))
    with pytest.raises(Conflict) as refused:
        await place.api.create(place.widget(size=1))
    assert refused.value.reason == "AlreadyExists"


async def test_an_update_needs_the_current_version(place: Place):
    widget = await place.api.create(place.widget(size=1))
    updated = await place.api.update(widget | {"spec": {"size": 2}})
    assert updated["spec"] == {"size": 2}
    assert updated["metadata"]["generation"] == 2
    with pytest.raises(Conflict):
        await place.api.update(widget | {"spec": {"size": 3}})


async def test_an_update_without_a_version_is_refused(place: Place):
    await place.api.create(place.widget(size=1))
    with pytest.raises(Invalid):
        await place.api.update(place.widget(size=2))


async def test_only_what_is_there_is_updated(place: Place):
    with pytest.raises(NotFound):
        await place.api.update(place.widget(size=2, resourceVersion="1"))


async def test_an_update_leaves_the_status(place: Place):
    await place.apply(size=1)
    widget = await place.replace_status(status={"phase": "New"})
    updated = await place.api.update(widget | {"spec": {"size": 2}, "status": {"phase": "Forged"}})
    assert updated["status"] == {"phase": "New"}


async def test_deletes_the_object_of_that_uid_only(place: Place):
    widget = await place.apply(size=1)
    assert not await place.api.delete(place.ref(), uid=OTHER_UID)
    assert await place.get() == widget
    assert await place.api.delete(place.ref(), uid=widget["metadata"]["uid"])
    assert await place.api.get(place.ref()) is None
    assert not await place.api.delete(place.ref(), uid=widget["metadata"]["uid"])


async def test_a_finalizer_holds_an_object_until_it_is_removed(place: Place):
    widget = await place.apply(size=1, finalizers=["paceline.dev/test"])
    uid = widget["metadata"]["uid"]
    assert await place.api.delete(place.ref(), uid=uid)
    assert await place.api.delete(place.ref(), uid=uid)
    held = await place.get()
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["generation"] == 2
    await place.apply(size=1)
    assert await place.api.get(place.ref()) is None


async def test_an_object_made_again_is_another_one(place: Place):
    first = await place.apply(size=1)
    await place.api.delete(place.ref(), uid=first["metadata"]["uid"])
    second = await place.apply(size=1)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert second["metadata"]["generation"] == 1


async def test_replicas_that_are_dropped_become_one(place: Place):
    """And stay what they are if someone else has said the same before."""
    ref = Ref(DEPLOYMENT, place.namespace, "x")
    await place.api.apply(workload(place, "Deployment", replicas=3), manager="one")
    dropped = await place.api.apply(workload(place, "Deployment"), manager="one")
    assert dropped["spec"]["replicas"] == 1
    await place.api.apply(workload(place, "Deployment", replicas=3), manager="one")
    handover = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": ref.namespace, "name": "x"}}
    await place.api.apply(handover | {"spec": {"replicas": 3}}, manager="two")
    kept = await place.api.apply(workload(place, "Deployment"), manager="one")
    assert kept["spec"]["replicas"] == 3


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
async def test_some_fields_never_change(place: Place, kind: str):
    await place.api.apply(workload(place, kind), manager="one")
    other = workload(place, kind)
    if kind == "Job":
        other["spec"]["template"]["spec"]["containers"][0]["image"] = "other"
    else:
        other["spec"]["template"]["metadata"]["labels"] = other["spec"]["selector"]["matchLabels"] = {"a": "c"}
    with pytest.raises(Invalid):
        await place.api.apply(other, manager="one")
