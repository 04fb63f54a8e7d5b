"""Flags and draft targets of SGLang's releases, from dev/sglang/extract_flags.py.

Read in their wheels: all on PyPI from the oldest known release on. An unlisted version is judged by the newest release
before it; a version newer than all may have added anything.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from paceline.engines.arguments import Flag, read_data, read_flag
from paceline.engines.release import Release, release

Spans = Sequence[Sequence[str]]
"""Pairs of releases, first and last; without a last one the span is open."""

NGRAM = {
    "num_draft_tokens": "--speculative-num-draft-tokens",
    "breadth": "--speculative-ngram-max-bfs-breadth",
    "min_match": "--speculative-ngram-min-match-window-size",
    "max_match": "--speculative-ngram-max-match-window-size",
}
"""Field of an n-gram drafter → its flag. Since 0.5.10 SGLang looks for every suffix up to
--speculative-ngram-max-trie-depth, and there is no window."""

RENAMED_TARGETS = ("DeepseekV32ForCausalLM",)
"""Targets that SGLang loaded as DeepseekV3ForCausalLM before 0.5.12 (utils/hf_transformers_utils.py:172 of 0.5.6)."""


@cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = read_data(__package__, "flags.json")
    return data


@cache
def releases() -> tuple[str, ...]:
    """Oldest first."""
    return tuple(_data()["releases"])


@cache
def judged_by(version: str) -> str:
    """The release with that name, also for other builds (0.5.6+fork); else the newest earlier release."""
    plain = re.sub(r"[-+].*", "", version.removeprefix("v"))
    number = release(version)
    if plain in releases() or number is None:
        return plain if plain in releases() else releases()[-1]
    return next((one for one in reversed(releases()) if _number(one) <= number), releases()[0])


def is_listed(version: str) -> bool:
    """Whether the version is a listed release, or a build of one."""
    return release(version) == _number(judged_by(version))


@cache
def flags(version: str) -> Mapping[str, Flag]:
    """Every name of every flag."""
    rows = (row for row in _data()["flags"] if is_in(version, row["in"]))
    return {name: flag for row in rows for name, flag in read_flag(_with_words(row, version))}


def ngram(version: str) -> Mapping[str, str]:
    """NGRAM's flags in a version."""
    return {field: flag for field, flag in NGRAM.items() if flag in flags(version)}


def first_with(name: str) -> str | None:
    """The first release that has a flag."""
    return next((one for one in releases() if name in flags(one)), None)


def elsewhere(name: str, version: str) -> str:
    """Names a release with a flag that this one lacks, as a way out; "" if there is none."""
    having = [one for one in releases() if name in flags(one)]
    at = _places()
    if not having or at[having[-1]] > at[judged_by(version)]:
        later = (one for one in having if at[one] > at[judged_by(version)])
        return f"{next(later)} has it" if having else ""
    return f"{having[-1]} was the last with it; remove it"


@cache
def successors() -> Mapping[str, str]:
    """Flag → the replacement named by the last release with it."""
    return {name: row["instead"] for row in _data()["flags"] if "instead" in row for name, _ in read_flag(row)}


@cache
def eagle3_targets(version: str) -> frozenset[str]:
    """Target architectures that support an EAGLE3 head."""
    return frozenset(name for name, spans in _data()["eagle3Targets"].items() if is_in(version, spans))


def drafts_since(architecture: str, version: str) -> str:
    """The first release that drafts with a target's layers for further tokens, if this one does not yet: it would load
    the whole target again. "" for all others, and for an unknown class."""
    spans = _data()["mtpTargets"].get(architecture, ())
    return "" if not spans or is_in(version, spans) or architecture in RENAMED_TARGETS else str(spans[0][0])


def _with_words(row: Mapping[str, Any], version: str) -> Mapping[str, Any]:
    """The row with the choices that only some of its releases have."""
    some = (word for word, spans in row.get("sometimes", {}).items() if is_in(version, spans))
    return {**row, "choices": sorted((*row["choices"], *some))} if "sometimes" in row else row


def is_in(version: str, spans: Spans) -> bool:
    at = _places()
    here = at[judged_by(version)]
    return any(at[span[0]] <= here and (not span[1:] or here <= at[span[1]]) for span in spans)


@cache
def _places() -> Mapping[str, int]:
    return {one: number for number, one in enumerate(releases())}


def _number(version: str) -> Release:
    number = release(version)
    assert number
    return number
