"""What a cluster does by itself, for the bench: Jobs and Deployments get pods, and pods end with their messages.

`python -m tests.scale.nature KUBECONFIG LOG` runs until it is killed. Controller manager, scheduler and kubelets in one
process, and no more of them than the operator sees: a pod is placed when it is made, a server is ready at once, a
prefetch ends after 0.2 s and a round after 0.5 s with the message of tests/support/answers.py. LOG gets a line for each
round that starts or ends: JSON of run, what, and the time in seconds since the epoch.
"""

import asyncio
import hashlib
import json
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from tests.fault.nature import variable
from tests.support.answers import HEAD_FACTS, answer, fetched
from tests.support.campaigns import LATENCY
from tests.support.containers import containers, statuses
from tests.support.kubelet import Logs, kubelets

from paceline.core.names import COMPONENT_LABEL, MANAGED_BY, RUN_LABEL
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.fetching import FETCH_VARIABLE, FetchRequest
from paceline.kube import (
    Conflict,
    Manifest,
    NotFound,
    Ref,
    Reflector,
    Resource,
    Transport,
    WorkQueue,
    connect,
    selector,
)
from paceline.kube.resources import DEPLOYMENT, JOB, POD
from paceline.kube.throttle import Throttle
from paceline.plan.objects import finished

SECONDS: Mapping[str, float] = {"fetch": 0.2, "round": 0.5, "pull": 0.1}
WORKERS = 64
NODES = 128
HASH = "pod-template-hash"
Key = tuple[str, str, str]
"""Plural, namespace and name of a Job or a Deployment."""


class Nature:
    def __init__(self, api: Transport, logs: Logs, log: Callable[[str, str], None]) -> None:
        self.api = api
        self.logs = logs
        self.log = log
        self.queue = WorkQueue[Key]()
        self.seen = set[str]()
        self.reflectors = {
            resource.plural: Reflector(api, resource, selector=selector(MANAGED_BY), on_change=self._changed)
            for resource in (JOB, DEPLOYMENT)
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for reflector in self.reflectors.values():
                group.create_task(reflector.run())
            group.create_task(self.queue.run(self.look, workers=WORKERS))

    def _changed(self, event: str, found: Manifest, _: Manifest | None) -> None:
        metadata = found["metadata"]
        resource = JOB if found["kind"] == JOB.kind else DEPLOYMENT
        if event == "ADDED" and resource is JOB and not finished(found):
            self.log(what_for(found), "made")
        if event == "DELETED":
            self.seen.discard(metadata["uid"])
        else:
            self.queue.add((resource.plural, metadata["namespace"], metadata["name"]))

    async def look(self, key: Key) -> float | None:
        plural, namespace, name = key
        found = self.reflectors[plural].store.get(namespace, name)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            await (self.job(found) if plural == JOB.plural else self.deployment(found))
        return None

    async def job(self, job: Manifest) -> None:
        """All of its life at once: nothing that a worker sees changes in between."""
        uid = job["metadata"]["uid"]
        if finished(job) or job["spec"].get("suspend") or uid in self.seen:
            return
        self.seen.add(uid)
        what = job["metadata"]["labels"][COMPONENT_LABEL]
        began = now()
        pod = await self.pod(job, f"{job['metadata']['name']}-0", {"job-name": job["metadata"]["name"]})
        running = {c["name"]: {"running": {"startedAt": began}} for c in containers(pod)}
        pod = await self.status(pod, POD, of_pod(pod, "Running", running, began))
        await self.status(job, JOB, {"startTime": began, "active": 1, "ready": 1})
        await asyncio.sleep(SECONDS[what])
        ended = now()
        if what == "round":
            self.logs[pod["metadata"]["namespace"], pod["metadata"]["name"]] = self.result(pod)
        said = fetched(FetchRequest.from_json(variable(pod, FETCH_VARIABLE)), HEAD_FACTS) if what == "fetch" else ""
        exits = {
            c["name"]: {
                "terminated": {
                    "exitCode": 0,
                    "reason": "Completed",
                    "message": said if c["name"] == "fetch" else "",
                    "startedAt": began,
                    "finishedAt": ended,
                }
            }
            for c in containers(pod)
        }
        await self.status(pod, POD, of_pod(pod, "Succeeded", exits, began))
        marks = [
            {"type": kind, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": ended}
            for kind in ("SuccessCriteriaMet", "Complete")
        ]
        whole = {"startTime": began, "completionTime": ended, "succeeded": 1, "conditions": marks}
        await self.status(job, JOB, whole | {"active": None, "ready": None, "uncountedTerminatedPods": {}})
        self.log(what_for(job), "ended")

    def result(self, pod: Manifest) -> str:
        plan, at = RoundPlan.from_json(variable(pod, ENVIRONMENT)), time.time()
        return answer(plan, LATENCY, at - 60, at, {})

    async def deployment(self, deployment: Manifest) -> None:
        """The pods of the old template go when those of the new one are there."""
        metadata, spec = deployment["metadata"], deployment["spec"]
        digest = hashlib.sha256(json.dumps(spec["template"], sort_keys=True).encode()).hexdigest()[:10]
        done = deployment.get("status") or {}
        replicas = spec.get("replicas", 1)
        if done.get("observedGeneration") == metadata["generation"] and done.get("readyReplicas", 0) == replicas:
            return
        for number in range(replicas):
            began = now()
            pod = await self.pod(deployment, f"{metadata['name']}-{digest}-{number}", {HASH: digest})
            states = {c["name"]: {"running": {"startedAt": began}} for c in containers(pod)}
            await self.status(pod, POD, of_pod(pod, "Running", states, began))
        ours = await self.api.list(POD, metadata["namespace"], selector(spec["selector"]["matchLabels"]))
        for pod in ours.items:
            if pod["metadata"]["labels"].get(HASH) != digest:
                ref = Ref(POD, metadata["namespace"], pod["metadata"]["name"])
                await self.api.delete(ref, uid=pod["metadata"]["uid"])
        marks = [
            {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": now()}
            for kind, reason in (("Available", "MinimumReplicasAvailable"), ("Progressing", "NewReplicaSetAvailable"))
        ]
        counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas)
        await self.status(
            deployment, DEPLOYMENT, {"observedGeneration": metadata["generation"], "conditions": marks} | counts
        )

    async def pod(self, owner: Manifest, name: str, labels: Mapping[str, str]) -> Manifest:
        template = owner["spec"]["template"]
        reference = {key: owner[key] for key in ("apiVersion", "kind")}
        reference |= {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"], "controller": True}
        metadata = {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": {**template["metadata"].get("labels", {}), **labels},
            "annotations": template["metadata"].get("annotations", {}),
            "ownerReferences": [reference],
        }
        placed = template["spec"] | {"nodeName": f"gpu-{int(owner['metadata']['uid'][:4], 16) % NODES}"}
        # The priorities are those of the chart, which is not installed here.
        placed = {key: value for key, value in placed.items() if key != "priorityClassName"}
        try:
            return await self.api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": placed})
        except Conflict:
            known = await self.api.get(Ref(POD, metadata["namespace"], name))
            assert known, name
            return known

    async def status(self, found: Manifest, resource: Resource, status: Manifest) -> Manifest:
        """A patch, as kubelets send it: an apply would cost the API server three times as much."""
        metadata = found["metadata"]
        ref = Ref(resource, metadata["namespace"], metadata["name"])
        body = {"metadata": {"uid": metadata["uid"]}, "status": status}
        try:
            return await self.api._json("PATCH", f"{ref.path}/status", {}, body, "application/merge-patch+json")
        except (NotFound, Conflict):
            return found  # deleted meanwhile


def of_pod(pod: Manifest, phase: str, states: Mapping[str, Manifest], began: str) -> Manifest:
    ready = "True" if phase == "Running" else "False"
    marks = [
        {"type": kind, "status": status, "lastTransitionTime": began}
        for kind, status in (("PodScheduled", "True"), ("Ready", ready), ("ContainersReady", ready))
    ]
    told = [
        {
            "name": name,
            "image": "image",
            "imageID": "image@sha256:" + "0" * 64,
            "ready": phase == "Running",
            "restartCount": 0,
            "state": state,
        }
        for name, state in states.items()
    ]
    return {"phase": phase, "startTime": began, "conditions": marks, **statuses(pod, told)}


def what_for(job: Manifest) -> str:
    """The run, or the Job itself."""
    metadata = job["metadata"]
    return f"{metadata['namespace']}/{metadata['labels'].get(RUN_LABEL) or metadata['name']}"


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def main(kubeconfig: str, log: Path) -> None:
    with log.open("a") as out:

        def write(run: str, what: str) -> None:
            out.write(json.dumps([run, what, time.time()]) + "\n")
            out.flush()

        async with await connect(kubeconfig, throttle=Throttle(1000, 1000)) as api:
            certificate = Path(kubeconfig).parent / "pki" / "apiserver.crt"
            async with kubelets(api, certificate, [f"gpu-{number}" for number in range(NODES)]) as logs:
                await Nature(api, logs, write).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))
