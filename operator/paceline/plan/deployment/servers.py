"""A pool's servers: what they run, how many are ready, and why the others are not."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason
from paceline.core.names import POOL_LABEL, child_name
from paceline.plan.deployment.capacity import all_there, ending_until, one_more_waits, short, surplus
from paceline.plan.deployment.fields import with_field
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import Object, condition, owned_by
from paceline.plan.pods import Trouble, container, evicted, paused, refused, trouble
from paceline.render import group_name
from paceline.render.group import KIND as GROUPS
from paceline.render.serving import ARM_LABEL, REVISION_LABEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """A pool's Deployment or LeaderWorkerSet."""

    manifest: Object
    revision: str
    ready: int
    settled: bool
    """Every replica is of this revision, and ready or waiting for room; none of another revision is left."""
    trouble: Trouble | None
    evicted: Trouble | None
    """Of a server of any revision that is taken off its node. The old ones serve until a roll-out has ended."""
    replicas: int
    """How many its spec asks for now."""
    own_ready: int
    """Ready pods of this revision."""
    reasons: frozenset[Reason]
    """Reasons of the troubles of pods of this revision."""
    hopeless: bool
    """Every pod of this revision fails for good."""
    nodes: frozenset[str]
    """Of the servers of all revisions."""
    one_more_waits: bool
    """The server beyond `replicas`, which a roll-out starts first, cannot start."""
    ending_until: datetime | None
    """Until when one that is ending is waited for; None if none is."""
    image: str
    """The image that all its ready pods run, as the kubelets report it; "" if they differ or do not report it."""

    @property
    def short(self) -> str:
        """How many replicas are missing, and why; "" if none is."""
        return short(self.ready, self.replicas, self.trouble.message if self.trouble else "")


def servers_of(snapshot: Snapshot, pool: str, now: datetime) -> Servers | None:
    """None where the pool has no servers, or where only an object of another owner has their name."""
    manifest = next(iter(server_objects(snapshot, pool)), None)
    if manifest is None:
        return None
    status, replicas = manifest.get("status") or {}, manifest["spec"].get("replicas", 1)
    revision = pod_template(manifest)["metadata"].get("labels", {}).get(REVISION_LABEL, "")
    of_pool = [
        pod
        for pod in snapshot.of("Pod")
        if pod["metadata"].get("labels", {}).get(POOL_LABEL) == pool and ARM_LABEL in pod["metadata"]["labels"]
    ]
    pods = [pod for pod in of_pool if pod["metadata"]["labels"].get(REVISION_LABEL) == revision]
    staying = [pod for pod in pods if _stays(pod)]
    troubles = [trouble([pod], snapshot.warnings, now) for pod in staying]
    of_all = refused(manifest, snapshot.warnings) or paused(manifest)
    own_ready = sum(condition(pod, "Ready") is not None for pod in staying)
    observed = _observed(status) >= manifest["metadata"].get("generation", 1)
    return Servers(
        manifest=manifest,
        revision=revision,
        ready=status.get("readyReplicas", 0),
        settled=(observed and all_there(status, replicas, pods)) or surplus(status, replicas, own_ready),
        trouble=with_spec_field(snapshot, of_all or trouble(pods, snapshot.warnings, now)),
        evicted=evicted(of_pool),
        replicas=replicas,
        own_ready=own_ready,
        reasons=frozenset(each.reason for each in (of_all, *troubles) if each),
        hopeless=bool(troubles) and all(each is not None and each.fatal for each in troubles),
        nodes=frozenset(pod["spec"]["nodeName"] for pod in of_pool if _stays(pod) and pod["spec"].get("nodeName")),
        one_more_waits=one_more_waits(manifest, of_pool, snapshot.warnings, now),
        ending_until=ending_until(of_pool, now),
        image=_image(pod for pod in staying if condition(pod, "Ready")),
    )


def _image(pods: Iterable[Object]) -> str:
    images = {str(container(pod, "server").get("imageID", "")) for pod in pods}
    return images.pop() if len(images) == 1 else ""


def server_objects(snapshot: Snapshot, pool: str) -> list[Object]:
    """Our Deployment and LeaderWorkerSet of this pool, the younger first. Both exist for a moment when the number of
    nodes has changed: the older one is about to go."""
    names = {"Deployment": child_name(snapshot.name, pool), GROUPS: group_name(snapshot.name, pool)}
    named = (snapshot.child(kind, name) for kind, name in names.items())
    ours = [child for child in named if child and owned_by(child, snapshot.owner.uid)]
    return sorted(ours, key=lambda child: str(child["metadata"].get("creationTimestamp", "")), reverse=True)


def pod_template(manifest: Object) -> Object:
    """The template of the pods that answer requests: of a LeaderWorkerSet, that of the leaders."""
    spec = manifest["spec"]
    group = manifest["kind"] == GROUPS
    template: Object = spec["leaderWorkerTemplate"]["leaderTemplate"] if group else spec["template"]
    return template


def with_spec_field(snapshot: Snapshot, problem: Trouble | None) -> Trouble | None:
    """The trouble, its message followed by the field of the spec that names what is missing."""
    if problem is None:
        return None
    return replace(problem, message=with_field(problem.message, snapshot.manifest["spec"]))


def not_ready(pool: str, problem: Trouble | None, otherwise: str) -> Cause:
    """Why the pool's servers are not ready: their trouble, or `otherwise` that they start."""
    if problem is None:
        return Cause(Reason.ServersStarting, pool, otherwise)
    return Cause(problem.reason, pool, problem.message)


def _stays(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _observed(status: Mapping[str, Any]) -> int:
    """The generation that a status describes. LeaderWorkerSet before v0.9 has it only in its conditions."""
    generations = (condition.get("observedGeneration", 0) for condition in status.get("conditions", ()))
    return int(status.get("observedGeneration") or max(generations, default=0))
