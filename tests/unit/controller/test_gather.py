"""What is read for a run, from an API server in memory that one suite holds to the real one (tests/conformance)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.fault import memory
from tests.wrong.edits import example_run

from paceline.controller.cluster import Cluster, Key
from paceline.controller.gather import gather_run
from paceline.controller.kinds import KINDS
from paceline.core.names import MANAGED_BY, RUN_LABEL
from paceline.kube import Manifest
from paceline.render import Settings

KEY = Key("benchmarkruns", "models", "mine")
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


async def ended_round(api: memory.MemoryApi, cluster: Cluster) -> None:
    for namespace in ("models", "others"):
        await api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    manifest = example_run()
    manifest["metadata"] |= {"name": "mine", "namespace": "models"}
    run = await api.create(manifest)
    job: dict[str, Any] = owned("Job", "batch/v1", run) | {"spec": {"template": {"spec": {"containers": []}}}}
    job = await api.create(job)
    cluster.saw(job | {"status": {"conditions": [{"type": "Complete", "status": "True"}]}})
    await api.create(owned("Pod", "v1", job) | {"spec": {"nodeName": "gpu-0", "containers": []}})
    await api.create(pod("served", "models", "gpu-0", "4"))
    await api.create(pod("training", "others", "gpu-0", "2"))
    await api.create(pod("elsewhere", "others", "gpu-1", "2"))


@pytest.mark.parametrize(
    ("namespaces", "seen"),
    [((), ("models/served (4)", "others/training (2)")), (("models",), ("models/served (4)",))],
)
async def test_who_else_was_on_the_node_of_a_round_that_has_ended(
    namespaces: tuple[str, ...], seen: tuple[str, ...]
) -> None:
    api = memory.MemoryApi(memory.Cluster(kinds=KINDS))
    cluster = Cluster(api, namespaces)
    await ended_round(api, cluster)
    found = await gather_run(cluster, KEY, Settings(image="paceline"), datetime.now(UTC))
    assert found is not None
    (one,) = found.rounds
    assert one.neighbours == seen
