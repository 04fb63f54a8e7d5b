"""The flags of SGLang's server by release, and what an argument list says of them.

The lists are read in the wheels by dev/sglang/extract_flags.py. SGLang reads them with argparse: any beginning of a
flag that fits only one stands for it, the last of two wins, and what follows a flag without `=` is its value.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from paceline.engines.sglang.versions import KNOWN, neighbours

WHOLE, NUMBER = r"[+-]?\d+", r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf|nan"
SIZE = r"\d+|\d+(\.\d+)?[kMGT]|\d+[KMGT]i"
KINDS: Mapping[str, tuple[str, str]] = {
    "int": (WHOLE, "a whole number"),
    "float": (NUMBER, "a number"),
    "size": (SIZE, "a whole number such as 8192, 8k (8000) or 8Ki (8192)"),
}
"""What a value must match, and in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """`name` is its first. `many` is argparse's nargs where it is not one value; `instead` what is to be written."""

    name: str
    kind: str
    many: str = ""
    choices: tuple[Any, ...] = ()
    instead: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A flag in an argument list: where, its name as written ("" for values that follow none), and its values."""

    index: int
    name: str
    values: tuple[str, ...]
    glued: bool = False
    """Written as --flag=value."""


@cache
def listed(version: str) -> Mapping[str, Flag]:
    """Every name of every flag of a known release."""
    return {
        name: Flag(
            name=row["names"][0],
            kind=row["kind"],
            many=row.get("many", ""),
            choices=tuple(row.get("choices", ())),
            instead=row.get("instead", ""),
        )
        for row in _data(version)["flags"]
        for name in row["names"]
    }


def flags(version: str) -> Mapping[str, Flag]:
    """What a version may have: its own list, or those of the known releases before and after it."""
    older, *newer = (listed(row.version) for row in neighbours(version))
    return {name: flag for more in newer for name, flag in more.items()} | dict(older)


def first_with(name: str) -> str | None:
    """The first known release that has a flag."""
    return next((row.version for row in KNOWN if name in listed(row.version)), None)


@cache
def eagle3_hooks(version: str) -> frozenset[str]:
    """Target architectures of a known release that can carry an EAGLE3 head."""
    return frozenset(_data(version)["eagle3Targets"])


def given(args: tuple[str, ...]) -> Iterator[Given]:
    """The list cut into flags; the values before the first flag have none."""
    starts = [i for i, argument in enumerate(args) if _is_flag(argument)]
    if args and (not starts or starts[0] > 0):
        yield Given(index=0, name="", values=args[: starts[0] if starts else None])
    for start, end in itertools.pairwise([*starts, len(args)]):
        name, equals, value = args[start].partition("=")
        values = ((value,) if equals else ()) + args[start + 1 : end]
        yield Given(index=start, name=name, values=values, glued=bool(equals))


def flag_name(argument: str) -> str:
    return argument.split("=", 1)[0]


def flag_value(args: tuple[str, ...], flag: str) -> str | None:
    """The value of `--flag=value` or `--flag value`."""
    return next((one.values[0] for one in given(args) if one.name == flag and one.values), None)


def _is_flag(argument: str) -> bool:
    return argument.startswith("-") and len(argument) > 1 and not re.fullmatch(NUMBER, argument)


@cache
def _data(version: str) -> Mapping[str, Any]:
    path = resources.files("paceline.engines") / "data" / f"sglang-{version}.json"
    found: Mapping[str, Any] = json.loads(path.read_text())
    return found
