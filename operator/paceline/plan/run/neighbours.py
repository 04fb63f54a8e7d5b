"""What else had accelerators on a round's node while it measured."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.plan.objects import Object
from paceline.plan.step import parse_time

MOST = 16
"""That are named."""


def neighbours(mine: Object | None, pods: Iterable[Object], resource: str) -> tuple[str, ...]:
    """NAMESPACE/NAME (ACCELERATORS) of the pods on the node that were there at some time between the start of the
    round's pod and now. One that was deleted meanwhile is not known any more."""
    began = (mine or {}).get("status", {}).get("startTime")
    own = mine["metadata"].get("uid") if mine else None
    found = (
        (f"{pod['metadata']['namespace']}/{pod['metadata']['name']}", _taken(pod, resource))
        for pod in pods
        if pod["metadata"].get("uid") != own and not _over_before(pod, began)
    )
    named = sorted(f"{name} ({count})" for name, count in found if count)
    return tuple(named[:MOST])


def _taken(pod: Object, resource: str) -> int:
    containers = pod.get("spec", {}).get("containers", ())
    return sum(int(one.get("resources", {}).get("limits", {}).get(resource, 0)) for one in containers)


def _over_before(pod: Object, began: str | None) -> bool:
    """A pod that has ended keeps its place in the list until somebody collects it."""
    if began is None or pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
        return False
    ends = [parse_time(end) for end in _ends(pod)]
    return bool(ends) and max(ends) < parse_time(began)


def _ends(pod: Object) -> Iterator[str]:
    for status in pod["status"].get("containerStatuses", ()):
        state: Mapping[str, Any] = status.get("state", {}).get("terminated") or {}
        if "finishedAt" in state:
            yield state["finishedAt"]
