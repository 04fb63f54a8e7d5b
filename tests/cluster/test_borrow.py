"""A full cluster: a pool lends a server to its run; no node holds more than it has, and no pool less than it must."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from tests.cluster.example import pool, small
from tests.cluster.test_capacity import everywhere, filler, free_gpus, holds_gpus
from tests.support.kubernetes import GPU, Manifest, Namespace, ended, gpus_of, listed, says

T = TypeVar("T")
PRODUCT = "nvidia.com/gpu.product"
BORROW = {
    "datasets": [{"name": "code", "source": "builtin://code", "requests": 6, "maxTokens": 24}],
    "capacityPolicy": "Borrow",
}
BY_HAND = {"mode": "Manual"}
"""Or the roll-out of what is promoted is a part of the story."""


def served_by_two(here: Namespace, hub: str, names: Sequence[str], crowded: bool) -> None:
    """These deployments with two servers each, on nodes that are full then; `crowded`: all of them on one node. Their
    runs begin now."""
    nodes = sorted(node["metadata"]["name"] for node in listed("nodes", "--selector", PRODUCT))
    here.wait("other stories to give their GPUs back", lambda: not any(map(holds_gpus, everywhere())), 120)
    fill(here, nodes[1:] if crowded else [])
    for name in names:
        here.apply(small(name, hub, suspend=True, promotion=BY_HAND, benchmark=BORROW, pools=[pool(replicas=2)]))
    for name in names:
        here.wait(
            f"{name} to serve", lambda name=name: says(here.get("specdep", name), "Ready", "True", "Serving"), 120
        )
    fill(here, nodes[:1] if crowded else nodes)
    for name in names:
        here.kubectl("patch", "specdep", name, "--type=merge", "-p", '{"spec":{"suspend":false}}')


def fill(here: Namespace, nodes: Sequence[str]) -> None:
    fillers = [filler(node, free) for node in nodes if (free := free_gpus(node))]
    for pod in fillers:
        here.apply(pod)
    if fillers:
        names = [pod["metadata"]["name"] for pod in fillers]
        here.kubectl("wait", "--for=condition=Ready", "pod", *names, "--timeout=30s")


def watched(here: Namespace, names: Sequence[str], look: Callable[[], T | None]) -> Callable[[], T | None]:
    """`look`, and at each look the promises: no node has more GPUs in use than it has, and each pool has a server that
    is ready."""

    def look_at_all() -> T | None:
        room = {node["metadata"]["name"]: int(node["status"]["allocatable"][GPU]) for node in listed("nodes")}
        pods = [pod for pod in everywhere() if pod["spec"].get("nodeName") and not ended(pod)]
        for node, gpus in room.items():
            assert sum(gpus_of(pod) for pod in pods if pod["spec"]["nodeName"] == node) <= gpus
        for name in names:
            servers = [pod for pod in pods if is_server(pod, here, name) and ready(pod)]
            assert servers, f"{name} has no server that is ready"
        return look()

    return look_at_all


def is_server(pod: Manifest, here: Namespace, name: str) -> bool:
    labels = pod["metadata"].get("labels") or {}
    found = (labels.get("paceline.dev/deployment"), labels.get("paceline.dev/component"))
    return found == (name, "server") and pod["metadata"]["namespace"] == here.name


def ready(pod: Manifest) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", ()))


def entry(here: Namespace, name: str) -> Manifest:
    (found,) = here.get("specdep", name)["status"]["pools"]
    return dict(found)


def decided(here: Namespace, names: Sequence[str]) -> bool:
    runs = [here.list("bench", f"paceline.dev/deployment={name}") for name in names]
    return all(found and "verdict" in found[0].get("status", {}) for found in runs)


def all_back(here: Namespace, names: Sequence[str]) -> bool:
    servers = [here.list("deploy", f"paceline.dev/deployment={name}")[0] for name in names]
    counts = [(found["spec"]["replicas"], found["status"].get("readyReplicas")) for found in servers]
    return counts == [(2, 2)] * len(names) and not any("borrowed" in entry(here, name)["internal"] for name in names)


@pytest.mark.timeout(400)
def test_a_full_cluster_lends_a_server_and_gets_it_back(here: Namespace, hub: str) -> None:
    served_by_two(here, hub, ["full"], crowded=False)
    here.wait("the loan", watched(here, ["full"], lambda: entry(here, "full")["internal"].get("borrowed") == 1), 60)
    message = here.wait("the round to measure", watched(here, ["full"], lambda: measuring(here, "full")), 60)
    assert "1 of 2 servers, one is lent to full-" in message
    here.wait("the verdict", watched(here, ["full"], lambda: decided(here, ["full"])), 120)
    here.wait("both servers", watched(here, ["full"], lambda: all_back(here, ["full"])), 60)
    (run,) = here.list("bench", "paceline.dev/deployment=full")
    assert [one.get("reason", "") for one in run["rounds"]] == ["", ""]


def measuring(here: Namespace, name: str) -> str:
    """What Ready says while a round measures."""
    found = here.get("specdep", name)
    if not says(found, "Measuring", "True", "Measuring"):
        return ""
    assert says(found, "Ready", "True", "Serving")
    return str(next(one["message"] for one in found["status"]["conditions"] if one["type"] == "Ready"))
