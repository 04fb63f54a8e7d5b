"""A pool's servers: what they run, how many are ready, and why the others are not.

A pool serves with the servers for which the cluster has capacity, and does not wait for the others: an autoscaler may
ask for more than the cluster has, for ever. Lack of capacity is not the fault of a revision, so it delays neither Ready
nor a run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api import Cause, Reason
from paceline.core import PoolSettings
from paceline.core.manifest import Object
from paceline.core.names import POOL_LABEL, child_name
from paceline.plan.deployment.fields import with_field
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import IN_USE, condition, owned_by
from paceline.plan.step import parse_time
from paceline.plan.trouble import Trouble, container, evicted, held_up, paused, refused_pods, trouble, unplaced
from paceline.render import group_name
from paceline.render.group import GROUPS
from paceline.render.serving import ARM_LABEL, REVISION_LABEL

_GROUP = "leaderworkerset.sigs.k8s.io/group-index"
"""Label shared by the pods of one server over several nodes (LeaderWorkerSet, api/leaderworkerset/v1)."""
_LATE = timedelta(minutes=1)
"""How long a pod may be ending after its deletionTimestamp, which includes its grace period."""
QUOTA = "exceeded quota"
"""Text in refusals by a ResourceQuota (Kubernetes, apiserver plugin resourcequota)."""
_AUTOSCALER = "HorizontalPodAutoscaler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """A pool's Deployment or LeaderWorkerSet."""

    manifest: Object
    revision: str
    arm: str
    """The arm of this revision."""
    ready: int
    settled: bool
    """Every replica is of this revision, and ready or waiting for capacity; no replica of another revision is left."""
    trouble: Trouble | None
    evicted: Trouble | None
    """The eviction of a server of any revision. Old servers serve until a roll-out has ended."""
    replicas: int
    """Replicas that its spec asks for now."""
    own_ready: int
    """Ready pods of this revision."""
    reasons: frozenset[Reason]
    """Problems of this revision's pods, by reason."""
    hopeless: bool
    """Every pod of this revision has failed for good."""
    nodes: frozenset[str]
    """Nodes of the servers of all revisions."""
    one_more_waits: bool
    """A roll-out's additional server, beyond `replicas`, cannot start."""
    ending_until: datetime | None
    """Until when to wait for an ending server; None if none is ending."""
    image: str
    """The image of all its ready pods, as reported by the kubelets; "" if they differ or do not report it."""

    @property
    def nodes_each(self) -> int:
        """Nodes per server; of several, only the first answers requests."""
        spec = self.manifest["spec"]
        return int(spec["leaderWorkerTemplate"].get("size", 1)) if self.manifest["kind"] == GROUPS else 1

    @property
    def short(self) -> str:
        """How many replicas are missing, and why; "" if none is."""
        return short(self.ready, self.replicas, self.trouble.message if self.trouble else "")


def servers_of(snapshot: Snapshot, pool: str, now: datetime) -> Servers | None:
    """The pool's servers; None if it has none, or if only an object of another owner has their name."""
    manifest = next(iter(server_objects(snapshot, pool)), None)
    if manifest is None:
        return None
    status, replicas = manifest.get("status") or {}, manifest["spec"].get("replicas", 1)
    labels = pod_template(manifest)["metadata"].get("labels", {})
    revision = labels.get(REVISION_LABEL, "")
    of_pool = [
        pod
        for pod in snapshot.of("Pod")
        if pod["metadata"].get("labels", {}).get(POOL_LABEL) == pool and ARM_LABEL in pod["metadata"]["labels"]
    ]
    pods = [pod for pod in of_pool if pod["metadata"]["labels"].get(REVISION_LABEL) == revision]
    staying = [pod for pod in pods if _stays(pod)]
    troubles = [trouble([pod], snapshot.warnings, now) for pod in staying]
    of_all = refused_pods(manifest, snapshot.warnings) or paused(manifest)
    own_ready = sum(condition(pod, "Ready") is not None for pod in staying)
    observed = _observed(status) >= manifest["metadata"].get("generation", 1)
    return Servers(
        manifest=manifest,
        revision=revision,
        arm=labels.get(ARM_LABEL, ""),
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
    """Our Deployment and LeaderWorkerSet of this pool, the younger first. Both exist for a moment after the number of
    nodes changed: the older one is about to be deleted."""
    names = {"Deployment": child_name(snapshot.name, pool), GROUPS: group_name(snapshot.name, pool)}
    named = (snapshot.child(kind, name) for kind, name in names.items())
    ours = [child for child in named if child and owned_by(child, snapshot.owner.uid)]
    return sorted(ours, key=lambda child: str(child["metadata"].get("creationTimestamp", "")), reverse=True)


def pod_template(manifest: Object) -> Object:
    """The template of the pods that answer requests; for a LeaderWorkerSet the leaders' template."""
    spec = manifest["spec"]
    group = manifest["kind"] == GROUPS
    template: Object = spec["leaderWorkerTemplate"]["leaderTemplate"] if group else spec["template"]
    return template


def with_spec_field(snapshot: Snapshot, problem: Trouble | None) -> Trouble | None:
    """The problem, with its message followed by the field of the spec that names what is missing."""
    if problem is None:
        return None
    return replace(problem, message=with_field(problem.message, snapshot.manifest["spec"]))


def not_ready(pool: str, problem: Trouble | None, otherwise: str) -> Cause:
    """Why the pool's servers are not ready: their problem, or else that they start, with `otherwise` as the message."""
    if problem is None:
        return Cause(Reason.ServersStarting, pool, otherwise)
    return Cause(problem.reason, pool, problem.message)


def _stays(pod: Object) -> bool:
    return "deletionTimestamp" not in pod["metadata"]


def _observed(status: Mapping[str, Any]) -> int:
    """The generation that a status describes. LeaderWorkerSet before v0.9 reports it only in its conditions."""
    generations = (condition.get("observedGeneration", 0) for condition in status.get("conditions", ()))
    return int(status.get("observedGeneration") or max(generations, default=0))


def unplaced_servers(pods: Iterable[Object]) -> int:
    """Number of servers with a pod that waits for capacity."""
    staying = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and not pod["spec"].get("nodeName"))
    waiting = (pod for pod in staying if (problem := unplaced(pod)) and problem.reason is Reason.NoCapacity)
    return len({pod["metadata"].get("labels", {}).get(_GROUP, pod["metadata"]["name"]) for pod in waiting})


def all_there(status: Mapping[str, Any], wanted: int, pods: Iterable[Object]) -> bool:
    """Whether all `wanted` replicas are of one revision, and ready or waiting for capacity; at least one is ready,
    unless none is wanted. `status` is the Deployment's; `pods` are of its revision."""
    ready, made = status.get("readyReplicas", 0), status.get("replicas", 0)
    if status.get("updatedReplicas", 0) != made or made != wanted:
        return False
    return bool(ready == wanted or (ready and ready + unplaced_servers(pods) >= wanted))


def surplus(status: Mapping[str, Any], wanted: int, ready: int) -> bool:
    """Whether the only change left is to remove servers beyond `wanted`: when `status` was written, all were of one
    revision, and enough of the present revision are `ready`. The Deployment's status lags behind its spec, and Ready
    must not become False in between."""
    made = status.get("replicas", 0)
    return bool(0 < wanted < made == status.get("updatedReplicas", 0) and ready >= wanted)


def ending_until(pods: Iterable[Object], now: datetime) -> datetime | None:
    """Until when an ending pod is expected to free its capacity; None if none is ending, or if all are long overdue: a
    pod on an unreachable node never terminates."""
    due = (parse_time(at) + _LATE for pod in pods if (at := pod["metadata"].get("deletionTimestamp")))
    return max((at for at in due if now < at), default=None)


def one_more_waits(servers: Object, pods: Iterable[Object], warnings: Mapping[str, str], now: datetime) -> bool:
    """Whether a Deployment cannot start its additional server, beyond `replicas`, but could start it in place of
    another: no node has room, its volume is in use, or a quota refuses it. Any other obstacle would also prevent an
    in-place replacement. `pods` are of all revisions; an ending pod is about to free its capacity."""
    pods, status = list(pods), servers.get("status") or {}
    if ending_until(pods, now):
        return False
    made = status.get("replicas", 0)
    if refusal := refused_pods(servers, {}):
        return QUOTA in refusal.message and bool(status.get("updatedReplicas", 0) < made)
    stuck = any(_lacks_room(pod, warnings) for pod in pods)
    return bool(made > servers["spec"].get("replicas", 1) and stuck)


def _lacks_room(pod: Object, warnings: Mapping[str, str]) -> bool:
    problem = unplaced(pod) or held_up(pod, warnings)
    return problem is not None and (problem.reason is Reason.NoCapacity or bool(IN_USE.search(problem.message)))


def short(ready: int, wanted: int, why: str) -> str:
    """Part of Ready's message: `3 of 4 servers; not placed: …`; "" if none is missing."""
    return "; ".join(filter(None, (f"{ready} of {wanted} servers", why))) if ready < wanted else ""


def autoscaler_of(snapshot: Snapshot, pool: str) -> str | None:
    """Name of the autoscaler that targets the pool's servers. KEDA creates such an object, too."""
    servers = {("Deployment", child_name(snapshot.name, pool)), (GROUPS, group_name(snapshot.name, pool))}
    for autoscaler in snapshot.of(_AUTOSCALER):
        target = autoscaler["spec"]["scaleTargetRef"]
        if (target.get("kind"), target.get("name")) in servers:
            return str(autoscaler["metadata"]["name"])
    return None


def left_to_it(snapshot: Snapshot, pool: PoolSettings) -> PoolSettings:
    """The pool without its number of replicas if an autoscaler sets one: two writers would remove each other's
    servers."""
    return replace(pool, replicas=None) if autoscaler_of(snapshot, pool.name) else pool


def replicas_ignored(snapshot: Snapshot, pool: str) -> str:
    """A message that `replicas` is ignored, with ways to fix it; "" if it is not."""
    asked = next((each.replicas for each in snapshot.spec.pools if each.name == pool), None) if snapshot.spec else None
    autoscaler = autoscaler_of(snapshot, pool)
    if asked is None or autoscaler is None:
        return ""
    return (
        f"replicas is {asked}, but {_AUTOSCALER} {autoscaler} decides: remove replicas from the pool, "
        "or delete the autoscaler"
    )
