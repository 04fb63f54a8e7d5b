"""Which field of the spec the cluster's words are about: a person changes a field, and the cluster names an object."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from paceline.api.engine import GPU

NAMED = re.compile(
    r'(?<!volume )"([^"]+)"|with name (\S+)|(?<![\w./-])(/[\w./-]+)|(?:Secret|ConfigMap) [\w.-]+/([\w.-]+)'
)
"""What a kubelet, a scheduler or an admission plugin names: quoted; of a PriorityClass; a path; of a key that is not
there the object that should have it."""
SPEC = "spec"
CLAIM = "unbound immediate PersistentVolumeClaims"
SELECTED = "node affinity/selector"
INSUFFICIENT = re.compile(r"Insufficient (\S+?)[.,]")


def with_field(what: str, written: Any) -> str:
    """The words, and after them the field that says so; `written` is the manifest's spec as it came, well-formed or
    not."""
    fields = tuple(dict.fromkeys(_fields(what, written)))
    return f"{what} ({', '.join(fields)})" if fields else what


def _fields(what: str, written: Any) -> Iterator[str]:
    named = set(_named(what))
    inside = tuple(f"{scheme}://{name}/" for scheme in ("pvc", "configMap") for name in named)
    for path, value in _leaves(written, SPEC):
        if value in named or (isinstance(value, str) and value.startswith(inside)):
            yield path
    if SELECTED in what:
        yield from (f"{path}: {value}" for path, value in _selected(written))
    if (_below(written, "accelerator", "resourceName") or GPU) in INSUFFICIENT.findall(what):
        yield f"spec.accelerator.count: {_below(written, 'accelerator', 'count')} on one node"
    if CLAIM in what:
        yield from (path for path, _ in _leaves(_below(written, "cache"), "spec.cache") if "torageClass" in path)


def _selected(written: Any) -> Iterator[tuple[str, Any]]:
    """Whatever a node must have."""
    for key in ("product", "productLabel", "topology"):
        yield from _leaves(_below(written, "accelerator", key), f"spec.accelerator.{key}")
    for key in ("nodeSelector", "affinity"):
        path = ("engine", "podTemplate", "spec", key)
        yield from _leaves(_below(written, *path), ".".join((SPEC, *path)))


def _below(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _named(what: str) -> Iterator[str]:
    for groups in NAMED.findall(what):
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
