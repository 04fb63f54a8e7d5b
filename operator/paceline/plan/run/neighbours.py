"""Other pods that had accelerators on a round's node while it measured."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from paceline.core.manifest import Object
from paceline.core.text import count
from paceline.plan.step import parse_time
from paceline.plan.trouble import container_statuses

_MOST = 16
"""Maximum number of named neighbours."""


def neighbours(pod: Object | None, pods: Iterable[Object], resource: str) -> tuple[str, ...]:
    """NAMESPACE/NAME (ACCELERATORS) of the pods on the node at any time between the start of the round's `pod` and its
    end, or now. A pod that was deleted in between is missing. Claimed devices are only reported as claims, because we
    may not read claims of other namespaces."""
    began = (pod or {}).get("status", {}).get("startTime")
    ended = max(map(parse_time, _ends(pod)), default=None) if pod else None
    own = pod["metadata"].get("uid") if pod else None
    counts = (
        (f"{other['metadata']['namespace']}/{other['metadata']['name']}", _holds(other, resource))
        for other in pods
        if other["metadata"].get("uid") != own and not _ended_before(other, began) and not _begins_after(other, ended)
    )
    return tuple(sorted(f"{name} ({held})" for name, held in counts if held)[:_MOST])


def _holds(pod: Object, resource: str) -> str:
    """The node's devices that the pod holds; "" if none."""
    held, claims = _accelerators(pod, resource), len(pod.get("spec", {}).get("resourceClaims", ()))
    claimed = count(claims, "claim") if claims else ""
    return ", ".join(filter(None, (str(held) if held else "", claimed)))


def _accelerators(pod: Object, resource: str) -> int:
    """As the scheduler counts: its containers hold them side by side, its init containers one after another."""
    spec = pod.get("spec", {})
    beside, before = (
        [int(container.get("resources", {}).get("limits", {}).get(resource, 0)) for container in spec.get(kind, ())]
        for kind in ("containers", "initContainers")
    )
    return max(sum(beside), *before, 0)


def _ended_before(pod: Object, began: str | None) -> bool:
    """Whether the pod ended before the round. Ended pods stay in the list until garbage collection. Times are whole
    seconds: the previous round may have ended in the second in which this one began."""
    if began is None or pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
        return False
    ends = [parse_time(end) for end in _ends(pod)]
    return bool(ends) and max(ends) <= parse_time(began)


def _begins_after(pod: Object, ended: datetime | None) -> bool:
    """Whether the pod started after the round: the next round may use the node before this one's end was processed. A
    pod not yet admitted by the kubelet has no start time and no accelerator."""
    began = pod.get("status", {}).get("startTime")
    return began is None or (ended is not None and parse_time(began) >= ended)


def _ends(pod: Object) -> Iterator[str]:
    for status in container_statuses(pod):
        state: Mapping[str, Any] = status.get("state", {}).get("terminated") or {}
        if "finishedAt" in state:
            yield state["finishedAt"]
