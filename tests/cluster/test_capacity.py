"""What is said when there is no room: the real scheduler decides, Paceline quotes it."""

from tests.cluster.example import small
from tests.support.kubernetes import GPU, Manifest, Namespace, condition, ended, gpus_of, listed, says
from tests.support.queries import served

HOST = "kubernetes.io/hostname"


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
