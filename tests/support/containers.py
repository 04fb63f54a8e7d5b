"""The containers of a pod, those before the others included."""

from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.kubernetes import Manifest

from paceline.engines.pod_template import is_arm
from paceline.plan.trouble import container_statuses


def containers(pod: Mapping[str, Any]) -> list[Manifest]:
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
    return [one for one in pod["spec"].get("initContainers", ()) if is_arm(one["name"])]


def container(pod: Mapping[str, Any], name: str = "server") -> dict[str, Any]:
    """The container of this name; in a round's pod "server" is the first arm's."""
    found: dict[str, Any] = next(
        one for one in containers(pod) if one["name"] == name or (name == "server" and is_arm(one["name"]))
    )
    return found


def status_of(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What the kubelet says of this container; "server" in a round's pod is the arm that runs. Empty while there is
    nothing."""
    for one in container_statuses(pod):
        if one["name"] == name or (name == "server" and is_arm(one["name"]) and "running" in one["state"]):
            return dict(one)
    return {}
