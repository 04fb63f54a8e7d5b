"""What is written, on an API server in memory that one suite holds to the real one (tests/conformance)."""

from typing import Any

import pytest
from tests.support import memory

from paceline.controller.cluster import WatchedCluster
from paceline.controller.execute import HANDOVER_MANAGER, execute, publish
from paceline.controller.kinds import BENCHMARK_ROUND, RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.kube import ApiError, Conflict, Forbidden, Ref, TooManyRequests, Unavailable
from paceline.kube.resources import DEPLOYMENT
from paceline.plan.step import Adopt, Apply, Delete

REF = Ref(DEPLOYMENT, "default", "web")
RESOURCE: dict[str, Any] = {
    "apiVersion": "paceline.dev/v1alpha1",
    "kind": SPECULATIVE_DEPLOYMENT.kind,
    "metadata": {"name": "model", "namespace": "default"},
    "spec": {},
}


def deployment(**spec: Any) -> dict[str, Any]:
    labels = {"app.kubernetes.io/managed-by": "paceline"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "server", "image": "a"}]}},
            **spec,
        },
    }


@pytest.fixture
def api() -> memory.MemoryApi:
    return memory.MemoryApi(memory.Cluster(kinds=RECONCILED_KINDS))


async def test_replicas_that_are_left_to_an_autoscaler_keep_their_number(api: memory.MemoryApi) -> None:
    cluster = WatchedCluster(api)
    await execute(cluster, [Apply(deployment(replicas=4), "asked for")])
    await execute(cluster, [Apply(deployment(), "left to an autoscaler")])
    found = await api.get(REF)
    assert found is not None
    assert found["spec"]["replicas"] == 4


async def test_the_number_that_an_autoscaler_has_set_meanwhile_stays(api: memory.MemoryApi) -> None:
    """Our store has not heard of it yet, and the number is not ours any more."""
    cluster = WatchedCluster(api)
    await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
    scaled = deployment(replicas=10)
    del scaled["spec"]["template"], scaled["spec"]["selector"], scaled["metadata"]["labels"]
    await api.apply(scaled, manager="hpa", force=True)
    for image in ("b", "c"):
        changed = deployment()
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = image
        await execute(cluster, [Apply(changed, "left to an autoscaler")])
        found = await api.get(REF)
        assert found is not None
        assert found["spec"]["replicas"] == 10
    managers = {entry["manager"] for entry in found["metadata"]["managedFields"]}
    assert HANDOVER_MANAGER not in managers, "there was nothing to hand over"


async def test_what_was_deleted_meanwhile_is_not_made_again(api: memory.MemoryApi) -> None:
    """It was to be changed. Whether it is still wanted, the next pass decides."""
    cluster = WatchedCluster(api)
    await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
    found = await api.get(REF)
    assert found is not None
    await api.delete(REF, uid=found["metadata"]["uid"])
    with pytest.raises(Conflict):
        await execute(cluster, [Apply(deployment(replicas=2), "asked for")])
    assert await api.get(REF) is None


async def test_a_late_status_of_an_old_leader_does_not_undo_that_of_the_new_one(api: memory.MemoryApi) -> None:
    read_by_the_old_one = await api.create(RESOURCE)
    await publish(WatchedCluster(api), read_by_the_old_one, {"summary": "decided by the new leader"})
    with pytest.raises(Conflict):
        await publish(WatchedCluster(api), read_by_the_old_one, {"summary": "decided by the old leader, sent late"})
    found = await api.get(Ref(SPECULATIVE_DEPLOYMENT, "default", "model"))
    assert found is not None
    assert found["status"] == {"summary": "decided by the new leader"}


async def test_what_somebody_has_added_to_a_status_goes(api: memory.MemoryApi) -> None:
    ours = {"pools": [{"name": "latency"}]}
    cluster, made = WatchedCluster(api), await api.create(RESOURCE)
    await publish(cluster, made, ours)
    found = await api.get(Ref(SPECULATIVE_DEPLOYMENT, "default", "model"))
    assert found is not None
    theirs = {"pools": [*ours["pools"], {"name": "added"}]}
    changed = api.cluster.update(found | {"status": theirs}, manager="somebody", subresource="status")
    await publish(cluster, changed, ours)
    found = await api.get(Ref(SPECULATIVE_DEPLOYMENT, "default", "model"))
    assert found is not None
    assert found["status"] == ours


async def test_what_is_there_already_is_not_sent_again(api: memory.MemoryApi) -> None:
    cluster = WatchedCluster(api)
    for _ in range(3):
        await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
    assert len(api.writes) == 1


def recorded(job: str, node: str) -> dict[str, Any]:
    metadata = {"name": "run-0-0", "namespace": "default"}
    spec = {"round": 0, "try": 0, "job": job, "node": node}
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "BenchmarkRound", "metadata": metadata, "spec": spec}


async def test_a_record_that_an_old_list_lacks_stays_as_it_is(api: memory.MemoryApi) -> None:
    cluster = WatchedCluster(api)
    await execute(cluster, [Apply(recorded("run-0-0", "gpu-1"), "measured", once=True)])
    with pytest.raises(Conflict):
        await execute(WatchedCluster(api), [Apply(recorded("run-0-0", "gpu-2"), "measured", once=True)])
    (found,) = (await api.list(BENCHMARK_ROUND, "default")).items
    assert found["spec"]["node"] == "gpu-1"


async def test_a_record_of_another_job_gives_way(api: memory.MemoryApi) -> None:
    await api.create(recorded("a-strangers", "gpu-1"))
    await execute(WatchedCluster(api), [Apply(recorded("run-0-0", "gpu-2"), "measured", once=True)])
    (found,) = (await api.list(BENCHMARK_ROUND, "default")).items
    assert found["spec"]["job"] == "run-0-0"


@pytest.mark.parametrize("namespaces", [(), ("default", "other"), ("other", "default")])
async def test_an_own_write_is_seen_at_once_in_whichever_namespace(
    api: memory.MemoryApi, namespaces: tuple[str, ...]
) -> None:
    cluster = WatchedCluster(api, namespaces)
    await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
    assert cluster.get("Deployment", "default", "web") is not None
    assert len(cluster.select("Deployment", "default", {})) == 1


async def test_a_status_that_says_nothing_new_is_not_written(api: memory.MemoryApi) -> None:
    cluster, made = WatchedCluster(api), await api.create(RESOURCE)
    await publish(cluster, made, {"summary": "latency=wide 1.36x"})
    found = await api.get(Ref(SPECULATIVE_DEPLOYMENT, "default", "model"))
    assert found is not None
    assert found["status"] == {"summary": "latency=wide 1.36x"}
    before = len(api.writes)
    await publish(cluster, found, {"summary": "latency=wide 1.36x"})
    assert len(api.writes) == before


async def test_what_is_refused_of_one_pool_stops_that_pool_alone(api: memory.MemoryApi) -> None:
    """A quota on Services: the pool's next objects wait for it, another pool's do not."""

    def services(write: memory.Write) -> None:
        if write.ref.name == "one-service":
            raise Forbidden(403, "Forbidden", "exceeded quota: services=10, used: services=10")

    api.before = services
    refused = await execute(
        WatchedCluster(api),
        [
            Apply(of_pool("one", "one-service"), "the first pool's address"),
            Apply(of_pool("one", "one-after"), "comes after it"),
            Apply(of_pool("other", "other-service"), "another pool's address"),
            Apply(of_pool("", "shared"), "everybody's"),
        ],
    )
    assert [str(error) for error in refused.values()] == [
        "403 Forbidden: exceeded quota: services=10, used: services=10"
    ]
    there = [found["metadata"]["name"] for found in api.cluster.list(DEPLOYMENT).items]
    assert there == ["other-service", "shared"]


def of_pool(pool: str, name: str) -> dict[str, Any]:
    made = deployment(replicas=1)
    labels = made["metadata"]["labels"] | ({"paceline.dev/pool": pool} if pool else {})
    return made | {"metadata": made["metadata"] | {"name": name, "labels": labels}}


@pytest.mark.parametrize(
    "error",
    [
        Conflict(409, "Conflict", "another was faster"),
        Unavailable(0, "TimeoutError", "no answer"),
        TooManyRequests(429, "TooManyRequests", "later"),
    ],
    ids=str,
)
async def test_what_a_retry_may_mend_ends_the_pass(api: memory.MemoryApi, error: ApiError) -> None:
    """What comes after it may rest on it, whoever's pool it is of. The queue tries the key again."""

    def no_answer(write: memory.Write) -> None:
        if write.ref.name == "first":
            raise error

    api.before = no_answer
    with pytest.raises(type(error)):
        await execute(
            WatchedCluster(api), [Apply(of_pool("one", "first"), "first"), Apply(of_pool("two", "next"), "next")]
        )
    assert api.cluster.list(DEPLOYMENT).items == []


async def test_what_is_adopted_has_two_owners_and_is_otherwise_what_it_was(api: memory.MemoryApi) -> None:
    """The gone one may have been its controller; two of those no API server accepts."""
    cluster = WatchedCluster(api)
    made = deployment(replicas=1)
    gone = {"apiVersion": "v1", "kind": "Old", "name": "owner", "uid": "gone", "controller": True}
    await execute(cluster, [Apply(made | {"metadata": made["metadata"] | {"ownerReferences": [gone]}}, "made")])
    found = await api.get(REF)
    assert found is not None
    await execute(cluster, [Adopt(found, gone | {"uid": "new"}, "restored")])
    after = await api.get(REF)
    assert after is not None
    owners = after["metadata"]["ownerReferences"]
    assert [(one["uid"], one.get("controller")) for one in owners] == [("gone", True), ("new", None)]
    assert after["spec"] == found["spec"]


async def test_what_is_deleted_each_time_is_made_less_and_less_often(api: memory.MemoryApi) -> None:
    """As by a policy. It is told like a refusal, and the clock alone lets it be made again."""
    cluster, now = WatchedCluster(api), [0.0]
    cluster.remade.clock = lambda: now[0]
    made: list[float] = []
    told = ""
    while now[0] < 600:
        refused = await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
        if refused:
            told = str(next(iter(refused.values())))
        else:
            made.append(now[0])
            await delete_as_somebody(cluster, api)
        now[0] += 5
    assert made == [0, 5, 10, 25, 55, 115, 235, 475]
    assert "8 times" in told


async def test_what_we_delete_and_what_has_another_owner_is_made_at_once(api: memory.MemoryApi) -> None:
    cluster = WatchedCluster(api)
    cluster.remade.clock = lambda: 0.0
    for _ in range(5):
        await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
        found = await api.get(REF)
        assert found is not None
        assert await execute(cluster, [Delete(found, "not asked for any more")]) == {}
        heard_of_its_end(cluster, found)
    for number in range(5):
        owned = deployment(replicas=1)
        owned["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": f"{number}"}]
        assert await execute(cluster, [Apply(owned, "asked for")]) == {}
        await delete_as_somebody(cluster, api)


async def delete_as_somebody(cluster: WatchedCluster, api: memory.MemoryApi) -> None:
    """And the watch has told us."""
    found = await api.get(REF)
    assert found is not None
    await api.delete(REF, uid=found["metadata"]["uid"])
    heard_of_its_end(cluster, found)


def heard_of_its_end(cluster: WatchedCluster, found: dict[str, Any]) -> None:
    for store in cluster.stores("Deployment"):
        store.observe("DELETED", found)
