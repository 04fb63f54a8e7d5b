"""The objects of a story's cluster, and what Kubernetes does to them by itself: pods are made, placed and removed."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from paceline.core.names import COMPONENT_LABEL
from paceline.kube.difference import needs_apply, stamped
from paceline.plan.objects import condition, finished
from paceline.plan.step import timestamp
from paceline.render.serving import REVISION_LABEL

Object = dict[str, Any]
Key = tuple[str, str]
"""Kind and name: a story has one namespace."""

GPU = "nvidia.com/gpu"


@dataclass
class Cluster:
    """Objects as an API server would keep them; `nodes` is how many GPUs each has. While it is `queued`, a queue holds
    the pods of rounds back by a scheduling gate."""

    now: datetime
    nodes: Mapping[str, int]
    objects: dict[Key, Object] = field(default_factory=dict)
    made: int = 0
    queued: bool = False
    refuses: dict[str, str] = field(default_factory=dict)
    """Component (server, fetch, round) → why nobody may make its pods."""
    events: dict[str, str] = field(default_factory=dict)
    """By uid the last that Events say of an object."""
    conditions: list[Object] = field(default_factory=list)
    """That Deployments show beside what they say of refused pods."""
    unplaced: Object = field(default_factory=dict)
    """What the scheduler says of a pod that fits nowhere, in place of its own words."""

    def of(self, kind: str, **labels: str) -> list[Object]:
        """Objects of a kind whose labels have these values; `pool` stands for paceline.dev/pool."""
        wanted = {f"paceline.dev/{key}": value for key, value in labels.items()}
        return [
            found
            for (there, _), found in self.objects.items()
            if there == kind and wanted.items() <= found["metadata"].get("labels", {}).items()
        ]

    def apply(self, manifest: Mapping[str, Any]) -> bool:
        """Server-side apply by the one who owns all of the object. False if nothing changed."""
        wanted = stamped(deepcopy(dict(manifest)))
        key = (wanted["kind"], wanted["metadata"]["name"])
        there = self.objects.get(key)
        if there is None:
            self.made += 1
            wanted["metadata"] |= {"uid": f"uid-{self.made}", "generation": 1, "creationTimestamp": timestamp(self.now)}
            if wanted["kind"] in ("Deployment", "LeaderWorkerSet"):
                wanted["spec"].setdefault("replicas", 1)
            self.objects[key] = wanted
            return True
        if not needs_apply(there, wanted):
            return False
        if wanted["kind"] in ("Deployment", "LeaderWorkerSet"):  # the shell hands the number over
            wanted["spec"].setdefault("replicas", there["spec"]["replicas"])
            wanted["spec"] |= {"paused": True} if there["spec"].get("paused") else {}  # a person's field
        kept = {name: there["metadata"][name] for name in ("uid", "generation", "creationTimestamp")}
        if json.dumps(there.get("spec"), sort_keys=True) != json.dumps(wanted.get("spec"), sort_keys=True):
            kept["generation"] += 1
        wanted["metadata"] |= kept
        self.objects[key] = wanted | ({"status": there["status"]} if "status" in there else {})
        return True

    def delete(self, kind: str, name: str) -> None:
        """The object, and in the background all that it owns."""
        gone = self.objects.pop((kind, name))
        for key, found in list(self.objects.items()):
            owners = {owner["uid"] for owner in found["metadata"].get("ownerReferences", ())}
            if gone["metadata"]["uid"] in owners and key in self.objects:
                self.delete(*key)

    def owned(self, kind: str, owner: Object) -> list[Object]:
        uid = owner["metadata"]["uid"]
        return [
            found
            for found in self.of(kind)
            if any(reference["uid"] == uid for reference in found["metadata"].get("ownerReferences", ()))
        ]

    def turn(self) -> None:
        """What the built-in controllers and the scheduler do next."""
        for job in self.of("Job"):
            if not finished(job) and not job["spec"].get("suspend") and not self.owned("Pod", job):
                self._pod(job, f"{job['metadata']['name']}-pod", job["spec"]["template"])
        for servers in (*self.of("Deployment"), *self.of("LeaderWorkerSet")):
            self._replace(servers)
        for pod in self.of("Pod"):
            if "nodeName" not in pod["spec"]:
                self._place(pod)
            if is_round(pod) and "nodeName" in pod["spec"] and pod["status"].keys() <= {"phase", "conditions"}:
                self._start(pod)
        for servers in (*self.of("Deployment"), *self.of("LeaderWorkerSet")):
            groups = self._groups(servers)
            servers["status"] = {
                "observedGeneration": servers["metadata"]["generation"],
                "replicas": len(groups),
                "updatedReplicas": len(
                    [pods for pods in groups if set(map(revision, pods)) == {_revision_of(servers)}]
                ),
                "readyReplicas": len([pods for pods in groups if {pod["status"]["phase"] for pod in pods} == {RUNS}]),
                **self._refusal(servers, len(groups)),
            }

    def _refusal(self, servers: Object, made: int) -> Object:
        """A Deployment tells the one of its ReplicaSet; since when, it goes on saying. A LeaderWorkerSet tells none."""
        why = self.refuses.get("server") if servers["kind"] == "Deployment" else None
        if not why or made >= servers["spec"]["replicas"]:
            return {"conditions": self.conditions} if self.conditions else {}
        said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
        before = condition(servers, "ReplicaFailure") or {"lastTransitionTime": timestamp(self.now)}
        message = f'pods "{servers["metadata"]["name"]}-x7k2p" is forbidden: {why}'
        return {"conditions": [{**said, "message": message, "lastTransitionTime": before["lastTransitionTime"]}]}

    def _replace(self, servers: Object) -> None:
        """No surge: a pod of another template goes before its successor comes; none does while it is paused."""
        if servers["spec"].get("paused"):
            return
        wanted = dict(_pods_of(servers))
        for pod in self.owned("Pod", servers):
            name = pod["metadata"]["name"]
            if name not in wanted or revision(pod) != revision(wanted[name]):
                self.delete("Pod", name)
        there = {pod["metadata"]["name"] for pod in self.owned("Pod", servers)}
        for name, template in wanted.items():
            if name not in there:
                self._pod(servers, name, template)

    def _groups(self, servers: Object) -> list[list[Object]]:
        """The pods of each replica: one of a Deployment, leader and workers of a LeaderWorkerSet."""
        found: dict[str, list[Object]] = {}
        start = len(servers["metadata"]["name"]) + 1
        for pod in self.owned("Pod", servers):
            found.setdefault(pod["metadata"]["name"][start:].split("-")[0], []).append(pod)
        return list(found.values())

    def _pod(self, owner: Object, name: str, template: Object) -> None:
        reference = {"kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        labels = dict(template["metadata"]["labels"])
        if why := self.refuses.get(labels[COMPONENT_LABEL]):
            said = f'Error creating: pods "{name}-x7k2p" is forbidden: {why}'
            if owner["kind"] == "LeaderWorkerSet":  # said of its StatefulSet
                said = f'create Pod {name} in StatefulSet {name[:-2]} failed error: pods "{name}" is forbidden: {why}'
            self.events[owner["metadata"]["uid"]] = said
            return
        if owner["kind"] == "Job":
            labels["batch.kubernetes.io/job-name"] = owner["metadata"]["name"]
        self.apply(
            {
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels, "ownerReferences": [reference]},
                "spec": template["spec"],
            }
        )
        self.objects["Pod", name]["status"] = {"phase": "Pending"}

    def _place(self, pod: Object) -> None:
        if self.queued and is_round(pod):
            gated = {"reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates"}
            pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", **gated}]
            return
        fitting = [node for node in self.nodes if self._fits(pod, node)]
        if fitting:
            pod["spec"]["nodeName"] = max(fitting, key=lambda node: (_liking(pod, node), self._free(node)))
            now = timestamp(self.now)
            pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": now}]
        else:
            message = f"0/{len(self.nodes)} nodes are available: {len(self.nodes)} Insufficient {GPU}."
            said = {"type": "PodScheduled", "status": "False", "message": message}
            pod["status"]["conditions"] = [{**said, **self.unplaced}]

    def _start(self, pod: Object) -> None:
        running = {"running": {"startedAt": timestamp(self.now)}}
        names = [container["name"] for container in pod["spec"]["containers"]]
        pod["status"]["phase"] = RUNS
        pod["status"]["containerStatuses"] = [{"name": name, "state": running} for name in names]

    def _fits(self, pod: Object, node: str) -> bool:
        crowded = is_round(pod) and any(map(is_round, self._on(node)))
        return not crowded and gpus(pod) <= self._free(node)

    def _on(self, node: str) -> list[Object]:
        return [
            pod for pod in self.of("Pod") if pod["spec"].get("nodeName") == node and pod["status"]["phase"] in ALIVE
        ]

    def _free(self, node: str) -> int:
        return self.nodes[node] - sum(map(gpus, self._on(node)))


RUNS = "Running"
ALIVE = ("Pending", "Running")


def _pods_of(servers: Object) -> Iterator[tuple[str, Object]]:
    """Names and templates of the pods that are to be."""
    name, spec = servers["metadata"]["name"], servers["spec"]
    for number in range(spec["replicas"]):
        if servers["kind"] == "Deployment":
            yield f"{name}-{number}", spec["template"]
            continue
        group = spec["leaderWorkerTemplate"]
        yield f"{name}-{number}", group["leaderTemplate"]
        for worker in range(1, group["size"]):
            yield f"{name}-{number}-{worker}", group["workerTemplate"]


def _revision_of(servers: Object) -> str:
    return next((revision(template) for _, template in _pods_of(servers)), "")


def is_round(pod: Object) -> bool:
    return bool(pod["metadata"]["labels"].get(COMPONENT_LABEL) == "round")


def revision(found: Object) -> str:
    return str(found["metadata"]["labels"].get(REVISION_LABEL, ""))


def gpus(pod: Object) -> int:
    return sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in pod["spec"]["containers"])


def _liking(pod: Object, node: str) -> int:
    """The weights of what the pod would like and this node has."""
    wanted = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return sum(
        term["weight"]
        for term in wanted.get("preferredDuringSchedulingIgnoredDuringExecution", ())
        if all((node in one["values"]) is (one["operator"] == "In") for one in term["preference"]["matchFields"])
    )
