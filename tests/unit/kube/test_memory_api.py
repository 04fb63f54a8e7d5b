"""The faults of the API in memory and the controllers around it. What it shares with a real one: tests/conformance."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.memory import Cluster, Controllers, Crash, Exit, MemoryApi, conflict, crash_from, fail_at, lost

from paceline.kube import Conflict, Manifest, Ref, Unavailable
from paceline.kube.resources import DEPLOYMENT, JOB, POD


def config_map(name: str, **data: str) -> Manifest:
    metadata = {"namespace": "default", "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def workload(kind: str, name: str, gpus: int = 0, owner: Manifest | None = None, **spec: Any) -> Manifest:
    metadata: dict[str, Any] = {"namespace": "default", "name": name}
    if owner:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": owner["kind"], "name": "o", "uid": owner["metadata"]["uid"]}
        ]
    container = {"name": "server", "image": "i", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    version = {"Deployment": "apps/v1", "Job": "batch/v1"}[kind]
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"template": template, **spec}}


async def write(api: MemoryApi, *names: str) -> None:
    for name in names:
        await api.apply(config_map(name), manager="m")


async def test_a_crash_comes_after_the_write_and_nothing_comes_after_the_crash():
    cluster = Cluster()
    api = MemoryApi(cluster, after=crash_from(2))
    with pytest.raises(Crash):
        await write(api, "a", "b", "c")
    with pytest.raises(Crash):
        await api.get(Ref(cluster.kinds["v1", "ConfigMap"], "default", "a"))
    assert [w.ref.name for w in api.writes] == ["a", "b"]
    assert len(cluster.list(cluster.kinds["v1", "ConfigMap"]).items) == 2


async def test_a_lost_answer_is_a_write_that_happened():
    cluster = Cluster()
    with pytest.raises(Unavailable):
        await write(MemoryApi(cluster, after=fail_at(1, lost())), "a")
    with pytest.raises(Unavailable):
        await write(MemoryApi(cluster, before=fail_at(1, lost())), "b")
    with pytest.raises(Conflict):
        await write(MemoryApi(cluster, before=fail_at(1, conflict())), "b")
    assert [o["metadata"]["name"] for o in cluster.list(cluster.kinds["v1", "ConfigMap"]).items] == ["a"]


async def test_a_write_that_changes_nothing_is_not_one():
    api = MemoryApi(Cluster())
    await write(api, "a", "a", "b")
    assert [w.ref.name for w in api.writes] == ["a", "b"]


def test_a_deployment_gets_ready_pods_and_new_ones_for_a_new_template():
    cluster = Cluster()
    controllers = Controllers(cluster=cluster)
    ref = Ref(DEPLOYMENT, "default", "d")
    cluster.apply(workload("Deployment", "d", replicas=2), manager="m")
    controllers.settle()
    first = cluster.get(ref)
    assert first is not None
    assert (first["status"]["readyReplicas"], first["status"]["observedGeneration"]) == (2, 1)
    before = {pod["metadata"]["uid"] for pod in cluster.list(POD, "default", "app=d").items}
    cluster.apply(workload("Deployment", "d", gpus=1, replicas=2), manager="m")
    controllers.settle()
    after = {pod["metadata"]["uid"] for pod in cluster.list(POD, "default", "app=d").items}
    assert len(after) == 2
    assert not before & after


def test_gpus_run_out():
    cluster = Cluster()
    controllers = Controllers(cluster=cluster)
    controllers.add_node("gpu-0", 4)
    cluster.apply(workload("Deployment", "d", gpus=4, replicas=2), manager="m")
    controllers.settle()
    deployment = cluster.get(Ref(DEPLOYMENT, "default", "d"))
    assert deployment is not None
    assert deployment["status"]["readyReplicas"] == 1
    waiting = [pod for pod in cluster.list(POD).items if "nodeName" not in pod["spec"]]
    assert waiting[0]["status"]["conditions"][0]["reason"] == "Unschedulable"
    controllers.add_node("gpu-1", 4)
    controllers.settle()
    deployment = cluster.get(Ref(DEPLOYMENT, "default", "d"))
    assert deployment is not None
    assert deployment["status"]["readyReplicas"] == 2


@pytest.mark.parametrize(("code", "condition"), [(0, "Complete"), (70, "Failed")])
def test_a_job_runs_until_its_containers_end(code: int, condition: str):
    now = datetime(2030, 1, 1, tzinfo=UTC)
    cluster = Cluster(now=lambda: now)
    controllers = Controllers(
        cluster=cluster,
        finish=lambda pod: {"server": Exit(code, "said")} if now.minute >= 5 else None,
    )
    cluster.apply(workload("Job", "j"), manager="m")
    controllers.settle()
    job = cluster.get(Ref(JOB, "default", "j"))
    assert job is not None
    assert job["status"] == {"active": 1, "startTime": "2030-01-01T00:00:00Z"}
    now += timedelta(minutes=5)
    controllers.settle()
    job = cluster.get(Ref(JOB, "default", "j"))
    assert job is not None
    assert [mark["type"] for mark in job["status"]["conditions"]] == [condition]
    pod = cluster.list(POD).items[0]
    ended = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (ended["exitCode"], ended["message"], ended["finishedAt"]) == (code, "said", "2030-01-01T00:05:00Z")


def test_children_go_with_their_last_owner():
    cluster = Cluster()
    owner = cluster.create(config_map("owner"))
    cluster.apply(workload("Deployment", "d", owner=owner, replicas=1), manager="m")
    controllers = Controllers(cluster=cluster)
    controllers.settle()
    assert cluster.delete(Ref(cluster.kinds["v1", "ConfigMap"], "default", "owner"))
    controllers.settle()
    assert cluster.list(DEPLOYMENT).items == cluster.list(POD).items == []


def test_a_foreground_deletion_waits_for_the_children():
    cluster = Cluster()
    cluster.apply(workload("Job", "j"), manager="m")
    controllers = Controllers(cluster=cluster, finish=lambda pod: None)
    controllers.settle()
    cluster.delete(Ref(JOB, "default", "j"), propagation="Foreground")
    assert cluster.get(Ref(JOB, "default", "j")) is not None
    controllers.settle()
    assert cluster.list(JOB).items == cluster.list(POD).items == []
