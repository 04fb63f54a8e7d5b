"""The flags and EAGLE3 targets of SGLang's releases, read in their wheels by dev/sglang/extract_flags.py.

A version between two of these releases may have the flags and targets of either. One that is newer than all is judged
by the newest, and may have gained anything.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from paceline.engines.arguments import Flag, read_data, read_flag
from paceline.engines.release import Release, release


@cache
def _data() -> Mapping[str, Any]:
    return read_data("sglang-flags.json")


@cache
def releases() -> tuple[str, ...]:
    """From the oldest on."""
    return tuple(_data()["releases"])


def around(version: str) -> tuple[str, ...]:
    """The releases by which a version is judged: itself, the one before and the one after it, or the newest."""
    number, every = release(version), releases()
    before = [one for one in every if number is None or _number(one) <= number] or [every[0]]
    if number is None or _number(before[-1]) >= number:
        return (before[-1],)
    return (before[-1], *every[every.index(before[-1]) + 1 :][:1])


def is_listed(version: str) -> bool:
    """Whether a version is one of these releases, or a build of one."""
    return release(version) == _number(around(version)[0])


@cache
def listed(version: str) -> Mapping[str, Flag]:
    """Every name of every flag of a release."""
    rows = [row for row in _data()["flags"] if _is_in(version, row["in"])]
    return {name: flag for row in rows for name, flag in read_flag(row)}


@cache
def flags(version: str) -> Mapping[str, Flag]:
    """The flags that a version may have; of two releases, the older has them first."""
    older, *newer = map(listed, around(version))
    return {name: flag for more in newer for name, flag in more.items()} | dict(older)


def first_with(name: str) -> str | None:
    """The first release that has a flag."""
    return next((one for one in releases() if name in listed(one)), None)


@cache
def successors() -> Mapping[str, str]:
    """Flag → what the release that had it last names instead."""
    return {name: row["instead"] for row in _data()["flags"] if "instead" in row for name, _ in read_flag(row)}


@cache
def eagle3_targets(version: str) -> frozenset[str]:
    """Target architectures that can carry an EAGLE3 head."""
    spans: Mapping[str, list[list[str]]] = _data()["eagle3Targets"]
    return frozenset(name for name, span in spans.items() if any(_is_in(one, span) for one in around(version)))


def _is_in(version: str, spans: Iterable[list[str]]) -> bool:
    at = _number(version)
    return any(_number(first) <= at <= _number(last) for first, last in spans)


def _number(version: str) -> Release:
    number = release(version)
    assert number
    return number
