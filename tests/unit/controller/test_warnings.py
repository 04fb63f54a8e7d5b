"""Events are asked for of what waits without saying why, and of nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.fault import memory

from paceline.controller.cluster import Cluster
from paceline.controller.kinds import KINDS
from paceline.controller.warnings import MOST, warnings
from paceline.kube import Forbidden, Listing, Manifest, Resource
from paceline.plan.silence import look_again, silent, waiting, words
from paceline.plan.terms import timestamp

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
LONG_AGO = timestamp(NOW - timedelta(minutes=5))
REFUSED = 'Error creating: pods "mine-0-0-x7k2p" is forbidden: exceeded quota: nogpu'


def job(name: str = "mine-0-0", made: str = LONG_AGO, **more: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": made}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, **more}


def pod(waits: str, **more: Any) -> Manifest:
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": LONG_AGO}
    state = {"waiting": {"reason": waits}} if waits else {"running": {}}
    status = {"conditions": [placed], "containerStatuses": [{"name": "server", "state": state}]}
    return {"kind": "Pod", "metadata": {"name": "one", "uid": "uid-one", **more}, "status": status}


def event(
    message: str, of: Manifest, type: str = "Warning", at: str = LONG_AGO, reason: str = "FailedCreate"
) -> Manifest:
    uid = of["metadata"]["uid"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{uid}.{type.lower()}-{at[-6:-4]}", "namespace": "default"},
        "involvedObject": {"uid": uid},
        "type": type,
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


@pytest.fixture
def api() -> memory.MemoryApi:
    return memory.MemoryApi(memory.Cluster(kinds=KINDS))


async def test_of_a_job_without_a_pod_its_last_warning_is_told(api: memory.MemoryApi) -> None:
    await api.create(event(REFUSED, job()))
    await api.create(event("of another", job("other")))
    assert await warnings(Cluster(api), [job()], NOW) == {"uid-mine-0-0": REFUSED}


async def test_whoever_may_not_list_events_goes_on_without(api: memory.MemoryApi) -> None:
    class Restricted(memory.MemoryApi):
        async def list(self, *_: Any, **__: Any) -> Listing:
            raise Forbidden(403, "Forbidden", "events is forbidden")

    assert await warnings(Cluster(Restricted(api.cluster)), [job()], NOW) == {}


async def test_many_are_not_all_asked_about(api: memory.MemoryApi) -> None:
    class Counting(memory.MemoryApi):
        asked = 0

        async def list(self, resource: Resource, *arguments: Any, **more: Any) -> Listing:
            self.asked += 1
            return await super().list(resource, *arguments, **more)

    counting = Counting(api.cluster)
    await warnings(Cluster(counting), [job(f"job-{number}") for number in range(50)], NOW)
    assert counting.asked == MOST


@pytest.mark.parametrize(
    ("found", "is_silent"),
    [
        (job(), True),
        (job(made=timestamp(NOW - timedelta(seconds=5))), False),
        (job(status={"conditions": [{"type": "Complete", "status": "True"}]}), False),
        (pod("ContainerCreating"), True),
        (pod("ImagePullBackOff"), False),
        (pod(""), False),
        (pod("ContainerCreating", deletionTimestamp=LONG_AGO), False),
        (job() | {"kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}}, True),
        (job() | {"kind": "PersistentVolumeClaim", "status": {"phase": "Bound"}}, False),
    ],
)
def test_silent_is_what_waits_for_long_and_says_nothing(found: Manifest, is_silent: bool) -> None:
    assert bool(silent([found], NOW)) is is_silent


def test_a_job_that_has_a_pod_is_not_asked_about() -> None:
    has_one = pod("", ownerReferences=[{"uid": "uid-mine-0-0"}])
    assert waiting({"Job": [job()], "Pod": [has_one]}) == [has_one]


def test_what_a_pod_was_warned_of_is_over_once_something_else_is_told_of_it() -> None:
    one = pod("ContainerCreating")
    failed = event("FailedMount: not a directory", one, at="2026-11-21T09:58:00Z", reason="FailedMount")
    pulls = event("Pulling image", one, "Normal", at="2026-11-21T09:59:00Z", reason="Pulling")
    assert words(one, [failed]) == "FailedMount: not a directory"
    assert words(one, [pulls, failed]) == ""


def test_it_is_looked_at_when_it_falls_silent_and_every_minute_after() -> None:
    assert look_again([job(made=timestamp(NOW - timedelta(seconds=20)))], NOW) == NOW + timedelta(seconds=10)
    assert look_again([job()], NOW) == NOW + timedelta(minutes=1)
    assert look_again([pod("")], NOW) is None
