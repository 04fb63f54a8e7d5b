"""Places a simulated cluster's pods: on their preferred node, else on the emptiest one with room."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.core.manifest import Manifest, Object
from paceline.core.names import COMPONENT_LABEL
from paceline.plan.simulation.cluster import Cluster, Handle
from paceline.plan.step import timestamp
from paceline.plan.trouble import UNALLOCATED
from paceline.render.devices import RESOURCE_CLAIM_TEMPLATE as CLAIM_TEMPLATE

ALIVE = ("Pending", "Running")
GATED = "Scheduling is blocked due to non-empty scheduling gates"
"""kube-scheduler's message for a pod held back by a queue such as Kueue."""


def schedule_pods(cluster: Cluster) -> bool:
    """Place every pod without a node, servers first: they have the higher priority. False if nothing changed."""
    waiting = [pod for pod in cluster.of("Pod") if "nodeName" not in pod["spec"]]
    changes = [_place(cluster, pod) for pod in sorted(waiting, key=is_round)]
    return any(changes)


def accelerators(pod: Object, objects: Mapping[Handle, Object]) -> int:
    """Number of accelerators: limits on extended resources, whose names have a domain, and devices claimed by a
    template in `objects`; `pod` is a pod or its template."""
    return sum(_limits(pod).values()) + sum(_claimed(pod, objects))


def _claimed(pod: Object, objects: Mapping[Handle, Object]) -> Iterator[int]:
    for claim in pod["spec"].get("resourceClaims", ()):
        template = objects.get((CLAIM_TEMPLATE, claim.get("resourceClaimTemplateName", "")))
        for request in template["spec"]["spec"]["devices"]["requests"] if template else ():
            yield request["exactly"]["count"]


def _lacking(pod: Object) -> str:
    """kube-scheduler's message about the pod's limits or claims."""
    return next((f"Insufficient {name}" for name in _limits(pod)), UNALLOCATED)


def _limits(pod: Object) -> dict[str, int]:
    """The containers of a round's pod run one after another, and hold the same devices."""
    containers = (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
    limits = [container.get("resources", {}).get("limits", {}) for container in containers]
    return {name: int(count) for limit in limits for name, count in limit.items() if "/" in name}


def is_round(pod: Object) -> bool:
    return bool((pod["metadata"].get("labels") or {}).get(COMPONENT_LABEL) == "round")


def free(cluster: Cluster, node: str) -> float:
    return cluster.nodes[node] - sum(accelerators(pod, cluster.objects) for pod in _pods_on(cluster, node))


def _place(cluster: Cluster, pod: Manifest) -> bool:
    if pod["spec"].get("schedulingGates"):
        return _report(pod, {"status": "False", "reason": "SchedulingGated", "message": GATED})
    fitting = [node for node in cluster.nodes if _fits(cluster, pod, node)]
    if fitting:
        pod["spec"]["nodeName"] = max(fitting, key=lambda node: (_preference(pod, node), free(cluster, node)))
        return _report(pod, {"status": "True", "lastTransitionTime": timestamp(cluster.now)})
    return _report(pod, {"status": "False", "message": _why(cluster, pod), **_since(cluster, pod), **cluster.unplaced})


def _why(cluster: Cluster, pod: Object) -> str:
    """kube-scheduler's message: the first obstacle of each node, resources before affinity."""
    full = sum(accelerators(pod, cluster.objects) > free(cluster, node) for node in cluster.nodes)
    crowded = len(cluster.nodes) - full
    obstacles = [
        *([f"{full} {_lacking(pod)}"] if full or not crowded else []),
        *([f"{crowded} node(s) didn't match pod anti-affinity rules"] if crowded else []),
    ]
    return f"0/{len(cluster.nodes)} nodes are available: {', '.join(obstacles)}."


def _since(cluster: Cluster, pod: Object) -> Mapping[str, str]:
    """The time of the condition's last change, which stays while the pod waits."""
    before = [c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled" and c["status"] == "False"]
    return {"lastTransitionTime": before[0].get("lastTransitionTime", "") if before else timestamp(cluster.now)}


def _report(pod: Manifest, scheduled: Mapping[str, Any]) -> bool:
    """Set the pod's condition PodScheduled. False if it is unchanged."""
    before = pod["status"].get("conditions")
    pod["status"]["conditions"] = [{"type": "PodScheduled", **scheduled}]
    return bool(pod["status"]["conditions"] != before)


def _fits(cluster: Cluster, pod: Object, node: str) -> bool:
    alone = cluster.one_round_per_node and is_round(pod)
    crowded = alone and any(map(is_round, _pods_on(cluster, node)))
    return not crowded and _required(pod, node) and accelerators(pod, cluster.objects) <= free(cluster, node)


def _required(pod: Object, node: str) -> bool:
    """Whether the node meets one of the terms that the pod's node affinity requires."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ())
    fields = [term.get("matchFields", ()) for term in terms]
    return not terms or any(all(_meets(field, node) for field in each) for each in fields)


def _meets(field: Mapping[str, Any], node: str) -> bool:
    return (node in field["values"]) is (field["operator"] == "In")


def _pods_on(cluster: Cluster, node: str) -> list[Manifest]:
    pods = cluster.of("Pod")
    return [pod for pod in pods if pod["spec"].get("nodeName") == node and pod["status"]["phase"] in ALIVE]


def _preference(pod: Object, node: str) -> int:
    """The sum of the weights of the pod's preferred node affinities that this node meets."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return sum(
        term["weight"]
        for term in affinity.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        if all(_meets(field, node) for field in term["preference"]["matchFields"])
    )
