"""What others said, before it is shown: a server's error, a hub's answer, a note on a shared volume."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


def printable(text: str) -> str:
    """One line without control characters: what moves a terminal's cursor, names its window or turns the direction of
    writing is taken out, and any white space is a space."""
    return "".join(one if one.isprintable() else " " if one.isspace() else "" for one in text)


def printable_lines(text: str) -> str:
    """The same, of a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def in_all_texts(value: T, change: Callable[[str], str]) -> T:
    """`value` with every string in it changed, keys of maps included: of JSON, and of frozen dataclasses."""
    found: Any = value
    match value:
        case str():
            found = change(value)
        case Mapping():
            found = {in_all_texts(key, change): in_all_texts(one, change) for key, one in value.items()}
        case tuple():
            found = tuple(in_all_texts(one, change) for one in value)
        case list():
            found = [in_all_texts(one, change) for one in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            found = dataclasses.replace(value, **in_all_texts(fields, change))
    return found  # type: ignore[no-any-return]
