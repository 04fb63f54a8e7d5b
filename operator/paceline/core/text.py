"""Text functions: foreign text made safe to show (a server's error, a hub's response, a note on a shared volume),
percentages, durations and decimals."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any, TypeVar

T = TypeVar("T")


def printable(text: str) -> str:
    """One line without control characters, which could move a terminal's cursor, rename its window or reverse the
    direction of writing. All white space becomes spaces."""
    return "".join(char if char.isprintable() else " " if char.isspace() else "" for char in text)


def printable_lines(text: str) -> str:
    """`printable` for each line of a text."""
    return "\n".join(map(printable, text.split("\n")))


def in_all_texts(value: T, change: Callable[[str], str]) -> T:
    """`value` (JSON or frozen dataclasses) with `change` applied to every string, including keys of maps."""
    changed: Any = value
    match value:
        case str():
            changed = change(value)
        case Mapping():
            changed = {in_all_texts(key, change): in_all_texts(item, change) for key, item in value.items()}
        case tuple():
            changed = tuple(in_all_texts(item, change) for item in value)
        case list():
            changed = [in_all_texts(item, change) for item in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            changed = dataclasses.replace(value, **in_all_texts(fields, change))
    return changed  # type: ignore[no-any-return]


def count(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def error_text(error: Exception) -> str:
    """Why foreign text or data cannot be read, without the words of Python; one line."""
    match error:
        case KeyError(args=(name,)):
            return printable(f"{name} is missing")
        case RecursionError():
            return "it is nested too deep"
        case TypeError() | AttributeError() | LookupError() | ArithmeticError():
            return "unexpected form"
        case _ if "set_int_max_str_digits" in str(error):
            return "a number has too many digits"
        case _:
            return " ".join(str(error).split())


def fraction(text: str) -> float:
    """Parses a percentage or a decimal."""
    return float(Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1))


def percentage(value: float) -> str:
    """Plain digits, at most four after the point."""
    return f"{Decimal(repr(value)) * 100:.4f}".rstrip("0").rstrip(".") + "%"


def plain_decimal(value: float) -> str:
    """Plain digits, at most six after the point."""
    return f"{Decimal(repr(value)):.6f}".rstrip("0").rstrip(".")


_UNITS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""Unit of a duration → milliseconds."""
_MOST = 99_999
"""Maximum number of a unit: `Duration` has five digits per unit, and may repeat a unit."""


def duration(text: str) -> timedelta:
    """Parses a sum of units, such as 1h30m."""
    parts = re.findall(r"([0-9]+)(ms|h|m|s)", text)
    return timedelta(milliseconds=sum(int(number) * _UNITS[unit] for number, unit in parts))


def duration_text(seconds: float) -> str:
    """The shortest form, largest units first."""
    left, text = round(1000 * seconds), ""
    for unit, size in _UNITS.items():
        while left >= size:
            number = min(left // size, _MOST)
            left -= number * size
            text += f"{number}{unit}"
    return text or "0s"
