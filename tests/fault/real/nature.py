"""What a cluster does by itself, in many namespaces of a real API server: controller manager, scheduler and kubelets.

The same as tests/support/memory/controllers.py, in real time: a prefetch and a round end after some tenths of a second.
Each namespace has nodes of its own, of which a server or a round fills one. A namespace is looked at anew when the
watch has told all that was written there: nothing is decided on what is known to be old.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.fault.nature import TRUTHS, variable, what
from tests.fault.real.history import History, Past, plain
from tests.support.answers import HEAD_FACTS, answer, fetched
from tests.support.containers import containers, statuses
from tests.support.kubelet import Logs
from tests.support.memory.controllers import _condition, _liking, _mark, _surged

from paceline.core.names import POOL_LABEL
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.fetching import FETCH_VARIABLE, FetchRequest
from paceline.kube import Conflict, Invalid, Manifest, NotFound, Ref, Resource, Transport, WorkQueue, ref_of
from paceline.kube.difference import needs_status
from paceline.kube.resources import CLAIM, DEPLOYMENT, JOB, POD, version_of

SECONDS: Mapping[str, float] = {"fetch": 0.1, "round": 0.3, "pull": 0.1}
NODES = tuple(f"gpu-{number}" for number in range(4))
WORKERS = 32
AGAIN_SECONDS = 0.05
HASH = "pod-template-hash"
JOB_LABEL = "batch.kubernetes.io/job-name"


@dataclass(eq=False)
class Land:
    """One namespace."""

    name: str
    ready: Callable[[Manifest], bool] = lambda pod: True
    """Whether a server's pod gets ready."""
    holds: Callable[[Manifest], bool] = lambda pod: False
    """Whether a round's pod goes on until all are released: so what happens in a round does happen in it."""
    released: bool = False
    started: dict[str, float] = field(default_factory=dict)
    """Uid of a pod → when it began, by the monotonic clock."""
    expected: dict[Ref, int] = field(default_factory=dict)
    """What was written, and in which version."""
    leaving: set[str] = field(default_factory=set)
    """The uid of what was removed."""
    written: bool = False


class Nature:
    def __init__(self, api: Transport, logs: Logs) -> None:
        self.api = api
        self.logs = logs
        self.queue = WorkQueue[str]()
        self.lands: dict[str, Land] = {}
        self.history = History(api, self._changed)

    def add(self, land: Land) -> None:
        self.lands[land.name] = land

    def past(self, namespace: str) -> Past:
        return self.history.of[namespace]

    def _changed(self, namespace: str) -> None:
        if namespace in self.lands:
            self.queue.add(namespace)

    async def look(self, namespace: str) -> float | None:
        """Seconds until something is to be done again."""
        land, past = self.lands[namespace], self.past(namespace)
        if not self._caught_up(land, past):
            return AGAIN_SECONDS
        land.written = False
        try:
            for act in (self._collect, self._claims, self._deployments, self._jobs, self._place, self._run):
                await act(land, past)
                if land.written:
                    return AGAIN_SECONDS
        except (Conflict, NotFound, Invalid):
            return AGAIN_SECONDS  # somebody was faster
        ends = [land.started[uid] + SECONDS[kind] for uid, kind in self._going_on(land, past)]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def idle(self, namespace: str) -> bool:
        """Nothing will happen there unless somebody else does something."""
        land, past = self.lands[namespace], self.past(namespace)
        queued = any(namespace in keys for keys in (self.queue._waiting, self.queue._working, self.queue._later))
        return not queued and self._caught_up(land, past) and not self._going_on(land, past)

    def _going_on(self, land: Land, past: Past) -> list[tuple[str, str]]:
        running = [pod for pod in past.of(POD) if _phase(pod) == "Running" and what(pod) != "server"]
        running = [pod for pod in running if land.released or not land.holds(pod)]
        return [(pod["metadata"]["uid"], what(pod)) for pod in running if pod["metadata"]["uid"] in land.started]

    def _caught_up(self, land: Land, past: Past) -> bool:
        for ref, version in list(land.expected.items()):
            there = past.objects.get(ref)
            if there is not None and version_of(there) >= version:
                del land.expected[ref]
            elif there is None and past.changes and past.changes[-1].version > version:
                del land.expected[ref]  # made, and removed since
        land.leaving -= self.history.gone
        return not land.expected and not land.leaving

    # Each below is one controller: it does what is missing, by what the watch has told.

    async def _collect(self, land: Land, past: Past) -> None:
        """What has owners, all of them gone; and pods that are told to end."""
        for ref, found in list(past.objects.items()):
            owners = found["metadata"].get("ownerReferences", ())
            orphan = owners and all(owner["uid"] in self.history.gone for owner in owners)
            if orphan or (ref.resource == POD and "deletionTimestamp" in found["metadata"]):
                await self._remove(land, found)

    async def _claims(self, land: Land, past: Past) -> None:
        for claim in past.of(CLAIM):
            await self._status(land, claim, {"phase": "Bound"})

    async def _deployments(self, land: Land, past: Past) -> None:
        for deployment in past.of(DEPLOYMENT):
            metadata, spec = deployment["metadata"], deployment["spec"]
            digest = hashlib.sha256(json.dumps(plain(spec["template"], land.name)).encode()).hexdigest()[:10]
            pods = owned(past, POD, metadata["uid"])
            current = [pod for pod in pods if pod["metadata"]["labels"][HASH] == digest]
            old = [pod for pod in pods if pod not in current]
            more = spec["strategy"].get("rollingUpdate", {}).get("maxSurge", 0)
            wanted = spec["replicas"]
            leave = current[wanted:] + (_surged(old, current, wanted) if more else old)
            for pod in leave:
                await self._remove(land, pod)
            names = {pod["metadata"]["name"] for pod in current}
            free = [name for n in range(wanted) if (name := f"{metadata['name']}-{digest}-{n}") not in names]
            for name in free[: max(0, wanted + more - len(pods) + len(leave))]:
                await self._create(land, past, deployment, name, {HASH: digest})
            if land.written:
                return  # what there is now is counted when it has been told
            ready = sum(_condition(pod, "Ready") == "True" for pod in pods)
            enough = ready >= wanted and len(current) == len(pods)
            counts = {"replicas": len(pods), "updatedReplicas": len(current)}
            counts |= {"readyReplicas": ready, "availableReplicas": ready}
            why = ("MinimumReplicasAvailable", "NewReplicaSetAvailable") if enough else ("Unavailable", "Updated")
            marks = [
                _mark(deployment, "Available", enough, why[0], now()),
                _mark(deployment, "Progressing", True, why[1], now()),
            ]
            seen = {"observedGeneration": metadata["generation"], "conditions": marks}
            await self._status(land, deployment, {name: count for name, count in counts.items() if count} | seen)

    async def _jobs(self, land: Land, past: Past) -> None:
        for job in past.of(JOB):
            metadata, status = job["metadata"], job.get("status") or {}
            if _condition(job, "Complete") == "True" or "deletionTimestamp" in metadata:
                continue
            pods = owned(past, POD, metadata["uid"])
            if job["spec"].get("suspend"):
                for pod in pods:
                    await self._remove(land, pod)
            elif not pods:
                await self._create(land, past, job, f"{metadata['name']}-0", {JOB_LABEL: metadata["name"]})
            elif _phase(pods[0]) == "Succeeded":
                marks = [
                    _mark(job, kind, True, "CompletionsReached", now()) for kind in ("SuccessCriteriaMet", "Complete")
                ]
                done = {"startTime": status["startTime"], "completionTime": now(), "succeeded": 1}
                await self._status(land, job, done | {"conditions": marks, "uncountedTerminatedPods": {}})
            elif not status.get("active"):
                await self._status(land, job, {"startTime": now(), "active": 1})

    async def _place(self, land: Land, past: Past) -> None:
        for pod in past.of(POD):
            if pod["spec"].get("nodeName"):
                continue
            if node := place(pod, past):
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]}}
                path = POD.path(land.name, pod["metadata"]["name"], "binding")
                await self.api._json("POST", path, {}, binding | {"target": {"kind": "Node", "name": node}})
                land.expected[ref_of(pod)] = version_of(pod) + 1
                land.written = True
                return
            if _condition(pod, "PodScheduled") == "False":
                continue
            why = f"0/{len(NODES)} nodes are available: {len(NODES)} Insufficient nvidia.com/gpu."
            waiting = _mark(pod, "PodScheduled", False, "Unschedulable", now()) | {"message": why}
            await self._status(land, pod, {"phase": "Pending", "conditions": [waiting]})

    async def _run(self, land: Land, past: Past) -> None:
        for pod in past.of(POD):
            uid, phase = pod["metadata"]["uid"], _phase(pod)
            if not pod["spec"].get("nodeName") or phase == "Succeeded":
                continue
            kind = what(pod)
            began = land.started.setdefault(uid, time.monotonic())
            if kind == "server" or phase != "Running":
                states = {c["name"]: {"running": {"startedAt": now()}} for c in containers(pod)}
                ready = kind != "server" or land.ready(pod)
                if phase != "Running" or (_condition(pod, "Ready") == "True") is not ready:
                    await self._status(land, pod, of_pod(pod, "Running", states, ready))
            elif time.monotonic() >= began + SECONDS[kind] and (land.released or not land.holds(pod)):
                ended = {c["name"]: {"terminated": self._end(pod, c["name"])} for c in containers(pod)}
                await self._status(land, pod, of_pod(pod, "Succeeded", ended, False))

    def _end(self, pod: Manifest, container: str) -> Manifest:
        exit_ = {"exitCode": 0, "reason": "Completed", "startedAt": pod["status"]["startTime"], "finishedAt": now()}
        if container == "client":
            self.logs[pod["metadata"]["namespace"], pod["metadata"]["name"]] = round_says(pod)
        return exit_ | {"message": fetch_says(pod) if container == "fetch" else ""}

    # Writing

    async def _create(self, land: Land, past: Past, owner: Manifest, name: str, labels: Mapping[str, str]) -> None:
        template = owner["spec"]["template"]
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        metadata = {
            "name": name,
            "namespace": land.name,
            "labels": {**template["metadata"].get("labels", {}), **labels},
            "annotations": template["metadata"].get("annotations", {}),
            "ownerReferences": [reference],
        }
        # The priorities are those of the chart, which is not installed here.
        spec = {key: value for key, value in template["spec"].items() if key != "priorityClassName"}
        self._wrote(
            land, await self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        )

    async def _status(self, land: Land, found: Manifest, status: Manifest) -> None:
        if not needs_status(found, status):
            return
        land.written = True
        with suppress(Conflict, NotFound):  # somebody has written it since it was read: the next step sees it
            self._wrote(land, await self.api.replace_status(found | {"status": status}))

    async def _remove(self, land: Land, found: Manifest) -> None:
        """At once: there is no kubelet that a pod would wait for."""
        ref = ref_of(found, self.api._kinds)
        options = {"preconditions": {"uid": found["metadata"]["uid"]}, "gracePeriodSeconds": 0}
        land.written = True
        await self.api._json("DELETE", ref.path, {}, options | {"propagationPolicy": "Background"})
        land.leaving.add(found["metadata"]["uid"])

    def _wrote(self, land: Land, answer: Manifest) -> None:
        land.expected[ref_of(answer, self.api._kinds)] = version_of(answer)
        land.written = True


def place(pod: Manifest, past: Past) -> str | None:
    """The free node that the pod likes best."""
    small = ("fetch", "pull")
    taken = {
        one["spec"].get("nodeName") for one in past.of(POD) if _phase(one) != "Succeeded" and what(one) not in small
    }
    free = [node for node in NODES if what(pod) in small or node not in taken]
    return max(free, key=lambda node: _liking(pod, node), default=None)


def owned(past: Past, resource: Resource, uid: str) -> list[Manifest]:
    return [
        found
        for found in past.of(resource)
        if any(owner["uid"] == uid for owner in found["metadata"].get("ownerReferences", ()))
    ]


def of_pod(pod: Manifest, phase: str, states: Mapping[str, Any], ready: bool) -> Manifest:
    scheduled = _mark(pod, "PodScheduled", True, "", now())
    marks = [scheduled, *(_mark(pod, kind, ready, "", now()) for kind in ("Ready", "ContainersReady"))]
    images = {c["name"]: c["image"] for c in containers(pod)}
    told = [
        {
            "name": name,
            "image": images[name],
            "imageID": f"{images[name]}@sha256:{hashlib.sha256(images[name].encode()).hexdigest()}",
            "ready": ready,
            "restartCount": 0,
            "state": state,
        }
        for name, state in states.items()
    ]
    began = (pod.get("status") or {}).get("startTime") or now()
    return {"phase": phase, "startTime": began, "conditions": marks, **statuses(pod, told)}


def round_says(pod: Manifest) -> str:
    plan, at = RoundPlan.from_json(variable(pod, ENVIRONMENT)), time.time()
    return answer(plan, TRUTHS[pod["metadata"]["labels"][POOL_LABEL]], at - 60, at, {})


def fetch_says(pod: Manifest) -> str:
    return fetched(FetchRequest.from_json(variable(pod, FETCH_VARIABLE)), HEAD_FACTS)


def _phase(pod: Manifest) -> str:
    """Pending if nothing has happened to it yet."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
