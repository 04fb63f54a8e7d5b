"""A cluster that is only imagined: it keeps what it is given, and does by itself what Kubernetes and the pods would do.

Accelerators are a number, not nodes: whoever needs some takes them while there are enough. Servers go first, as they do
by their priority, and a round gives its own back before the next one is looked at.

A child that a planner waits for must be made here, too, or the forecast waits for it forever.
"""

import hashlib
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from paceline.core import Parity, Workload
from paceline.core.names import COMPONENT_LABEL
from paceline.evidence import ArmCommand, Outputs, Point, Replicate, RoundPlan, RoundResult, encode
from paceline.fetching import FETCH_VARIABLE, Artifact, FetchedModel, FetchRequest, FetchResult
from paceline.plan.deployment.servers import pod_template
from paceline.plan.objects import Object, finished
from paceline.plan.run.snapshot import Round
from paceline.plan.step import Manifest, timestamp
from paceline.render.group import KIND as GROUPS

Key = tuple[str, str]
"""Kind and name: all of it is in one namespace."""
Tale = Callable[[int], float]
"""Round → the throughput of every candidate in it, over the baseline's."""

NODE = "imagined"
NO_ROOM = "no accelerators are left for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """`start_seconds` from a server's start to ready; `stream` is output tokens per second of each request that is
    under way."""

    start_seconds: float
    stream: float

    def of_round(self, asked: RoundPlan) -> float:
        """Seconds; scheduling, warm-up and what is between two arms are left out."""
        loads = sum(map(self.of_workload, asked.workloads)) + self.of_parity(asked.parity)
        return len(asked.arms) * (self.start_seconds + loads)

    def of_parity(self, parity: Parity | None) -> float:
        """Seconds, one prompt after another, if every answer goes to its cap."""
        return parity.samples * parity.max_tokens / self.stream if parity else 0.0

    def of_workload(self, workload: Workload) -> float:
        """Seconds, if every answer goes to its cap."""
        answer = workload.dataset.max_tokens / self.stream
        if workload.rate:
            return workload.dataset.requests / workload.rate + answer
        return workload.dataset.requests / workload.concurrency * answer


@dataclass(kw_only=True)
class Cluster:
    """`room` accelerators for everything here; None: there is no end of them."""

    now: datetime
    tale: Tale
    assumptions: Assumptions
    room: int | None
    objects: dict[Key, Manifest]
    most_at_once: int = 0
    """Rounds that wanted accelerators at the same time while there were too few for all, but enough for one."""

    def of(self, kind: str, label: str = "", value: str = "") -> list[Manifest]:
        found = [thing for (there, _), thing in self.objects.items() if there == kind]
        return [thing for thing in found if not label or thing["metadata"].get("labels", {}).get(label) == value]

    def apply(self, wanted: Object) -> bool:
        """False if nothing would change."""
        there = self.objects.get(key_of(wanted))
        if there is not None and _within(wanted, there):
            return False
        before = there["metadata"] if there else {}
        metadata = {
            **deepcopy(wanted["metadata"]),
            "uid": before.get("uid", "imagined " + " ".join(key_of(wanted))),
            "generation": before.get("generation", 0) + 1,
            "creationTimestamp": before.get("creationTimestamp", timestamp(self.now)),
        }
        kept = {"status": there["status"]} if there and "status" in there else {}
        self.objects[key_of(wanted)] = {**deepcopy(dict(wanted)), "metadata": metadata, **kept}
        return True

    def delete(self, found: Object) -> bool:
        return self.objects.pop(key_of(found), None) is not None

    def turn(self) -> bool:
        """The next thing that happens by itself. False if nothing does."""
        jobs = [job for job in self.of("Job") if not finished(job)]
        for fetch in (job for job in jobs if _component(job) == "fetch"):
            return self._ends(fetch, "fetch", _fetched(fetch))
        if any(self._stands(servers) for servers in self._servers()):
            return True
        rounds = [job for job in jobs if _component(job) == "round"]
        fitting = [job for job in rounds if accelerators(job) <= self.left]
        if sum(map(accelerators, fitting)) > self.left:
            self.most_at_once = max(self.most_at_once, len(fitting))
        for job in fitting:
            for other in rounds:  # a pod is made at once, and this round takes its time
                if self.pod_of(other) is None:
                    self._pod(other, {"phase": "Pending"}, {})
            return self._ends(job, "client", self._answer(job))
        return any([self._waits(job) for job in rounds])  # noqa: C419 (all of them)

    @property
    def serving(self) -> int:
        """Accelerators that servers hold."""
        return sum(one.get("status", {}).get("readyReplicas", 0) * accelerators(one) for one in self._servers())

    @property
    def left(self) -> float:
        return math.inf if self.room is None else self.room - self.serving

    def _servers(self) -> list[Manifest]:
        return [*self.of("Deployment"), *self.of(GROUPS)]

    def _stands(self, servers: Manifest) -> bool:
        """They become what is asked for, in the place of those that were. False if they are, or find no room."""
        wanted, status = servers["spec"].get("replicas", 1), servers.get("status", {})
        now = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), wanted)
        now |= {"observedGeneration": servers["metadata"].get("generation", 1)}
        if now.items() <= status.items():
            return False
        if (wanted - status.get("readyReplicas", 0)) * accelerators(servers) > self.left:
            return self._waits(servers)
        self.objects.pop(_pod_key(servers), None)
        servers["status"] = now
        return True

    def _waits(self, owner: Manifest) -> bool:
        unplaced = {"type": "PodScheduled", "status": "False", "message": NO_ROOM}
        return self._pod(owner, {"phase": "Pending", "conditions": [unplaced]}, {})

    def _ends(self, job: Manifest, container: str, message: str) -> bool:
        ended = {"name": container, "state": {"terminated": {"exitCode": 0, "message": message}}}
        job["status"] = {"conditions": [{"type": "Complete", "status": "True"}]}
        return self._pod(job, {"phase": "Succeeded", "containerStatuses": [ended]}, {"nodeName": NODE})

    def _pod(self, owner: Manifest, status: Manifest, where: Mapping[str, str]) -> bool:
        """The owner's only pod. False if it says nothing new."""
        template, key = pod_template(owner), _pod_key(owner)
        name = {"batch.kubernetes.io/job-name": owner["metadata"]["name"]} if owner["kind"] == "Job" else {}
        metadata = {"name": key[1], "labels": {**template["metadata"]["labels"], **name}}
        pod = {"kind": "Pod", "metadata": metadata, "spec": {**template["spec"], **where}, "status": status}
        if self.objects.get(key) == pod:
            return False
        self.objects[key] = pod
        return True

    def _answer(self, job: Manifest) -> str:
        asked = Round(job=job, pod=None).plan
        began = self.now
        self.now += timedelta(seconds=self.assumptions.of_round(asked))
        return encode(
            RoundResult(
                round=asked.round,
                attempt=asked.attempt,
                replicates=tuple(_replicate(asked, arm, self.tale(asked.round)) for arm in asked.arms),
                started=began.timestamp(),
                finished=self.now.timestamp(),
            )
        )

    def pod_of(self, job: Manifest) -> Manifest | None:
        return self.objects.get(_pod_key(job))


def key_of(thing: Object) -> Key:
    return str(thing["kind"]), str(thing["metadata"]["name"])


def accelerators(owner: Object) -> int:
    """That one of its pods takes; of a group, all of its pods together."""
    limits = [c.get("resources", {}).get("limits", {}) for c in pod_template(owner)["spec"]["containers"]]
    each = sum(int(count) for limit in limits for name, count in limit.items() if "/" in name)
    return each * int(owner["spec"].get("leaderWorkerTemplate", {}).get("size", 1))


def _component(job: Object) -> str:
    return str(job["metadata"].get("labels", {}).get(COMPONENT_LABEL, ""))


def _pod_key(owner: Object) -> Key:
    return "Pod", f"{owner['metadata']['name']}-pod"


def _within(wanted: Any, found: Any) -> bool:
    """All that is said in `wanted` is so in `found`, which may say more: defaults, status, what others have written."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(k in found and _within(v, found[k]) for k, v in wanted.items())
    if isinstance(wanted, list | tuple):
        return len(wanted) == len(found) and all(map(_within, wanted, found))
    return bool(wanted == found)


def _fetched(job: Manifest) -> str:
    """Commits are made up, and facts are not known: preflight has nothing to say."""
    (container,) = pod_template(job)["spec"]["containers"]
    request = FetchRequest.from_json(next(v["value"] for v in container["env"] if v["name"] == FETCH_VARIABLE))
    models, datasets = (tuple(map(_downloaded, artifacts)) for artifacts in (request.models, request.datasets))
    return FetchResult(models=models, facts={}, datasets=datasets).to_message()


def _downloaded(artifact: Artifact) -> FetchedModel:
    """At its commit; if that is not known, at one that follows from its address and revision."""
    named = f"{artifact.source}@{artifact.revision}"
    return FetchedModel(
        source=str(artifact.source),
        revision=artifact.revision,
        commit=artifact.commit or hashlib.sha1(named.encode(), usedforsecurity=False).hexdigest(),
        bytes=0,
        path="",
    )


def _replicate(asked: RoundPlan, arm: ArmCommand, ratio: float) -> Replicate:
    """Valid in every point; only the throughput differs between arms."""
    points = (
        Point(
            workload=workload.name,
            asked=workload.dataset.requests,
            completed=workload.dataset.requests,
            errors=0,
            output_tokens=1000,
            output_throughput=(speed := 100 * (ratio if arm.candidate else 1)),
            steady_throughput=None if workload.rate else speed,
            fullness=None if workload.rate else 1.0,
            mean_ttft=0.1,
            p95_ttft=0.1,
            mean_tpot=0.1,
            p95_tpot=0.1,
            p95_e2e=0.1,
            mean_e2e=0.1 / (ratio if arm.candidate else 1),
            accept_length=2.0 if arm.candidate else None,
            verify_calls=500 if arm.candidate else None,
            retractions=0,
        )
        for workload in asked.workloads
    )
    resolved = {**dict.fromkeys(asked.compared, "as asked"), **arm.expected}
    return Replicate(arm=arm.name, resolved=resolved, points=tuple(points), outputs=_alike(asked.parity, arm))


def _alike(parity: Parity | None, arm: ArmCommand) -> Outputs | None:
    """All arms answer alike."""
    if parity is None:
        return None
    return Outputs(samples=parity.samples) if arm.candidate else Outputs(digests=("0000",) * parity.samples)
