"""Finds the field of the spec behind a message: the cluster names an object, but a person changes a field."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline.core.server import GPU
from paceline.plan.trouble import UNALLOCATED

_NAMED = re.compile(
    r'(?<!volume )"([^"]+)"|with name (\S+)|(?<![\w./-])(/[\w./-]+)|(?:Secret|ConfigMap) [\w.-]+/([\w.-]+)'
)
"""How messages of a kubelet, a scheduler or an admission plugin name things: in quotes; as a PriorityClass; as a path;
or, for a missing key, by the object that should contain it."""
SPEC = "spec"
SELECTORS = "spec.accelerator.deviceSelectors"
_CLAIM = "unbound immediate PersistentVolumeClaims"
SELECTED = "node affinity/selector"
INSUFFICIENT = re.compile(r"Insufficient (\S+?)[.,]")


def with_field(message: str, written: Any) -> str:
    """The message, followed by the fields it concerns. `written` is the manifest's spec as submitted, possibly
    malformed."""
    fields = tuple(dict.fromkeys(_fields(message, written)))
    return f"{message} ({', '.join(fields)})" if fields else message


def _fields(message: str, written: Any) -> Iterator[str]:
    named = set(_named(message))
    inside = tuple(f"{scheme}://{name}/" for scheme in ("pvc", "configMap") for name in named)
    for path, value in _leaves(written, SPEC):
        if value in named or (isinstance(value, str) and value.startswith(inside)):
            yield path
    if SELECTED in message:
        yield from (f"{path}: {value}" for path, value in _selected(written))
    claimed = _below(written, "accelerator", "deviceClassName")
    lacking = UNALLOCATED in message if claimed else _resource(written) in INSUFFICIENT.findall(message)
    if lacking:
        yield f"spec.accelerator.count: {_below(written, 'accelerator', 'count')} on one node"
    if claimed and (lacking or f"device class {claimed} " in message):
        yield f"spec.accelerator.deviceClassName: {claimed}"
        yield from (path for path, _ in _leaves(_below(written, "accelerator", "deviceSelectors"), SELECTORS))
    if _CLAIM in message:
        yield from (path for path, _ in _leaves(_below(written, "cache"), "spec.cache") if "torageClass" in path)


def _resource(written: Any) -> Any:
    return _below(written, "accelerator", "resourceName") or GPU


def _selected(written: Any) -> Iterator[tuple[str, Any]]:
    """Fields that a node must match."""
    for key in ("product", "productLabel", "topology"):
        yield from _leaves(_below(written, "accelerator", key), f"spec.accelerator.{key}")
    for path in (("nodeSelector",), ("engine", "podTemplate", "spec", "affinity")):
        yield from _leaves(_below(written, *path), ".".join((SPEC, *path)))


def _below(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _named(message: str) -> Iterator[str]:
    for groups in _NAMED.findall(message):
        yield from (name.rstrip(".:") for name in groups if name)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    match value:
        case Mapping():
            for key, below in value.items():
                yield from _leaves(below, f"{path}.{key}")
        case str() | int() | None:
            if value is not None:
                yield path, value
        case Sequence():
            for number, below in enumerate(value):
                yield from _leaves(below, f"{path}[{number}]")
