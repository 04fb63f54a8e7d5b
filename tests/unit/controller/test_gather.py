"""What is read for a run, from an API server in memory that one suite holds to the real one (tests/conformance)."""

import json
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.support import example as rendered
from tests.support import memory
from tests.support.edits import example, example_run

from paceline.controller import gather
from paceline.controller.cluster import ObjectKey, WatchedCluster
from paceline.controller.execute import execute
from paceline.controller.gather import confirm, gather_deployment, gather_run
from paceline.controller.kinds import RECONCILED_KINDS
from paceline.controller.reconcile import reconcile
from paceline.core.names import DEPLOYMENT_LABEL, MANAGED_BY, RUN_LABEL
from paceline.kube import UNREAD, ApiError, Conflict, Manifest, Ref, WorkQueue
from paceline.kube.reading import an_object
from paceline.kube.resources import JOB, POD
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.step import Apply
from paceline.render import Settings, round_job
from paceline.render.round_job import round_plan
from paceline.render.where import ANYWHERE

KEY = ObjectKey("benchmarkruns", "models", "mine")
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
LABELS = {**MANAGED_BY, RUN_LABEL: "mine"}


def owned(kind: str, api_version: str, owner: Manifest) -> Manifest:
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    metadata = {"name": "mine-0-0", "namespace": "models", "labels": LABELS, "ownerReferences": [reference]}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}


def pod(name: str, namespace: str, node: str, gpus: str) -> Manifest:
    container = {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    metadata = {"name": name, "namespace": namespace}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container]},
    }


async def ended_round(api: memory.MemoryApi, cluster: WatchedCluster) -> None:
    for namespace in ("models", "others"):
        await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    manifest = example_run()
    manifest["metadata"] |= {"name": "mine", "namespace": "models"}
    run = await api.create(manifest)
    job: dict[str, Any] = owned("Job", "batch/v1", run) | {"spec": {"template": {"spec": {"containers": []}}}}
    job = await api.create(job)
    cluster.saw(job | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    await api.create(owned("Pod", "v1", job) | {"spec": {"nodeName": "gpu-0", "containers": []}})
    for other in (
        pod("served", "models", "gpu-0", "4"),
        pod("training", "others", "gpu-0", "2"),
        pod("elsewhere", "others", "gpu-1", "2"),
    ):
        made = await api.create(other)
        await api.replace_status(made | {"status": {"phase": "Running", "startTime": "2026-11-21T08:00:00Z"}})


@pytest.mark.parametrize(
    ("namespaces", "seen"),
    [((), ("models/served (4)", "others/training (2)")), (("models",), ("models/served (4)",))],
)
async def test_who_else_was_on_the_node_of_a_round_that_has_ended(
    namespaces: tuple[str, ...], seen: tuple[str, ...]
) -> None:
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api, namespaces)
    await ended_round(api, cluster)
    found = await gather_run(cluster, KEY, Settings(image="paceline"), NOW)
    assert found is not None
    (one,) = found.jobs
    assert one.neighbours == seen


@pytest.mark.parametrize(
    ("kind", "name", "code"), [("containerStatuses", "conclude", 0), ("initContainerStatuses", "arm-wide", 137)]
)
async def test_a_log_is_given_up_ten_minutes_after_it_was_first_asked_for_in_vain(
    kind: str, name: str, code: int
) -> None:
    """However long ago the client ended: the operator may have been away. That of a pod that ended with an arm is asked
    for, too."""
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    await ended_round(api, cluster)
    ended = {"name": name, "state": {"terminated": {"exitCode": code, "finishedAt": "2026-11-21T08:00:00Z"}}}
    (made,) = (await api.list(POD, "models", f"{RUN_LABEL}=mine")).items
    cluster.saw(made | {"status": {"phase": "Failed" if code else "Succeeded", kind: [ended]}})
    given_up = []
    for minutes, log in ((0, unreachable), (9, unreachable), (9.5, api.log), (10, unreachable), (21, unreachable)):
        api.log = log  # type: ignore[method-assign]
        found = await gather_run(cluster, KEY, Settings(image="paceline"), NOW + timedelta(minutes=minutes))
        assert found is not None
        given_up.append((bool(found.jobs[0].unread), found.jobs[0].given_up))
    assert given_up == [(True, False), (True, False), (False, False), (True, False), (True, True)]


async def unreachable(*_: Any) -> str:
    raise ApiError(500, "InternalError", "Get https://gpu-0:10250: connection refused")


@pytest.mark.parametrize(("phase", "lists"), [("Running", 3), ("Succeeded", 2)])
async def test_the_pods_of_a_round_are_listed_only_where_the_store_has_not_seen_its_end(phase: str, lists: int) -> None:
    """Its rounds, and its neighbours on the node, are listed in any case."""
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    await ended_round(api, cluster)
    (made,) = (await api.list(POD, "models", f"{RUN_LABEL}=mine")).items
    cluster.saw(made | {"status": {"phase": phase}})
    asked = []
    answer = api.list

    async def counting(*args: Any, **kwargs: Any) -> Any:
        asked.append(args)
        return await answer(*args, **kwargs)

    api.list = counting  # type: ignore[method-assign]
    found = await gather_run(cluster, KEY, Settings(image="paceline"), NOW)
    assert found is not None
    assert found.jobs[0].neighbours == ("models/served (4)", "others/training (2)")
    assert len(asked) == lists


async def test_an_object_of_ours_is_not_asked_for_while_the_store_has_it() -> None:
    """Thousands of them are kept. Only one of which the store is known to be behind is read."""
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}})
    manifest = example_run()
    manifest["metadata"] |= {"name": "mine", "namespace": "models"}
    made = await api.create(manifest)
    cluster = WatchedCluster(Unreadable(api.cluster))
    cluster.saw(made)
    found = await gather_run(cluster, KEY, Settings(image="paceline"), NOW)
    assert found is not None
    assert found.manifest["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    cluster.doubted.add(KEY)
    with pytest.raises(AssertionError, match="mine"):
        await gather_run(cluster, KEY, Settings(image="paceline"), NOW)


async def test_an_object_that_has_changed_unheard_is_read_before_anything_is_written() -> None:
    """The watch is behind: what a pass decides from the old object goes nowhere, and the next pass has the new one."""
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    run = await a_namespace_with_a_run(api, cluster, "models")
    changed = await api.replace_status(run | {"status": {"node": "gpu-7"}})
    before = len(api.writes)

    async def record(*_: object) -> None:
        pass

    with pytest.raises(Conflict):
        await reconcile(cluster, KEY, Settings(image="paceline"), record, lambda: NOW)
    assert (len(api.writes), cluster.doubted) == (before, {KEY})
    await reconcile(cluster, KEY, Settings(image="paceline"), record, lambda: NOW)
    assert cluster.doubted == set()
    found = cluster.get("BenchmarkRun", "models", "mine")
    assert found is not None
    assert int(found["metadata"]["resourceVersion"]) > int(changed["metadata"]["resourceVersion"])


@pytest.mark.parametrize(("changed", "there"), [(False, True), (True, False)])
async def test_an_action_without_a_status_waits_for_the_server_to_confirm_the_object(
    changed: bool, there: bool
) -> None:
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    run = await a_namespace_with_a_run(api, cluster, "models")
    if changed:
        await api.replace_status(run | {"status": {"node": "gpu-7"}})
    child = owned("Job", "batch/v1", run) | {"spec": {"template": {"spec": {"containers": []}}}}
    with nullcontext() if there else pytest.raises(Conflict):
        await execute(cluster, [Apply(child, "a round")], partial(confirm, cluster, KEY, run))
    assert bool(await api.get(Ref(JOB, "models", "mine-0-0"))) is there
    assert cluster.doubted == (set() if there else {KEY}), "the next pass reads it, however late the watch is"


def test_a_name_that_kopf_tells_wakes_only_where_the_watch_was_slower() -> None:
    """Both hear of every change: who comes second adds no pass."""
    cluster = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS)))
    cluster.queue = WorkQueue(together=0)
    key = ObjectKey("speculativedeployments", "models", "served")
    deployment = example()
    deployment["metadata"] = {"name": "served", "namespace": "models", "uid": "u", "resourceVersion": "7"}
    cluster.saw(deployment)
    assert cluster.queue.take() == key
    cluster.queue.done(key)
    cluster.hear(key, 7)
    assert (cluster.queue.take(), cluster.doubted) == (None, set())
    cluster.hear(key, 8)
    assert (cluster.queue.take(), cluster.doubted) == (key, {key})


class Unreadable(memory.MemoryApi):
    async def get(self, ref: Ref) -> Manifest | None:
        raise AssertionError(f"{ref} was read")


async def test_what_cannot_be_read_is_told_of_itself_and_is_nobodys_child() -> None:
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    labels = {**MANAGED_BY, DEPLOYMENT_LABEL: "served"}
    run = {"apiVersion": "paceline.dev/v1alpha1", "kind": "BenchmarkRun", UNREAD: "spec: is nested too deep"}
    run |= {"metadata": {"namespace": "models", "name": "mine", "uid": "u", "resourceVersion": "7", "labels": labels}}
    cluster.saw(run)
    assert cluster.select("BenchmarkRun", "models", {DEPLOYMENT_LABEL: "served"}) == []
    run["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
    cluster.saw(run | {"metadata": run["metadata"] | {"resourceVersion": "8"}})
    found = await gather_run(cluster, KEY, Settings(image="paceline"), datetime(2026, 11, 21, tzinfo=UTC))
    assert found is not None
    assert (found.spec, found.invalid) == (None, "spec: is nested too deep")


def test_of_a_pod_the_store_keeps_what_is_read() -> None:
    cluster = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS)))
    labels = {"metadata": {"labels": LABELS, "uid": "u", "resourceVersion": "7"}}
    one = pod("mine", "models", "gpu-0", "4")
    one["spec"]["restartPolicy"] = "Never"
    one["status"] = {"phase": "Running"}
    cluster.saw(one | {"metadata": one["metadata"] | labels["metadata"] | {"managedFields": [{}]}})
    (kept,) = cluster.select("Pod", "models", LABELS)
    assert kept["spec"] == {"nodeName": "gpu-0", "restartPolicy": "Never"}
    assert kept["status"] == {"phase": "Running"}
    assert "managedFields" not in kept["metadata"]


def test_of_a_rounds_job_the_store_keeps_what_it_was_asked() -> None:
    """And not what its pod is made of, which is the more by far."""
    owner, run = rendered.RUN, rendered.run()
    asked = round_plan(owner, run, run.arms, number=1, try_=2)
    made = round_job(owner, run, asked, ANYWHERE, rendered.SETTINGS)
    made["metadata"] |= {"uid": "u", "resourceVersion": "7", "managedFields": [{}]}
    made["spec"]["suspend"] = True
    cluster = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS)))
    cluster.saw(made)
    (kept,) = cluster.select("Job", owner.namespace, {RUN_LABEL: owner.name})
    found = RoundJob(job=kept, pod=None)
    assert (found.plan, found.suspended) == (asked, True)
    assert len(json.dumps(kept)) < len(json.dumps(made)) / 3


async def test_a_run_that_has_ended_is_looked_at_no_more() -> None:
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}})
    manifest = example_run()
    manifest["metadata"] |= {"name": "mine", "namespace": "models"}
    cluster = WatchedCluster(api)
    made = await api.create(manifest)

    async def record(*_: object) -> None:
        pass

    async def looks() -> float | None:
        at = datetime(2026, 11, 21, tzinfo=UTC)
        return await reconcile(cluster, KEY, Settings(image="paceline"), record, lambda: at)

    assert await looks() is not None
    over = {"status": {"conditions": [{"type": "Complete", "status": "True"}], "observedGeneration": 1}}
    cluster.saw(made | over | {"metadata": made["metadata"] | {"resourceVersion": "1000"}})
    assert await looks() is None


async def a_namespace_with_a_run(api: memory.MemoryApi, cluster: WatchedCluster, namespace: str) -> Manifest:
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    manifest = example_run()
    manifest["metadata"] |= {"name": "mine", "namespace": namespace}
    run: Manifest = await api.create(manifest)
    cluster.saw(run)
    return run


async def test_a_round_keeps_apart_from_those_of_all_namespaces_that_have_runs() -> None:
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    for namespace in ("models", "others"):
        await a_namespace_with_a_run(api, cluster, namespace)
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "strangers"}})
    await api.create(pod("blocks", "strangers", "gpu-0", "0"))
    found = await gather_run(cluster, KEY, Settings(image="paceline"), NOW)
    assert found is not None
    assert found.namespaces == ("models", "others")


@pytest.mark.parametrize("there", [True, False])
async def test_a_job_that_the_store_has_lost_is_asked_for_before_it_is_taken_for_deleted(there: bool) -> None:
    """A list of a server that lags behind may lack what another one has told us of."""
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    run = await a_namespace_with_a_run(api, cluster, "models")
    if there:
        await api.create(owned("Job", "batch/v1", run) | {"spec": {"template": {"spec": {"containers": []}}}})
    run["status"] = {"progress": {"step": "Measuring", "job": "mine-0-0", "internal": {"seen": True}}}
    cluster.saw(await api.replace_status(run))
    found = await gather_run(cluster, KEY, Settings(image="paceline"), NOW)
    assert found is not None
    assert [one.name for one in found.jobs] == (["mine-0-0"] if there else [])


async def test_a_job_without_an_owner_is_not_the_runs_and_is_seen() -> None:
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    run = await a_namespace_with_a_run(api, cluster, "models")
    job: dict[str, Any] = owned("Job", "batch/v1", run) | {"spec": {"template": {"spec": {"containers": []}}}}
    del job["metadata"]["ownerReferences"]
    cluster.saw(await api.create(job))
    found = await gather_run(cluster, KEY, Settings(image="paceline"), NOW)
    assert found is not None
    assert (found.jobs, [one["metadata"]["name"] for one in found.left]) == ((), ["mine-0-0"])


@pytest.mark.parametrize(("allowed", "seen"), [(True, ["brought"]), (False, [])])
async def test_a_deployment_sees_runs_that_bring_their_rounds_where_that_is_allowed(
    allowed: bool, seen: list[str]
) -> None:
    """They have no label of ours, and no owner. Whoever may rely on one is woken by it."""
    api = memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))
    cluster = WatchedCluster(api)
    await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "models"}})
    deployment = example()
    deployment["metadata"] = {"name": "served", "namespace": "models"}
    await api.create(deployment)
    key = ObjectKey("speculativedeployments", "models", "served")
    cluster.hear(key)
    run = example_run()
    for name, measured in (("brought", {"machine": "desk"}), ("by-hand", None)):
        spec = {**run["spec"], **({"measured": measured} if measured else {})}
        manifest = {**run, "metadata": {"name": name, "namespace": "models"}, "spec": spec}
        cluster.saw(await api.create(manifest))
    found = await gather_deployment(cluster, key, Settings(image="paceline", imported_evidence=allowed), NOW)
    assert found is not None
    assert [one["metadata"]["name"] for one in found.imported] == seen


@pytest.mark.parametrize(("measured", "woken"), [({"measured": {"machine": "desk"}}, True), ({}, False)])
def test_a_run_that_brings_its_rounds_wakes_the_deployments_of_its_namespace(measured: Manifest, woken: bool) -> None:
    cluster = WatchedCluster(memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS)))
    here, elsewhere = (ObjectKey("speculativedeployments", namespace, "served") for namespace in ("models", "others"))
    cluster.queue = WorkQueue(together=0)
    cluster.known |= {here, elsewhere}
    run = example_run()
    run["metadata"] = {"name": "brought", "namespace": "models"}
    cluster._changed("ADDED", {**run, "spec": {**run["spec"], **measured}}, None)
    waiting = set(iter(cluster.queue.take, None))
    assert (here in waiting, elsewhere in waiting) == (woken, False)


async def test_of_a_config_map_too_large_to_be_read_no_key_is_missing() -> None:
    """The pods of a round read it as a file."""

    async def get(ref: Ref) -> Manifest:
        data = {"ours.jsonl": "x" * (300_000 if ref.name == "large" else 3)}
        return an_object(json.dumps({"kind": "ConfigMap", "metadata": {"name": ref.name}, "data": data}).encode())

    cluster = cast("WatchedCluster", SimpleNamespace(api=SimpleNamespace(get=get)))
    assert await gather._keys(cluster, "team", ("large", "small")) == {"small": frozenset({"ours.jsonl"})}
