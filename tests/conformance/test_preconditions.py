"""What keeps a late write from undoing a newer one: versions and uids, of objects and of their status."""

import pytest
from tests.conformance.conftest import Place

from paceline.kube import Conflict, Invalid, Manifest, NotFound, Ref
from paceline.kube.resources import REVISION

OTHER_UID = "00000000-0000-0000-0000-00000000dead"


async def test_a_status_at_an_older_version_is_refused(place: Place):
    """So the late status of an old leader loses."""
    read = await place.apply(size=1)
    await place.replace_status(status={"phase": "New"})
    with pytest.raises(Conflict):
        await place.replace_status(status={"phase": "Old"}, resourceVersion=read["metadata"]["resourceVersion"])
    assert (await place.get())["status"] == {"phase": "New"}


async def test_a_status_at_the_version_that_was_read_is_taken(place: Place):
    read = await place.apply(size=1)
    about = {key: read["metadata"][key] for key in ("uid", "resourceVersion")}
    assert (await place.replace_status(status={"phase": "New"}, **about))["status"] == {"phase": "New"}


async def test_the_same_status_at_an_older_version_is_refused_too(place: Place):
    """Though it would change nothing."""
    read = await place.apply(size=1)
    await place.replace_status(status={"phase": "New"})
    with pytest.raises(Conflict):
        await place.replace_status(status={"phase": "New"}, resourceVersion=read["metadata"]["resourceVersion"])


async def test_a_status_asks_for_no_uid(place: Place):
    """The object of any uid takes it: only the version keeps a status from another object of the name."""
    read = await place.apply(size=1)
    assert (await place.replace_status(status={"phase": "New"}, uid=OTHER_UID))["status"] == {"phase": "New"}
    about = {"uid": OTHER_UID, "resourceVersion": read["metadata"]["resourceVersion"]}
    with pytest.raises(Conflict):
        await place.replace_status(status={"phase": "Old"}, **about)


async def test_the_status_of_an_object_that_is_gone(place: Place):
    """With a uid or without: nothing is made anew."""
    widget = await place.apply(size=1)
    await place.api.delete(place.ref(), uid=widget["metadata"]["uid"])
    about = {key: widget["metadata"][key] for key in ("uid", "resourceVersion")}
    with pytest.raises((Conflict, NotFound)):
        await place.replace_status(status={"phase": "New"}, **about)
    assert await place.api.get(place.ref()) is None


async def test_only_a_uid_keeps_an_apply_from_making_what_is_gone_anew(place: Place):
    """A version does not."""
    widget = await place.apply(size=1)
    about = {key: widget["metadata"][key] for key in ("uid", "resourceVersion")}
    await place.api.delete(place.ref(), uid=about["uid"])
    with pytest.raises(Conflict):
        await place.apply(size=2, **about)
    assert await place.api.get(place.ref()) is None
    made = await place.apply(size=2, resourceVersion=about["resourceVersion"])
    assert made["metadata"]["uid"] != about["uid"]


async def test_what_is_held_by_a_finalizer_takes_a_status(place: Place):
    """A pass that began before the deletion ends as any other."""
    widget = await place.apply(size=1, finalizers=["paceline.dev/test"])
    await place.api.delete(place.ref(), uid=widget["metadata"]["uid"])
    assert (await place.replace_status(status={"phase": "New"}))["status"] == {"phase": "New"}
    await place.apply(size=1)
    assert await place.api.get(place.ref()) is None


def owned(place: Place, *owners: tuple[str, bool], name: str = "w") -> Manifest:
    """A widget of these owners, by uid and whether it is the controller."""
    widget = place.widget(name, size=1)
    widget["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid} | ({"controller": True} if leads else {})
        for uid, leads in owners
    ]
    return widget


ONE, TWO = (f"00000000-0000-0000-0000-00000000000{number}" for number in (1, 2))


async def test_owners_are_told_apart_by_uid(place: Place):
    """One manager adopts, beside the owner that another one has named, and takes its own back."""
    await place.api.apply(owned(place, (ONE, True)), manager="one")
    adopted = await place.api.apply(owned(place, (TWO, False)), manager="owner")
    assert [owner["uid"] for owner in adopted["metadata"]["ownerReferences"]] == [ONE, TWO]
    left = await place.apply(by="owner", size=1)
    assert [owner["uid"] for owner in left["metadata"]["ownerReferences"]] == [ONE]


async def test_an_object_has_one_controller(place: Place):
    await place.api.apply(owned(place, (ONE, True)), manager="one")
    with pytest.raises(Invalid):
        await place.api.apply(owned(place, (TWO, True)), manager="owner")
    with pytest.raises(Invalid):
        await place.api.create(owned(place, (ONE, True), (TWO, True), name="other"))


async def test_an_owner_need_not_be_there(place: Place):
    """What was made for one that has just gone is made, and collected later: by nobody here."""
    made = await place.api.apply(owned(place, (ONE, True)), manager="one")
    assert await place.get() == made


async def test_a_deletion_in_the_foreground_waits_for_the_collector(place: Place):
    widget = await place.apply(size=1)
    assert await place.api.delete(place.ref(), uid=widget["metadata"]["uid"], propagation="Foreground")
    held = await place.get()
    assert held["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert held["metadata"]["deletionTimestamp"]


async def test_a_revisions_data_never_change(place: Place):
    ref = Ref(REVISION, place.namespace, "x")
    revision = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {"a": "1"}}
    revision["metadata"] = {"namespace": ref.namespace, "name": ref.name}
    await place.api.apply(revision, manager="one")
    with pytest.raises(Invalid):
        await place.api.apply(revision | {"data": {"a": "2"}}, manager="one")
    assert (await place.api.apply(revision | {"revision": 2}, manager="one"))["revision"] == 2


async def test_a_job_may_be_suspended_and_nothing_else(place: Place):
    pod = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
    job = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": pod}}}
    job["metadata"] = {"namespace": place.namespace, "name": "x"}
    await place.api.apply(job, manager="one")
    held = await place.api.apply(job | {"spec": job["spec"] | {"suspend": True}}, manager="one")
    assert held["spec"]["suspend"] is True
    assert held["metadata"]["generation"] == 2
