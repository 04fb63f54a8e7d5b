"""Faults of a simulated cluster: pods that are refused or held back, and what Kubernetes reports of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core.manifest import Manifest
from paceline.core.names import COMPONENT_LABEL
from paceline.plan.simulation.cluster import Cluster
from paceline.plan.simulation.scheduler import is_round
from paceline.plan.step import Object, timestamp

GATE = {"name": "kueue.x-k8s.io/admission"}


@dataclass(kw_only=True)
class Faults:
    """While the cluster is `queued`, a queue holds the pods of rounds back by a scheduling gate."""

    queued: bool = False
    refuses: dict[str, str] = field(default_factory=dict)
    """Component (server, fetch, round) → why admission refuses its pods."""
    events: dict[str, str] = field(default_factory=dict)
    """uid → the message of the object's last Event."""
    conditions: list[Mapping[str, Any]] = field(default_factory=list)
    """Conditions of every Deployment beside its ReplicaFailure."""
    _refused_since: dict[str, str] = field(default_factory=dict)

    def admit(self, owner: Object, pod: Manifest) -> Manifest | None:
        """Admission of a pod: refused, held back by a gate, or as it is."""
        name, why = pod["metadata"]["name"], self.refuses.get(pod["metadata"]["labels"][COMPONENT_LABEL])
        if why:
            message = f'Error creating: pods "{name}-x7k2p" is forbidden: {why}'
            if owner["kind"] == "LeaderWorkerSet":  # reported of its StatefulSet
                group = name[:-2]
                message = f'create Pod {name} in StatefulSet {group} failed error: pods "{name}" is forbidden: {why}'
            self.events[owner["metadata"]["uid"]] = message
            return None
        if self.queued and is_round(pod):
            return {**pod, "spec": {**pod["spec"], "schedulingGates": [GATE]}}
        return pod

    def open_gates(self, cluster: Cluster) -> None:
        """Of all pods, once nothing is queued any more."""
        if not self.queued:
            for pod in cluster.of("Pod"):
                pod["spec"].pop("schedulingGates", None)

    def report(self, cluster: Cluster) -> None:
        """A Deployment repeats the refusals of its ReplicaSet as a condition; a LeaderWorkerSet does not."""
        for servers in cluster.of("Deployment"):
            uid, why = servers["metadata"]["uid"], self.refuses.get("server")
            if not why or servers["status"]["updatedReplicas"] >= servers["spec"]["replicas"]:
                self._refused_since.pop(uid, None)
                servers["status"] |= {"conditions": self.conditions} if self.conditions else {}
                continue
            failure = {
                "type": "ReplicaFailure",
                "status": "True",
                "reason": "FailedCreate",
                "message": f'pods "{servers["metadata"]["name"]}-x7k2p" is forbidden: {why}',
                "lastTransitionTime": self._refused_since.setdefault(uid, timestamp(cluster.now)),
            }
            servers["status"]["conditions"] = [failure]
