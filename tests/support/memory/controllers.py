"""The rest of Kubernetes, small: garbage collection, Deployments, Jobs, a scheduler that counts GPUs, and kubelets."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.support.containers import containers, statuses
from tests.support.memory.cluster import Cluster

from paceline.kube import Manifest, Ref, ref_of
from paceline.kube.resources import CLAIM, DEPLOYMENT, JOB, NODE, POD

TEMPLATE_LABEL = "pod-template-hash"
JOB_LABEL = "batch.kubernetes.io/job-name"


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ends, and what it has written. The kubelet keeps 4096 bytes of the message."""

    code: int = 0
    message: str = ""
    log: str = ""


@dataclass(slots=True, kw_only=True)
class Controllers:
    """One `step()` lets every controller act once; `settle()` repeats that until nothing changes.

    Pods of a Deployment are ready when `ready(pod)`; a Job's pod runs until `finish(pod)` says how its containers end
    (by name; one that is not named ends with 0). Without Node objects everything fits on `node-0`; with them, a pod
    needs a node whose labels match its nodeSelector and that has enough of `gpu` left.
    """

    cluster: Cluster
    ready: Callable[[Manifest], bool] = lambda pod: True
    finish: Callable[[Manifest], Mapping[str, Exit] | None] = lambda pod: {}
    gpu: str = "nvidia.com/gpu"
    started: dict[str, datetime] = field(default_factory=dict)
    """When each pod's containers started, by uid."""

    def settle(self, rounds: int = 50) -> None:
        for _ in range(rounds):
            if not self.step():
                return
        raise AssertionError("the cluster does not come to rest")

    def step(self) -> bool:
        """Whether anything changed."""
        version = self.cluster.version
        self._collect_garbage()
        self._bind_claims()
        self._deployments()
        self._jobs()
        self._schedule()
        self._run_pods()
        return self.cluster.version != version

    def add_node(self, name: str, gpus: int, labels: Mapping[str, str] | None = None) -> None:
        """A node with that many GPUs."""
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
        self.cluster.set_status(self.cluster.create(node), {"allocatable": {self.gpu: str(gpus)}})

    # Each below is one controller: it reads everything and does what is missing.

    def _collect_garbage(self) -> None:
        """Delete what has owners, all of them gone; take those that are gone from what has others; finish foreground
        deletions."""
        everything = [ref for resource in self.cluster.kinds.values() for ref in self._refs(resource)]
        uids = {self._get(ref)["metadata"]["uid"]: ref for ref in everything}
        owned: dict[str, list[Ref]] = {}
        for ref in everything:
            for owner in self._get(ref)["metadata"].get("ownerReferences", ()):
                owned.setdefault(owner["uid"], []).append(ref)
        for ref in everything:
            manifest = self.cluster.get(ref)
            if manifest is None:
                continue
            metadata = manifest["metadata"]
            owners = metadata.get("ownerReferences", ())
            there = [owner for owner in owners if owner["uid"] in uids]
            if owners and not there and "deletionTimestamp" not in metadata:
                self.cluster.delete(ref)
            elif len(there) < len(owners):
                metadata["ownerReferences"] = there
                self.cluster.update(manifest, manager="cluster")
            if "foregroundDeletion" in metadata.get("finalizers", ()):
                left = [child for child in owned.get(metadata["uid"], ()) if self.cluster.get(child)]
                for child in left:
                    self.cluster.delete(child)
                if not left:
                    metadata["finalizers"].remove("foregroundDeletion")
                    self.cluster.update(manifest, manager="cluster")

    def _bind_claims(self) -> None:
        for claim in self._all(CLAIM):
            if "status" not in claim:
                self.cluster.set_status(claim, {"phase": "Bound"})

    def _deployments(self) -> None:
        for deployment in self._all(DEPLOYMENT):
            metadata, spec = deployment["metadata"], deployment["spec"]
            if "deletionTimestamp" in metadata:
                continue
            digest = hashlib.sha256(json.dumps(spec["template"], sort_keys=True).encode()).hexdigest()[:10]
            pods = self._owned(POD, metadata["uid"])
            old = [pod for pod in pods if pod["metadata"]["labels"][TEMPLATE_LABEL] != digest]
            current = [pod for pod in pods if pod not in old]
            more = spec.get("strategy", {}).get("rollingUpdate", {}).get("maxSurge", 0)
            gone = current[spec["replicas"] :] + (_surged(old, current, spec["replicas"]) if more else old)
            for pod in gone:
                self.cluster.delete(ref_of(pod, self.cluster.kinds))
            free = [n for n in range(spec["replicas"]) if f"{metadata['name']}-{digest}-{n}" not in map(_name, current)]
            for n in free[: max(0, spec["replicas"] + more - len(pods) + len(gone))]:
                self._create_pod(deployment, f"{metadata['name']}-{digest}-{n}", {TEMPLATE_LABEL: digest})
            pods = self._owned(POD, metadata["uid"])
            ready = sum(_condition(pod, "Ready") == "True" for pod in pods)
            updated = sum(pod["metadata"]["labels"][TEMPLATE_LABEL] == digest for pod in pods)
            enough = ready >= spec["replicas"] and updated == len(pods)
            counts = {"replicas": len(pods), "updatedReplicas": updated}
            counts |= {"readyReplicas": ready, "availableReplicas": ready} if ready else {}
            available = _mark(
                deployment,
                "Available",
                enough,
                "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
                self._time(),
            )
            progressing = _mark(
                deployment,
                "Progressing",
                True,
                "NewReplicaSetAvailable" if enough else "ReplicaSetUpdated",
                self._time(),
            )
            seen = {"observedGeneration": metadata["generation"], "conditions": [available, progressing]}
            self.cluster.set_status(deployment, counts | seen)

    def _jobs(self) -> None:
        for job in self._all(JOB):
            metadata, status = job["metadata"], job.get("status", {})
            over = "True" in (_condition(job, "Complete"), _condition(job, "Failed"))
            if over or "deletionTimestamp" in metadata:
                continue
            if job["spec"].get("suspend"):
                for pod in self._owned(POD, metadata["uid"]):
                    self.cluster.delete(ref_of(pod, self.cluster.kinds))
                continue
            pods = self._owned(POD, metadata["uid"])
            if not pods:
                label = {JOB_LABEL: metadata["name"], "batch.kubernetes.io/controller-uid": metadata["uid"]}
                pods = [self._create_pod(job, f"{metadata['name']}-0", label)]
            phase = pods[0].get("status", {}).get("phase", "Pending")
            status = {"startTime": self._time(), **status}
            if phase == "Succeeded":
                done = _mark(job, "Complete", True, "CompletionsReached", self._time())
                status |= {"succeeded": 1, "conditions": [done], "completionTime": self._time()}
            elif phase == "Failed":
                done = _mark(job, "Failed", True, "BackoffLimitExceeded", self._time())
                status |= {"failed": 1, "conditions": [done]}
            else:
                status["active"] = 1
            if phase in ("Succeeded", "Failed"):
                status.pop("active", None)
            self.cluster.set_status(job, status)

    def _schedule(self) -> None:
        nodes = self._all(NODE)
        pods = self._all(POD)
        for pod in pods:
            if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
                continue
            fitting = [_name(node) for node in nodes if self._fits(pod, node)] if nodes else ["node-0"]
            node = max(fitting, key=lambda name: _liking(pod, name), default=None)
            if node is not None:
                bound = self.cluster.update(pod | {"spec": pod["spec"] | {"nodeName": node}}, manager="cluster")
                placed = _mark(pod, "PodScheduled", True, "", self._time())
                self.cluster.set_status(bound, {"phase": "Pending", "conditions": [placed]})
            else:
                why = f"0/{len(nodes)} nodes are available: {len(nodes)} Insufficient {self.gpu}."
                waiting = _mark(pod, "PodScheduled", False, "Unschedulable", self._time()) | {"message": why}
                self.cluster.set_status(pod, {"phase": "Pending", "conditions": [waiting]})

    def _fits(self, pod: Manifest, node: Manifest) -> bool:
        labels = node["metadata"].get("labels", {})
        if any(labels.get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
            return False
        there = [other for other in self._all(POD) if other["spec"].get("nodeName") == _name(node)]
        running = [other for other in there if other.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
        used = sum(self._gpus(other) for other in running)
        return used + self._gpus(pod) <= int(node["status"]["allocatable"].get(self.gpu, 0))

    def _gpus(self, pod: Manifest) -> int:
        """Of one after another, and of others side by side."""
        each = [int(c.get("resources", {}).get("limits", {}).get(self.gpu, 0)) for c in containers(pod)]
        beside = len(pod["spec"]["containers"])
        return max(sum(each[-beside:]), *each[:-beside], 0)

    def _run_pods(self) -> None:
        for pod in self._all(POD):
            status = dict(pod.get("status", {}))
            if not pod["spec"].get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
                continue
            started = self.started.setdefault(pod["metadata"]["uid"], self.cluster.now())
            status |= {"phase": "Running", "startTime": _text(started)}
            is_job = JOB_LABEL in pod["metadata"].get("labels", {})
            ends = self.finish(pod) if is_job else None
            if ends is None:
                marks = [_mark(pod, kind, self.ready(pod), "", self._time()) for kind in ("Ready", "ContainersReady")]
                states: dict[str, Any] = {
                    c["name"]: {"running": {"startedAt": _text(started)}} for c in containers(pod)
                }
            else:
                exits = {c["name"]: ends.get(c["name"], Exit()) for c in containers(pod)}
                written = "".join(end.log for end in exits.values())
                self.cluster.logs[pod["metadata"]["namespace"], pod["metadata"]["name"]] = written
                status["phase"] = "Failed" if any(end.code for end in exits.values()) else "Succeeded"
                marks = [_mark(pod, kind, False, "PodCompleted", self._time()) for kind in ("Ready", "ContainersReady")]
                states = {name: {"terminated": self._terminated(end, started)} for name, end in exits.items()}
            scheduled = [mark for mark in status.get("conditions", ()) if mark["type"] == "PodScheduled"]
            status["conditions"] = [*scheduled, *marks]
            status |= statuses(pod, (self._container(pod, name, state) for name, state in states.items()))
            self.cluster.set_status(pod, status)

    def _terminated(self, end: Exit, started: datetime) -> Mapping[str, Any]:
        return {
            "exitCode": end.code,
            "reason": "Error" if end.code else "Completed",
            "message": end.message.encode()[:4096].decode(errors="ignore"),
            "startedAt": _text(started),
            "finishedAt": self._time(),
        }

    def _container(self, pod: Manifest, name: str, state: Mapping[str, Any]) -> Mapping[str, Any]:
        image = next(c.get("image", "") for c in containers(pod) if c["name"] == name)
        digest = hashlib.sha256(image.encode()).hexdigest()
        ready = "running" in state and self.ready(pod)
        return {"name": name, "image": image, "imageID": f"{image}@sha256:{digest}", "ready": ready, "state": state}

    def _create_pod(self, owner: Manifest, name: str, labels: Mapping[str, str]) -> Manifest:
        template = owner["spec"]["template"]
        metadata = template.get("metadata", {})
        ref = {key: owner[key] for key in ("apiVersion", "kind")}
        ref |= {"name": _name(owner), "uid": owner["metadata"]["uid"], "controller": True}
        return self.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **metadata,
                    "name": name,
                    "namespace": owner["metadata"]["namespace"],
                    "labels": {**metadata.get("labels", {}), **labels},
                    "ownerReferences": [ref],
                },
                "spec": template["spec"],
            },
            manager="cluster",
        )

    def _all(self, resource: Any) -> list[Manifest]:
        return self.cluster.peek(resource)

    def _refs(self, resource: Any) -> list[Ref]:
        return [ref_of(manifest, self.cluster.kinds) for manifest in self._all(resource)]

    def _get(self, ref: Ref) -> Manifest:
        found = self.cluster.get(ref)
        assert found is not None
        return found

    def _owned(self, resource: Any, uid: str) -> list[Manifest]:
        def is_owned(manifest: Manifest) -> bool:
            return any(owner["uid"] == uid for owner in manifest["metadata"].get("ownerReferences", ()))

        return [manifest for manifest in self._all(resource) if is_owned(manifest)]

    def _time(self) -> str:
        return _text(self.cluster.now())


def _liking(pod: Manifest, node: str) -> int:
    """The weights of what a pod would like and this node has, by its name: nobody here asks for anything else."""
    wanted = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = wanted.get("preferredDuringSchedulingIgnoredDuringExecution", ())
    return sum(term["weight"] for term in terms if _is_as(node, term["preference"].get("matchFields", ())))


def _is_as(node: str, fields: Sequence[Manifest]) -> bool:
    return all((node in field["values"]) is (field["operator"] == "In") for field in fields)


def _text(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def _surged(old: list[Manifest], current: list[Manifest], replicas: int) -> list[Manifest]:
    """The old pods that go while there may be one more than `replicas`, of which so many stay ready (Kubernetes,
    pkg/controller/deployment/rolling.go)."""
    ready = sum(_condition(pod, "Ready") == "True" for pod in old + current)
    starting = sum(_condition(pod, "Ready") != "True" for pod in current)
    spare = max(0, len(old) + len(current) - replicas - starting)
    broken = [pod for pod in old if _condition(pod, "Ready") != "True"][:spare]
    serving = [pod for pod in old if pod not in broken]
    return broken + serving[: max(0, min(spare - len(broken), ready - replicas))]


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _condition(manifest: Manifest, kind: str) -> str | None:
    conditions = manifest.get("status", {}).get("conditions", ())
    return next((mark["status"] for mark in conditions if mark["type"] == kind), None)


def _mark(manifest: Manifest, kind: str, value: bool, reason: str, time: str) -> dict[str, Any]:
    """A condition; its transition time is that of the last change."""
    old = next((m for m in manifest.get("status", {}).get("conditions", ()) if m["type"] == kind), None)
    since = old["lastTransitionTime"] if old and old["status"] == str(value) else time
    return {"type": kind, "status": str(value), "reason": reason, "lastTransitionTime": since}
