"""What is written, on an API server in memory that one suite holds to the real one (tests/conformance)."""

from typing import Any

import pytest
from tests.fault import memory

from paceline.controller.cluster import Cluster
from paceline.controller.execute import execute, publish
from paceline.controller.kinds import KINDS, SPECULATIVE_DEPLOYMENT
from paceline.kube import Ref
from paceline.kube.resources import DEPLOYMENT
from paceline.plan.terms import Apply

REF = Ref(DEPLOYMENT, "default", "web")


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
    return memory.MemoryApi(memory.Cluster(kinds=KINDS))


async def test_replicas_that_are_left_to_an_autoscaler_keep_their_number(api: memory.MemoryApi) -> None:
    cluster = Cluster(api)
    await execute(cluster, [Apply(deployment(replicas=4), "asked for")])
    await execute(cluster, [Apply(deployment(), "left to an autoscaler")])
    found = await api.get(REF)
    assert found is not None
    assert found["spec"]["replicas"] == 4


async def test_what_is_there_already_is_not_sent_again(api: memory.MemoryApi) -> None:
    cluster = Cluster(api)
    for _ in range(3):
        await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
    assert len(api.writes) == 1


@pytest.mark.parametrize("namespaces", [(), ("default", "other"), ("other", "default")])
async def test_an_own_write_is_seen_at_once_in_whichever_namespace(
    api: memory.MemoryApi, namespaces: tuple[str, ...]
) -> None:
    cluster = Cluster(api, namespaces)
    await execute(cluster, [Apply(deployment(replicas=1), "asked for")])
    assert cluster.get("Deployment", "default", "web") is not None
    assert len(cluster.select("Deployment", "default", {})) == 1


async def test_a_status_that_says_nothing_new_is_not_written(api: memory.MemoryApi) -> None:
    resource = {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": SPECULATIVE_DEPLOYMENT.kind,
        "metadata": {"name": "model", "namespace": "default"},
        "spec": {},
    }
    cluster, made = Cluster(api), await api.create(resource)
    await publish(cluster, made, {"summary": "latency=wide 1.36x"})
    found = await api.get(Ref(SPECULATIVE_DEPLOYMENT, "default", "model"))
    assert found is not None
    assert found["status"] == {"summary": "latency=wide 1.36x"}
    before = len(api.writes)
    await publish(cluster, found, {"summary": "latency=wide 1.36x"})
    assert len(api.writes) == before
