"""Where servers may run and what is said when there is no room: the real scheduler decides, Paceline quotes it."""

from collections.abc import Iterator

import pytest
from tests.cluster.example import pool, small
from tests.support.kubernetes import GPU, Manifest, Namespace, condition, ended, gpus_of, kubectl, listed, says
from tests.support.queries import finished, run_of, served

PRODUCT = "nvidia.com/gpu.product"
HOST = "kubernetes.io/hostname"
OTHER = "NVIDIA-A100-SXM4-80GB"


@pytest.fixture
def relabelled(nodes: tuple[str, str]) -> Iterator[str]:
    """A node that has GPUs of another product for as long as the test takes."""
    node = nodes[1]
    (before,) = {found["metadata"]["labels"][PRODUCT] for found in listed("nodes", "--selector", PRODUCT)}
    kubectl("label", "node", node, f"{PRODUCT}={OTHER}", "--overwrite")
    yield node
    kubectl("label", "node", node, f"{PRODUCT}={before}", "--overwrite")


def test_a_node_with_another_product_gets_none(here: Namespace, hub: str, relabelled: str) -> None:
    here.apply(small("coder", hub, pools=[pool(replicas=2)]))
    run = here.wait("a run", run_of(here, "coder"), 90)
    here.wait("the verdict", finished(here, run), 90)
    here.wait("the winner to be served", served(here, "coder", "wide"), 60)
    pods = here.list("pods", "app.kubernetes.io/managed-by=paceline")
    assert {pod["metadata"]["labels"]["paceline.dev/component"] for pod in pods} == {"fetch", "server", "round"}
    assert relabelled not in {pod["spec"]["nodeName"] for pod in pods}


def test_a_server_without_room_waits_and_says_what_is_missing(
    here: Namespace, hub: str, nodes: tuple[str, str]
) -> None:
    here.wait("other stories to give their GPUs back", lambda: not any(map(holds_gpus, everywhere())), 120)
    fillers = [filler(node, free) for node in nodes if (free := free_gpus(node))]
    for pod in fillers:
        here.apply(pod)
    names = [pod["metadata"]["name"] for pod in fillers]
    here.kubectl("wait", "--for=condition=Ready", "pod", *names, "--timeout=30s")

    here.apply(small("late", hub, suspend=True))  # to be served, not measured
    here.wait("the scheduler to refuse", lambda: says(here.get("specdep", "late"), "Ready", "False", "NoCapacity"), 60)
    deployment = here.get("specdep", "late")
    ready = condition(deployment, "Ready")
    assert ready is not None
    (pod,) = here.list("pods", "paceline.dev/deployment=late,paceline.dev/component=server")
    scheduled = condition(pod, "PodScheduled")
    assert scheduled is not None
    assert scheduled["message"] in ready["message"]
    assert "2 Insufficient nvidia.com/gpu" in ready["message"]
    assert condition(deployment, "Stalled") is None

    here.kubectl("delete", "pod", names[0], "--grace-period=0", "--force")
    here.wait("the server to start", served(here, "late", "baseline"), 60)
    assert here.get("pod", pod["metadata"]["name"])["spec"]["nodeName"] == fillers[0]["spec"]["nodeSelector"][HOST]


def filler(node: str, gpus: int) -> Manifest:
    """Takes GPUs, as important as a server, so that none is taken from it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"filler-{node}"},
        "spec": {
            "nodeSelector": {HOST: node},
            "priorityClassName": "paceline-server-1",
            "containers": [
                {
                    "name": "filler",
                    "image": "localhost/paceline:dev",
                    "command": ["sleep", "infinity"],
                    "resources": {"limits": {GPU: str(gpus)}},
                }
            ],
        },
    }


def free_gpus(node: str) -> int:
    (found,) = [one for one in listed("nodes") if one["metadata"]["name"] == node]
    taken = sum(gpus_of(pod) for pod in everywhere() if pod["spec"].get("nodeName") == node and not ended(pod))
    return int(found["status"]["allocatable"][GPU]) - taken


def everywhere() -> list[Manifest]:
    return listed("pods", "--all-namespaces")


def holds_gpus(pod: Manifest) -> bool:
    return gpus_of(pod) > 0 and not ended(pod)
