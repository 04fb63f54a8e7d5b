"""Additions by hand to our servers: they stay, as the fields have another owner, and were never measured.

Our own fields are put back in the next pass. The API server adds values of fields, never items of these lists.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.plan.objects import Object

KEYS = {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort"}
"""List of a container → the key of its items."""


def drift(actual: Object, ours: Mapping[str, Any]) -> tuple[str, ...]:
    """Each addition in the `actual` pod template, as in `env FOO of container server`."""
    return tuple(_pod(actual.get("spec") or {}, ours.get("spec") or {}))


def _pod(actual: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for volume in _added(actual.get("volumes"), ours.get("volumes"), "name"):
        yield f"volume {volume}"
    for kind, word in (("containers", "container"), ("initContainers", "init container")):
        mine = {container["name"]: container for container in ours.get(kind) or ()}
        for container in actual.get(kind) or ():
            if container["name"] not in mine:
                yield f"{word} {container['name']}"
                continue
            rendered = mine[container["name"]]
            for field, key in KEYS.items():
                for item in _added(container.get(field), rendered.get(field), key):
                    yield f"{field} {item} of {word} {container['name']}"
            if container.get("envFrom") and not rendered.get("envFrom"):
                yield f"envFrom of {word} {container['name']}"


def _added(actual: Iterable[Mapping[str, Any]] | None, ours: Iterable[Mapping[str, Any]] | None, key: str) -> list[Any]:
    rendered = {item.get(key) for item in ours or ()}
    return [item.get(key) for item in actual or () if item.get(key) not in rendered]
