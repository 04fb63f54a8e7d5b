"""Server-side apply on plain dicts: who owns which field, and what an apply makes of it.

The rules are those of structured-merge-diff as a 1.34 API server shows them (tests/conformance holds us to it): maps
merge, lists merge by key where the schema names one, every other list is one value.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.kube import Conflict, Invalid, Manifest

Item = tuple[tuple[str, Any], ...]
"""The key of a list's item: names and values; of a set of plain values: ("", value)."""
Path = tuple[str | Item, ...]
Fields = frozenset[Path]
ListKeys = Mapping[str, tuple[str, ...]]
"""By the name of the field that holds the list: what its items are told apart by; ("",) where the items are a set. By
its path, `status.search.arms`: where it is otherwise for one of that name."""

LIST_KEYS: ListKeys = {
    "conditions": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "imagePullSecrets": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ownerReferences": ("uid",),
    "finalizers": ("",),
}
DEFAULTS = {"protocol": "TCP"}
"""Defaults of key fields."""

MISSING = object()


@dataclass(frozen=True, slots=True)
class Manager:
    """`operation` is Apply or Update, `subresource` "" or status."""

    name: str
    operation: str
    subresource: str = ""

    def __str__(self) -> str:
        return f'"{self.name}"' + (f' with subresource "{self.subresource}"' if self.subresource else "")


Managers = Mapping[Manager, Fields]


def fields_of(value: Any, keys: ListKeys, path: Path = ()) -> Fields:
    """What a manager that sends `value` owns: plain values, whole lists, items of keyed lists, maps sent empty."""
    match value:
        case dict() if value or not path:
            return frozenset().union(*(fields_of(child, keys, (*path, name)) for name, child in value.items()))
        case list() if names := _keys(path, keys):
            items = [(*path, item_key(item, names)) for item in value]
            if len(set(items)) != len(items):
                raise Invalid(500, "Unknown", f"{show(path)}: duplicate entries for a key")
            below = (fields_of(item, keys, at) for item, at in zip(value, items, strict=True) if names != ("",))
            return frozenset(items).union(*below)
        case _:
            return frozenset({path})


def merge(live: Any, sent: Any, keys: ListKeys, path: Path = ()) -> Any:
    """`sent` laid over `live`."""
    match live, sent:
        case dict(), dict():
            both = {name: merge(live.get(name, MISSING), child, keys, (*path, name)) for name, child in sent.items()}
            return live | both
        case list(), list() if names := _keys(path, keys):
            here = {item_key(item, names): item for item in live}
            there = {item_key(item, names): item for item in sent}
            return [
                merge(here.get(key, MISSING), there[key], keys, (*path, key)) if key in there else here[key]
                for key in _order(list(here), list(there))
            ]
        case _:
            return copy.deepcopy(sent)


def _order(here: list[Item], there: list[Item]) -> list[Item]:
    """The order sent, with what else is there kept where it was."""
    order: list[Item] = []
    rest = list(there)
    for key in here:
        if key not in there:
            order.append(key)
            continue
        while rest and rest[0] not in here:
            order.append(rest.pop(0))
        if rest and rest[0] == key:
            order.append(rest.pop(0))
    return order + rest


def applied(
    live: Manifest, sent: Manifest, manager: Manager, managers: Managers, *, force: bool, keys: ListKeys
) -> tuple[Manifest, dict[Manager, Fields]]:
    """What is there after `manager` applied `sent`, and who owns what. Conflict if others own what would change."""
    mine = fields_of(sent, keys)
    before = managers.get(manager, frozenset())
    others = {who: what for who, what in managers.items() if who != manager}
    clashes = {
        who: taken
        for who, what in others.items()
        if (taken := {p for p in what & mine if _differ(live, sent, p, keys)})
    }
    if clashes and not force:
        told = "\n".join(
            f"conflict with {who}: {show(p)}" for who, taken in clashes.items() for p in sorted(taken, key=str)
        )
        raise Conflict(409, "Conflict", f"Apply failed: {told}")
    others = {who: what - clashes.get(who, set()) for who, what in others.items()}
    kept = _with_parents(frozenset().union(mine, *others.values()))
    gone = _with_parents(before) - kept - {("metadata",)}
    result = without(merge(live, sent, keys), gone, keys)
    owners = {who: what for who, what in {**others, manager: mine}.items() if what}
    for path in frozenset().union(*owners.values()):  # a map sent as {} that loses its last field so becomes null
        was = value_at(live, path, keys)
        if was and isinstance(was, dict) and value_at(result, path, keys) == {}:
            raise Invalid(422, "Invalid", f"{show(path)}: Invalid value: null: must be of type object")
    return result, owners


def updated(
    old: Manifest, new: Manifest, manager: Manager, managers: Managers, keys: ListKeys
) -> dict[Manager, Fields]:
    """Who owns what after `manager` replaced `old` by `new`: it owns what it changed, the others what is left."""
    there = fields_of(new, keys)
    changed = frozenset(path for path in there if _differ(old, new, path, keys))
    left = {who: (what & there) - changed for who, what in managers.items()}
    left[manager] = left.get(manager, frozenset()) | changed
    return {who: what for who, what in left.items() if what}


def without(value: Any, paths: Iterable[Path], keys: ListKeys) -> Any:
    """A copy without what is at `paths`."""
    result = copy.deepcopy(value)
    for path in sorted(paths, key=len):  # an item before its key
        parent, last = value_at(result, path[:-1], keys), path[-1]
        if isinstance(parent, dict) and isinstance(last, str):
            parent.pop(last, None)
        elif isinstance(parent, list):
            names = _keys(path[:-1], keys)
            parent[:] = [item for item in parent if item_key(item, names) != last]
    return result


def value_at(value: Any, path: Path, keys: ListKeys) -> Any:
    """What is at `path`; MISSING if nothing is."""
    for depth, step in enumerate(path):
        if isinstance(step, str):
            value = value.get(step, MISSING) if isinstance(value, dict) else MISSING
        else:
            names = _keys(path[:depth], keys)
            items = value if isinstance(value, list) else []
            value = next((item for item in items if item_key(item, names) == step), MISSING)
    return value


def item_key(item: Any, names: tuple[str, ...]) -> Item:
    return tuple((name, item if name == "" else item.get(name, DEFAULTS.get(name))) for name in names)


def managed_fields(managers: Managers, api_version: str, time: str) -> list[dict[str, Any]]:
    """As `metadata.managedFields` says it."""
    entries = []
    for who, what in sorted(managers.items(), key=lambda entry: str(entry[0])):
        tree: dict[str, Any] = {}
        for path in what:
            node = tree
            for step in path:
                node = node.setdefault(f"f:{step}" if isinstance(step, str) else _key_text(step), {})
            if not isinstance(path[-1], str):
                node["."] = {}
        entry: dict[str, Any] = {
            "manager": who.name,
            "operation": who.operation,
            "apiVersion": api_version,
            "time": time,
        }
        entry |= {"fieldsType": "FieldsV1", "fieldsV1": tree}
        entries.append(entry | ({"subresource": who.subresource} if who.subresource else {}))
    return entries


def show(path: Path) -> str:
    return "".join(f".{step}" if isinstance(step, str) else f"[{_key_text(step)}]" for step in path)


def _key_text(item: Item) -> str:
    if item[0][0] == "":
        return f"v:{json.dumps(item[0][1])}"
    return f"k:{json.dumps(dict(item), separators=(',', ':'))}"


def _keys(path: Path, keys: ListKeys) -> tuple[str, ...]:
    """What the items of the list at `path` are told apart by; () if it is one value."""
    names = keys.get(path[-1], ()) if path and isinstance(path[-1], str) else ()
    return keys.get(".".join(step for step in path if isinstance(step, str)), names) if names else ()


def _differ(old: Any, new: Any, path: Path, keys: ListKeys) -> bool:
    """What is at `path` is not the same. An item or a map in itself has no value: it is there or it is not."""
    before, after = value_at(old, path, keys), value_at(new, path, keys)
    if isinstance(before, dict) and isinstance(after, dict):
        return False
    return before is not after and before != after


def _with_parents(fields: Fields) -> Fields:
    """And the maps and lists that hold them; not the items, which are owned only if they are owned by themselves."""
    parents = (path[:depth] for path in fields for depth in range(1, len(path)))
    return fields | frozenset(path for path in parents if isinstance(path[-1], str))
