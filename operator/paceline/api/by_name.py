"""Conversion by field name between models of the API and records of core.

A field of one name holds one fact, in two forms:

    API                                    core
    percentage `5%`, decimal `"0.7"`       float
    duration `1h30m`                       timedelta
    model                                  record, or the mapping that Kubernetes takes
    absent                                 the default of the record

What differs by more than this is an exception, and the caller passes its value.
"""

import dataclasses
import re
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from paceline import core
from paceline.api.model import Model
from paceline.api.types import Matches
from paceline.core.text import fraction, percentage

Record = TypeVar("Record")

NAMES: Mapping[type[Any], Mapping[str, str]] = {
    core.Cache: {"claim": "claim_name"},
    core.Dataset: {"rate": "request_rate"},
    core.DeploymentSpec: {"run_pod_labels": "pod_labels", "run_queue_name": "queue_name", "run_parity": "parity"},
    core.Engine: {"api_key": "api_key_secret_ref", "admin_key": "admin_key_secret_ref"},
}
"""Fields of a record that the API calls otherwise."""
ADDED: Mapping[type[Any], frozenset[str]] = {
    core.Accelerator: frozenset(("topology_label",)),
    core.Dataset: frozenset(("arrivals",)),
}
"""Fields that are left out where they equal their default: hashes are taken over what is written, so the hashes of a
resource that does not use such a field do not move."""


def to_core(record: type[Record], model: Model, /, **exceptions: Any) -> Record:
    return record(**given(record, model, *exceptions), **exceptions)


def given(record: Any, model: Model | None, *exceptions: str) -> dict[str, Any]:
    """Field of the record → its value, where the model has one."""
    if model is None:
        return {}
    values, model = dict[str, Any](), model.effective()
    for name, hint in _hints(record).items():
        value = getattr(model, NAMES.get(record, {}).get(name, name), None)
        if value is not None and name not in exceptions:
            values[name] = _in_core(_kind(hint), value)
    return values


def to_manifest(model: type[Model], record: Any, /, **exceptions: Any) -> dict[str, Any]:
    """The fields of the model as the record has them; those that are None are left out when the model is written."""
    names = {theirs: ours for ours, theirs in NAMES.get(type(record), {}).items()}
    values: dict[str, Any] = {}
    for field, info in model.model_fields.items():
        name = names.get(field, field)
        if field in exceptions:
            values[field] = exceptions[field]
        elif hasattr(record, name):
            value = getattr(record, name)
            if isinstance(value, float) and _is_percentage(info.annotation):
                value = percentage(value)
            else:
                value = _in_manifest(_kind(info.annotation), value)
            empty = isinstance(value, str | tuple | dict) and not value
            values[field] = None if _left_out(record, name) or (empty and info.default is None) else value
    return values


UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""Milliseconds."""
MOST_DIGITS = 99_999
"""Of a unit: `Duration` has five digits of each."""


def duration(text: str) -> timedelta:
    """Of a `Duration`."""
    parts = re.findall(r"([0-9]+)(ms|h|m|s)", text)
    return timedelta(milliseconds=sum(int(number) * UNITS[unit] for number, unit in parts))


def duration_text(seconds: float) -> str:
    """In seconds and milliseconds; in hours and minutes, too, if there are more seconds than a unit's digits."""
    left, text = round(1000 * seconds), ""
    for unit in ("h", "m"):
        if left // 1000 > MOST_DIGITS:
            count = min(left // UNITS[unit], MOST_DIGITS)
            text += f"{count}{unit}"
            left -= count * UNITS[unit]
    for unit in ("s", "ms"):
        if count := left // UNITS[unit]:
            text += f"{count}{unit}"
            left -= count * UNITS[unit]
    return text or "0s"


def decimal(value: float) -> str:
    """Plain digits, at most six of them after the point."""
    return f"{Decimal(repr(value)):.6f}".rstrip("0").rstrip(".")


def _in_core(kind: Any, value: Any) -> Any:
    match value:
        case Model() if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return to_core(kind, value)
        case Model():
            return value.model_dump(by_alias=True, exclude_none=True)
        case tuple():
            return tuple(_in_core(_kind(get_args(kind)[0]), item) for item in value)
        case str() if kind is timedelta:
            return duration(value)
        case str() if kind is float:
            return fraction(value)
        case int() if kind is float:
            return float(value)
    return value


def _in_manifest(kind: Any, value: Any) -> Any:
    match value:
        case Mapping():
            return dict(value)
        case tuple():
            return tuple(_in_manifest(_kind(get_args(kind)[0]), item) for item in value)
        case float():
            return int(value) if kind is int else decimal(value)
        case _ if dataclasses.is_dataclass(value):
            return to_manifest(kind, value)
    return value


def _left_out(record: Any, name: str) -> bool:
    if name not in ADDED.get(type(record), ()):
        return False
    (default,) = (field.default for field in dataclasses.fields(record) if field.name == name)
    return bool(getattr(record, name) == default)


@cache
def _hints(record: Any) -> Mapping[str, Any]:
    return get_type_hints(record)


def _kind(annotation: Any) -> Any:
    """The type, without None and without bounds."""
    while get_origin(annotation) in (Union, UnionType) or hasattr(annotation, "__metadata__"):
        annotation = next(kind for kind in get_args(annotation) if kind is not NoneType)
    return annotation


def _is_percentage(annotation: Any) -> bool:
    if said := getattr(annotation, "__metadata__", ()):
        return any(isinstance(one, Matches) and one.pattern.endswith("%$") for one in said)
    return any(map(_is_percentage, get_args(annotation)))
