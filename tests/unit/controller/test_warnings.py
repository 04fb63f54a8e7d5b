"""Events are asked for of what waits without saying why, and of nothing else."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support import memory

from paceline.controller.cluster import WatchedCluster
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.controller.warnings import MAX_LOOKUPS, warnings
from paceline.kube import Forbidden, Listing, Manifest, Resource
from paceline.plan.step import timestamp
from paceline.plan.trouble import last_warning, recheck_at, silent, waiting

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
    return memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))


async def test_of_a_job_without_a_pod_its_last_warning_is_told(api: memory.MemoryApi) -> None:
    await api.create(event(REFUSED, job()))
    await api.create(event("of another", job("other")))
    assert await warnings(WatchedCluster(api), [job()], NOW) == {"uid-mine-0-0": REFUSED}


GROUP_REFUSED = "create Pod mine-0 in StatefulSet mine failed error: exceeded quota: nogpu"


def group(replicas: int = 2, size: int = 2, made: str = LONG_AGO, **status: Any) -> Manifest:
    metadata = {"name": "mine", "namespace": "default", "uid": "uid-mine", "creationTimestamp": made}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": size}}
    return {"kind": "LeaderWorkerSet", "metadata": metadata, "spec": spec, "status": status}


def pods(*names: str) -> list[Manifest]:
    return [{"kind": "Pod", "metadata": {"name": name}} for name in names]


def of_a_statefulset(name: str, message: str = GROUP_REFUSED, *more: str, **about: str) -> Manifest:
    said = event(message, {"metadata": {"uid": f"nobody-knows-{name}"}}, *more, **about)
    said["involvedObject"] |= {"kind": "StatefulSet", "name": name}
    return said


@pytest.mark.parametrize(
    ("there", "makes"),
    [
        ((), "mine"),
        (("mine-0", "mine-0-1"), "mine"),
        (("mine-0", "mine-1"), "mine-0"),
        (("mine-0", "mine-0-1", "mine-1"), "mine-1"),
        (("mine-0", "mine-0-1", "mine-1", "mine-1-1"), None),
    ],
    ids=["nothing", "a leader", "workers", "a worker", "all there"],
)
async def test_of_a_group_what_makes_the_missing_pods_is_asked(
    api: memory.MemoryApi, there: tuple[str, ...], makes: str | None
) -> None:
    for name in ("mine", "mine-0", "mine-1"):
        await api.create(of_a_statefulset(name, f"{name} was refused"))
    told = await warnings(WatchedCluster(api), waiting({"LeaderWorkerSet": [group()], "Pod": pods(*there)}), NOW)
    assert told == ({"uid-mine": f"{makes} was refused"} if makes else {})


@pytest.mark.parametrize(
    ("later", "said"),
    [
        ((), GROUP_REFUSED),
        (("made", "Normal", "2026-11-21T09:58:00Z", "SuccessfulCreate"), ""),
        (("mine-0 is recreated", "Warning", "2026-11-21T09:58:00Z", "RecreatingFailedPod"), ""),
    ],
    ids=["refused", "made since", "something else since"],
)
def test_a_refusal_of_a_groups_pods_is_over_when_they_are_made(later: tuple[str, ...], said: str) -> None:
    (makes,) = waiting({"LeaderWorkerSet": [group()]})
    told = [of_a_statefulset("mine"), *([of_a_statefulset("mine", *later)] if later else [])]
    assert last_warning(makes, told) == said


def test_what_had_the_name_of_a_group_before_is_not_blamed_on_it() -> None:
    (makes,) = waiting({"LeaderWorkerSet": [group(made="2026-11-21T09:59:00Z")]})
    assert last_warning(makes, [of_a_statefulset("mine")]) == ""


def test_a_group_waits_since_its_roll_out_began() -> None:
    progressing = {"type": "Progressing", "status": "True", "lastTransitionTime": timestamp(NOW - timedelta(seconds=5))}
    (makes,) = waiting({"LeaderWorkerSet": [group(conditions=[progressing])]})
    assert not silent([makes], NOW)


async def test_whoever_may_not_list_events_goes_on_without(api: memory.MemoryApi) -> None:
    class Restricted(memory.MemoryApi):
        async def list(self, *_: Any, **__: Any) -> Listing:
            raise Forbidden(403, "Forbidden", "events is forbidden")

    assert await warnings(WatchedCluster(Restricted(api.cluster)), [job()], NOW) == {}


async def test_many_are_not_all_asked_about(api: memory.MemoryApi) -> None:
    class Counting(memory.MemoryApi):
        asked = 0

        async def list(self, resource: Resource, *arguments: Any, **more: Any) -> Listing:
            self.asked += 1
            return await super().list(resource, *arguments, **more)

    counting = Counting(api.cluster)
    await warnings(WatchedCluster(counting), [job(f"job-{number}") for number in range(50)], NOW)
    assert counting.asked == MAX_LOOKUPS


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
    assert last_warning(one, [failed]) == "FailedMount: not a directory"
    assert last_warning(one, [pulls, failed]) == ""


def test_it_is_looked_at_when_it_falls_silent_and_every_minute_after() -> None:
    assert recheck_at([job(made=timestamp(NOW - timedelta(seconds=20)))], NOW) == NOW + timedelta(seconds=10)
    assert recheck_at([job()], NOW) == NOW + timedelta(minutes=1)
    assert recheck_at([pod("")], NOW) is None
