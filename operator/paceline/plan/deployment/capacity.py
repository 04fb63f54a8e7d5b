"""A pool serves with the servers for which the cluster has capacity; the others are not waited for.

An autoscaler may ask for more than the cluster has, for ever. Lack of capacity is not the fault of a revision, so it
delays neither Ready nor a run.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from paceline.api import Reason
from paceline.plan.objects import Object
from paceline.plan.pods import held_up, refused, unplaced
from paceline.plan.step import parse_time
from paceline.plan.volumes import IN_USE

GROUP = "leaderworkerset.sigs.k8s.io/group-index"
"""Label that the pods of one server over several nodes share (LeaderWorkerSet, api/leaderworkerset/v1)."""
LATE = timedelta(minutes=1)
"""How long after its deletionTimestamp, which has its grace in it, a pod may still be ending."""
QUOTA = "exceeded quota"
"""In refusals of a ResourceQuota (Kubernetes, apiserver plugin resourcequota)."""


def unplaced_servers(pods: Iterable[Object]) -> int:
    """How many servers have a pod that waits for capacity."""
    staying = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and not pod["spec"].get("nodeName"))
    waiting = (pod for pod in staying if (problem := unplaced(pod)) and problem.reason is Reason.NoCapacity)
    return len({pod["metadata"].get("labels", {}).get(GROUP, pod["metadata"]["name"]) for pod in waiting})


def all_there(status: Mapping[str, Any], wanted: int, pods: Iterable[Object]) -> bool:
    """Whether every replica `wanted` is of one revision, and ready or waiting for capacity; one at least is ready,
    unless none is wanted. `status` is the Deployment's, `pods` are those of its revision."""
    ready, made = status.get("readyReplicas", 0), status.get("replicas", 0)
    if status.get("updatedReplicas", 0) != made or made != wanted:
        return False
    return bool(ready == wanted or (ready and ready + unplaced_servers(pods) >= wanted))


def surplus(status: Mapping[str, Any], wanted: int, ready: int) -> bool:
    """Whether only servers beyond those `wanted` are to go: all there are were of one revision when `status` was
    written, and `ready` of the revision wanted now are as many. The Deployment's status follows its spec a moment
    later, and Ready must not fall in between."""
    made = status.get("replicas", 0)
    return bool(0 < wanted < made == status.get("updatedReplicas", 0) and ready >= wanted)


def ending_until(pods: Iterable[Object], now: datetime) -> datetime | None:
    """Until when a pod that is ending is thought to make room; None if none is, or only such as should have ended long
    ago: on a node that is silent a pod ends never."""
    due = (parse_time(at) + LATE for pod in pods if (at := pod["metadata"].get("deletionTimestamp")))
    return max((at for at in due if now < at), default=None)


def one_more_waits(servers: Object, pods: Iterable[Object], warnings: Mapping[str, str], now: datetime) -> bool:
    """Whether a Deployment cannot start the server that it has, or wants, beyond its `replicas`, and could in place of
    another: no node has room for it, its volume is in use, or a quota refuses it. Whatever else keeps it from starting
    would keep it from that in place, too. `pods` are those of all revisions; one that is ending is about to make
    room."""
    pods, status = list(pods), servers.get("status") or {}
    if ending_until(pods, now):
        return False
    made = status.get("replicas", 0)
    if refusal := refused(servers, {}):
        return QUOTA in refusal.message and bool(status.get("updatedReplicas", 0) < made)
    stuck = any(_lacks_room(pod, warnings) for pod in pods)
    return bool(made > servers["spec"].get("replicas", 1) and stuck)


def _lacks_room(pod: Object, warnings: Mapping[str, str]) -> bool:
    problem = unplaced(pod) or held_up(pod, warnings)
    return problem is not None and (problem.reason is Reason.NoCapacity or bool(IN_USE.search(problem.message)))


def short(ready: int, wanted: int, why: str) -> str:
    """For Ready: `3 of 4 servers; not placed: …`; "" if none is missing."""
    return "; ".join(filter(None, (f"{ready} of {wanted} servers", why))) if ready < wanted else ""
