"""A pool of which some servers find no room serves with the others: that is as it is to be, until there is more room.

Where an autoscaler asks for more than the cluster has, it is so for ever. That there is no room is no revision's fault,
so it holds up neither Ready nor a run.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from paceline.api import Reason
from paceline.plan.objects import Object
from paceline.plan.pods import unplaced

GROUP = "leaderworkerset.sigs.k8s.io/group-index"
"""Label of the pods that are one server over several nodes (LeaderWorkerSet, api/leaderworkerset/v1)."""


def without_room(pods: Iterable[Object]) -> int:
    """Of how many servers the scheduler cannot place a pod for now."""
    staying = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"] and not pod["spec"].get("nodeName"))
    waiting = (pod for pod in staying if (found := unplaced(pod)) and found.says is Reason.NoCapacity)
    return len({pod["metadata"].get("labels", {}).get(GROUP, pod["metadata"]["name"]) for pod in waiting})


def all_there(status: Mapping[str, Any], wanted: int, pods: Iterable[Object]) -> bool:
    """By a Deployment's status: every replica `wanted` is of one revision, whose `pods` these are, and ready, or has no
    room; but for a pool of no servers, one is ready at least."""
    ready, made = status.get("readyReplicas", 0), status.get("replicas", 0)
    if status.get("updatedReplicas", 0) != made or made != wanted:
        return False
    return bool(ready == wanted or (ready and ready + without_room(pods) >= wanted))


def short(ready: int, wanted: int, why: str) -> str:
    """For Ready: `3 of 4 servers; not placed: …`; "" if none is missing."""
    return "; ".join(filter(None, (f"{ready} of {wanted} servers", why))) if ready < wanted else ""
