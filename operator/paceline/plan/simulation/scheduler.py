"""Where a simulated cluster's pods go: to the node they prefer, else to the emptiest that has room for them."""

from collections.abc import Mapping
from typing import Any

from paceline.core.names import COMPONENT_LABEL
from paceline.plan.objects import Object
from paceline.plan.simulation.cluster import Cluster
from paceline.plan.step import Manifest, timestamp

RESOURCE = "nvidia.com/gpu"
"""Named in the scheduler's message, as most clusters have it."""
ALIVE = ("Pending", "Running")
GATED = "Scheduling is blocked due to non-empty scheduling gates"
"""kube-scheduler's message of a pod that a queue such as Kueue holds back."""


def place(cluster: Cluster) -> bool:
    """Every pod without a node, servers first: they have the higher priority. False if nothing changed."""
    waiting = [pod for pod in cluster.of("Pod") if "nodeName" not in pod["spec"]]
    changes = [_place(cluster, pod) for pod in sorted(waiting, key=is_round)]
    return any(changes)


def accelerators(pod: Object) -> int:
    """Limits on extended resources, whose names have a domain; `pod` is a pod or its template."""
    limits = [container.get("resources", {}).get("limits", {}) for container in pod["spec"]["containers"]]
    return sum(int(count) for limit in limits for name, count in limit.items() if "/" in name)


def is_round(pod: Object) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(COMPONENT_LABEL) == "round")


def free(cluster: Cluster, node: str) -> float:
    return cluster.nodes[node] - sum(map(accelerators, _pods_on(cluster, node)))


def _place(cluster: Cluster, pod: Manifest) -> bool:
    if pod["spec"].get("schedulingGates"):
        return _report(pod, {"status": "False", "reason": "SchedulingGated", "message": GATED})
    fitting = [node for node in cluster.nodes if _fits(cluster, pod, node)]
    if fitting:
        pod["spec"]["nodeName"] = max(fitting, key=lambda node: (_preference(pod, node), free(cluster, node)))
        return _report(pod, {"status": "True", "lastTransitionTime": timestamp(cluster.now)})
    count = len(cluster.nodes)
    message = f"0/{count} nodes are available: {count} Insufficient {RESOURCE}."
    return _report(pod, {"status": "False", "message": message, **cluster.unplaced})


def _report(pod: Manifest, scheduled: Mapping[str, Any]) -> bool:
    """Set the pod's condition PodScheduled. False if it was the same before."""
    before = pod["status"].get("conditions")
    pod["status"]["conditions"] = [{"type": "PodScheduled", **scheduled}]
    return bool(pod["status"]["conditions"] != before)


def _fits(cluster: Cluster, pod: Object, node: str) -> bool:
    alone = cluster.one_round_per_node and is_round(pod)
    crowded = alone and any(map(is_round, _pods_on(cluster, node)))
    return not crowded and accelerators(pod) <= free(cluster, node)


def _pods_on(cluster: Cluster, node: str) -> list[Manifest]:
    pods = cluster.of("Pod")
    return [pod for pod in pods if pod["spec"].get("nodeName") == node and pod["status"]["phase"] in ALIVE]


def _preference(pod: Object, node: str) -> int:
    """The sum of the weights of the pod's preferred node affinities that this node meets."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return sum(
        term["weight"]
        for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        if all((node in field["values"]) is (field["operator"] == "In") for field in term["preference"]["matchFields"])
    )
