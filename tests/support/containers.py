"""The containers of a pod, those before the others included."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.kubernetes import Manifest


def containers(pod: Manifest) -> list[Manifest]:
    """All of a pod or its template."""
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def statuses(pod: Manifest, told: Iterable[Mapping[str, Any]]) -> Manifest:
    """Where a kubelet reports these: of init containers, and of the others."""
    before = {one["name"] for one in pod["spec"].get("initContainers", ())}
    found = list(told)
    return {
        "initContainerStatuses": [one for one in found if one["name"] in before],
        "containerStatuses": [one for one in found if one["name"] not in before],
    }


def arms_of(pod: Manifest) -> list[Manifest]:
    """The containers of a round's arms."""
    return [one for one in pod["spec"].get("initContainers", ()) if one["name"].startswith("arm-")]


def container(pod: Mapping[str, Any], name: str = "server") -> dict[str, Any]:
    """The container of this name; in a round's pod "server" is the first arm's."""
    spec = pod["spec"]
    every = (*spec.get("initContainers", ()), *spec["containers"])
    found: dict[str, Any] = next(
        one for one in every if one["name"] == name or (name == "server" and one["name"].startswith("arm-"))
    )
    return found


def status_of(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What the kubelet says of this container; "server" in a round's pod is the arm that runs. Empty while there is
    nothing."""
    status = pod["status"]
    for one in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        if one["name"] == name or (name == "server" and one["name"].startswith("arm-") and "running" in one["state"]):
            return dict(one)
    return {}
