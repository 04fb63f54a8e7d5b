"""The canonical form of hashed values, without fields that equal their default.

A field added by a later release must not change the hash of objects that do not use it, so hashes exclude defaults.
Every hash that outlives a process goes through here: `evidence/fingerprint.py` (a run's spec, where a default is left
empty) and `render/revision.py` (records of `core`, whose fields have defaults).
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest(value: Any, length: int = 10, *, ensure_ascii: bool = True) -> str:
    """The first hex digits of the SHA-256 of canonical JSON: sorted keys, no spaces, other types as `str`.

    `ensure_ascii` is part of a hash's form and must never change for existing hashes: revisions escape non-ASCII
    characters, fingerprints do not.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=ensure_ascii, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def without_empty(value: Any) -> Any:
    """`value` without map entries that are empty (None, "", {} or []), at any depth. List items all stay."""
    if isinstance(value, Mapping):
        inner = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None and item not in ({}, [], "")}
    return [without_empty(item) for item in value] if isinstance(value, list | tuple) else value


def without_defaults(value: Any) -> Any:
    """A dataclass as a map of its fields that differ from their default, recursively through dataclasses; any other
    value unchanged."""
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    return {
        field.name: without_defaults(getattr(value, field.name))
        for field in dataclasses.fields(value)
        if getattr(value, field.name) != _default(field)
    }


def _default(field: "dataclasses.Field[Any]") -> Any:
    """The field's default; MISSING, which equals nothing, if it has none."""
    factory = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()
