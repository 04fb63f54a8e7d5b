"""The report as JSON: the fields of `model` in camelCase, numbers as numbers."""

import json as encoder
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from pydantic.alias_generators import to_camel

from paceline.report.model import Report


def json(report: Report) -> str:
    document = {"emulated": report.emulated, **_plain(report)}
    return encoder.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {to_camel(field.name): _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, tuple | list) else value
