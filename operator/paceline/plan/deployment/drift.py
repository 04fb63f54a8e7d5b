"""What somebody has added to our servers by hand: it stays, for it is another's field, and was never measured.

What of ours is changed by hand is put back with the next pass. What the API server adds are values of fields, never
items of these lists.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from paceline.plan.objects import Object

KEYS = {"env": "name", "volumeMounts": "mountPath", "ports": "containerPort"}
"""Lists of a container → what an item is known by."""


def drift(there: Object, ours: Mapping[str, Any]) -> tuple[str, ...]:
    """`env FOO of container server`, of two pod templates."""
    return tuple(_pod(there.get("spec") or {}, ours.get("spec") or {}))


def _pod(there: Mapping[str, Any], ours: Mapping[str, Any]) -> Iterator[str]:
    for volume in _added(there.get("volumes"), ours.get("volumes"), "name"):
        yield f"volume {volume}"
    for kind, word in (("containers", "container"), ("initContainers", "init container")):
        mine = {container["name"]: container for container in ours.get(kind) or ()}
        for container in there.get(kind) or ():
            if container["name"] not in mine:
                yield f"{word} {container['name']}"
                continue
            asked = mine[container["name"]]
            for field, key in KEYS.items():
                for item in _added(container.get(field), asked.get(field), key):
                    yield f"{field} {item} of {word} {container['name']}"
            if container.get("envFrom") and not asked.get("envFrom"):
                yield f"envFrom of {word} {container['name']}"


def _added(there: Iterable[Mapping[str, Any]] | None, ours: Iterable[Mapping[str, Any]] | None, key: str) -> list[Any]:
    known = {item.get(key) for item in ours or ()}
    return [item.get(key) for item in there or () if item.get(key) not in known]
