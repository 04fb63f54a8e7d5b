"""Whether an apply would change anything, judged from the current object: an apply that is not sent cannot start a
storm.

Only fields that we set are compared, so defaults of the API server and other managers' fields never count. To detect a
field that we *stopped* setting, `stamped` puts a hash of the whole manifest into an annotation, which is compared too.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from paceline.kube.resources import Manifest

APPLIED = "paceline.dev/applied"
"""Annotation with the hash of the manifest that was applied last."""

LIST_KEYS = ("name", "type", "containerPort", "port", "mountPath", "uid")
"""Keys that identify items of a list: the first one present in all items and unique. Otherwise items match by order."""

QUANTITIES = frozenset({"requests", "limits", "capacity", "sizeLimit"})
"""Fields under which the API server rewrites numbers: 0.5 comes back as 500m."""

_SUFFIXES = {
    **{"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)},
    **{suffix: Decimal(1000) ** n for n, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Decimal(1024) ** n for n, suffix in enumerate("KMGTPE", 1)},
}


def stamped(manifest: Manifest) -> Manifest:
    """The manifest with its own hash in the annotation, to apply and to compare with."""
    metadata = manifest["metadata"]
    lasting = {key: value for key, value in metadata.items() if key not in ("uid", "resourceVersion")}
    hashed = json.dumps(manifest | {"metadata": lasting}, sort_keys=True)
    digest = hashlib.sha256(hashed.encode()).hexdigest()[:16]
    annotations = {**(metadata.get("annotations") or {}), APPLIED: digest}
    return manifest | {"metadata": metadata | {"annotations": annotations}}


def needs_apply(current: Mapping[str, Any] | None, desired: Mapping[str, Any]) -> bool:
    """Whether applying `desired` would change `current`; None: the object does not exist."""
    return current is None or difference(current, desired) is not None


def needs_status(current: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether the object's status differs from `status`. Only we write a status, and it has no defaults, so no hash is
    needed."""
    published = current.get("status") or {}
    return difference(published, status) is not None or difference(status, published) is not None


def difference(current: Any, desired: Any, path: str = "", quantity: bool = False) -> str | None:
    """The path of the first value in `desired` that differs in `current`; None if there is none."""
    if current == desired:
        return None  # fast path; the rest compares field by field
    match desired:
        case None | {} | [] if not desired:
            return None  # empty: the API server omits it
        case Mapping():
            if not isinstance(current, Mapping):
                return path
            differences = (
                difference(current.get(key), value, f"{path}.{key}", quantity or key in QUANTITIES)
                for key, value in desired.items()
            )
        case [*_]:
            if not isinstance(current, Sequence) or isinstance(current, str):
                return path
            if key := _list_key(desired):
                by_key = {item.get(key): item for item in current if isinstance(item, Mapping)}
                differences = (
                    difference(by_key.get(item[key]), item, f"{path}[{item[key]}]", quantity) for item in desired
                )
            elif len(current) != len(desired):
                return path
            else:
                differences = (
                    difference(now, item, f"{path}[{n}]", quantity)
                    for n, (now, item) in enumerate(zip(current, desired, strict=True))
                )
        case _:
            same = amount(current) == amount(desired) if quantity else current == desired
            return None if same else path
    return next((where for where in differences if where is not None), None)


def amount(value: Any) -> Any:
    """A quantity as a number, in any notation; other values are returned unchanged."""
    parts = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([numkMGTPE]?|[KMGTPE]i)", str(value))
    return Decimal(parts[1]) * _SUFFIXES[parts[2]] if parts else value


def _list_key(items: Sequence[Any]) -> str | None:
    if not all(isinstance(item, Mapping) for item in items):
        return None
    for key in LIST_KEYS:
        values = [item.get(key) for item in items]
        if all(isinstance(value, str | int) for value in values) and len(set(values)) == len(values):
            return key
    return None
