"""The codec of status: a frozen record for each of its objects, read from and written to the API server's JSON.

A field is defined once, in the record: its JSON name follows from its own (`p95_ttft` is `p95TTFT`), the CRD's schema
from its type and its docstring. Kubernetes has no floats in a schema, so a fraction is a decimal string there and a
float here.

Reading is lenient, because any release may have written a status: an unknown field is skipped, a missing one gets the
record's default, and an invalid number is NaN, so that "not a number" differs from "missing".
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from decimal import Decimal
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema

from paceline.core.kept import by_value

_Class = TypeVar("_Class")
LARGEST_WHOLE = 2**53
"""Larger numbers are not read: floats, as JSON has them in many programs, cannot represent them exactly."""
LONGEST_NUMBER = 32
"""Characters of a decimal string."""
UPPER = {
    "cpu": "CPU", "e2e": "E2E", "itl": "ITL", "mhz": "MHz", "sha256": "SHA256", "sm": "SM", "tpot": "TPOT",
    "ttft": "TTFT",
}  # fmt: skip
"""Words with this spelling in JSON, unless a name begins with them."""


@dataclass(frozen=True, slots=True)
class Always:
    """Marks a field that is always written; others are omitted at their default."""


ALWAYS = Always()


@dataclass(frozen=True, slots=True)
class Internal:
    """Marks a field of the operator's memory: in JSON it is in its object's `internal`, which is no part of the API."""


INTERNAL = Internal()
INSIDE = "internal"
_MEMORY = "The operator's memory, and that of `kubectl paceline`. No API: it changes without notice."


@dataclass(frozen=True, slots=True)
class Decimals:
    """Marks a float that is a decimal string in status: with `places` after the point, or six significant digits."""

    places: int | None = None

    def to_text(self, value: float) -> str:
        text = decimal(value) if self.places is None else f"{value:.{self.places}f}"
        return text if len(text) <= LONGEST_NUMBER else "nan"

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "maxLength": LONGEST_NUMBER}


Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Decimals()]
Number2 = Annotated[float, Decimals(2)]
Number3 = Annotated[float, Decimals(3)]
Number4 = Annotated[float, Decimals(4)]
Number5 = Annotated[float, Decimals(5)]
"""Numbers with this many digits after the point."""


def decimal(value: float) -> str:
    """Plain decimal digits, six of them significant; `nan` for NaN."""
    return f"{Decimal(f'{value:.6g}').normalize():f}" if math.isfinite(value) else "nan"


def finite(value: float | None) -> float | None:
    """The number if it is finite, else None."""
    return value if value is not None and math.isfinite(value) else None


def to_camel(name: str) -> str:
    """The JSON name: `rest_sha256` is `restSHA256`, `try_` is `try`."""
    first, *others = name.rstrip("_").split("_")
    return first + "".join(UPPER.get(word, word.capitalize()) for word in others)


@dataclass_transform(frozen_default=True, kw_only_default=True)
def record(cls: type[_Class]) -> type[_Class]:
    """A frozen dataclass for a part of status."""
    made = dataclass(frozen=True, slots=True, kw_only=True)(cls)
    made.__pydantic_config__ = ConfigDict(alias_generator=to_camel, use_attribute_docstrings=True)  # type: ignore[attr-defined]
    made.__get_pydantic_json_schema__ = classmethod(_json_schema)  # type: ignore[attr-defined]
    return made


def _json_schema(cls: type, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
    """Adds the docstrings of inherited fields, which pydantic does not read, and nests the operator's memory."""
    json = handler.resolve_ref_schema(handler(schema))
    for base in filter(is_record, cls.__bases__):
        for name, inherited in adapter(base).json_schema()["properties"].items():
            json["properties"][name].setdefault("description", inherited["description"])
    inside = {slot.wire: json["properties"].pop(slot.wire) for slot in slots(cls) if slot.internal}
    if inside:
        json["properties"][INSIDE] = {"type": "object", "description": _MEMORY, "properties": inside}
    return json


@dataclass(frozen=True, slots=True)
class Slot:
    """One field: its name here and in JSON, and how it is read and written. A missing one becomes `default()`."""

    name: str
    wire: str
    type: Any
    """The type with its annotations."""
    default: Callable[[], Any]
    always: bool
    internal: bool
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def from_status(kind: type[_Class], value: object) -> _Class:
    """The record from the API server's value; never raises."""
    entries = _mapping(value)
    memory = _mapping(entries.get(INSIDE))
    read: dict[str, Any] = {}
    for slot in slots(kind):
        entry = (memory if slot.internal else entries).get(slot.wire)
        read[slot.name] = slot.default() if entry is None else slot.read(entry)
    return kind(**read)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


@by_value(128)
def kept_status(kind: type[_Class], value: object) -> _Class:
    """`from_status` for an object's whole status, cached for all passes."""
    return from_status(kind, value)


def to_status(of: object) -> dict[str, Any]:
    """JSON without None and without defaults, unless marked ALWAYS."""
    entry: dict[str, Any] = {}
    memory: dict[str, Any] = {}
    for slot in slots(type(of)):
        value = getattr(of, slot.name)
        if value is not None and (slot.always or value != slot.default()):
            (memory if slot.internal else entry)[slot.wire] = slot.write(value)
    return {**entry, INSIDE: memory} if memory else entry


_KNOWN: dict[type, tuple[Slot, ...]] = {}


def slots(kind: type) -> tuple[Slot, ...]:
    """The fields of a record, in order, including memory."""
    if kind not in _KNOWN:
        _KNOWN[kind] = tuple(_slots(kind))
    return _KNOWN[kind]


def _slots(kind: type) -> Iterator[Slot]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        marks = tuple(_marks(hints[field.name]))
        read, write, empty = _codec(hints[field.name])
        made = None if field.default_factory is MISSING else field.default_factory
        required = made is None and field.default is MISSING
        default = made or (empty if required else _constant(field.default))
        yield Slot(
            name=field.name,
            wire=to_camel(field.name),
            type=hints[field.name],
            default=default,
            always=required or ALWAYS in marks,
            internal=INTERNAL in marks,
            read=read,
            write=write,
        )


def adapter(kind: type) -> TypeAdapter[Any]:
    """The pydantic adapter of a type, for the CRD's schema."""
    return TypeAdapter(kind)


def inner(annotation: Any) -> Any:
    """The type without annotations and without None."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, UnionType):
            (annotation,) = (kind for kind in get_args(annotation) if kind is not NoneType)
        else:
            return annotation


def is_record(kind: object) -> bool:
    """Whether it is a record of status; a spec's objects refuse unknown fields."""
    config = getattr(kind, "__pydantic_config__", None)
    return isinstance(kind, type) and config is not None and "extra" not in config


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _marks(annotation: Any) -> list[Any]:
    """Annotations of the type itself, not of its content."""
    if get_origin(annotation) is Annotated:
        of, *marks = get_args(annotation)
        return [*marks, *_marks(of)]
    if get_origin(annotation) in (Union, UnionType):
        return [mark for kind in get_args(annotation) for mark in _marks(kind)]
    return []


Codec = tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[], Any]]
"""Read and write functions for a value, and the default for a missing required one."""


def _codec(annotation: Any) -> Codec:
    kind = inner(annotation)
    if get_origin(kind) is tuple:
        read, write, _ = _codec(get_args(kind)[0])
        return (
            lambda value: tuple(map(read, value)) if isinstance(value, list | tuple) else (),
            lambda value: [write(item) for item in value],
            tuple,
        )
    if get_origin(kind) is dict:
        read, write, _ = _codec(get_args(kind)[1])
        return (
            lambda value: {str(key): read(item) for key, item in value.items()} if isinstance(value, Mapping) else {},
            lambda value: {key: write(item) for key, item in value.items()},
            dict,
        )
    if is_record(kind):
        return lambda value: from_status(kind, value), to_status, lambda: from_status(kind, {})
    if kind is float:
        form = next(mark for mark in _marks(annotation) if isinstance(mark, Decimals))
        return number, form.to_text, lambda: math.nan
    if kind is int:
        return _whole, int, int
    if kind is bool:
        return lambda value: value is True, bool, bool
    if kind is Any:
        return (lambda value: value), (lambda value: value), dict
    if kind is str or get_origin(kind) is Literal:
        return lambda value: value if isinstance(value, str) else str(value), str, str
    raise TypeError(f"status has no {kind}")


def number(value: object) -> float:
    """Parses a number or its text; NaN for anything else."""
    try:
        read = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return read if math.isfinite(read) else math.nan


def _whole(value: object) -> int | None:
    read = number(value)
    return round(read) if abs(read) <= LARGEST_WHOLE else None
