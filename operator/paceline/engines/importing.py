"""What `paceline import` knows of an engine: how it is started, and which arguments enable speculation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.engines.arguments import FlagList, ParsedFlag

SourceOf = Callable[[str], str]
"""A model's name in the arguments → its source."""
CURRENT = "current"
"""The candidate for the Deployment's current speculation."""
GUESSED_STEPS = 3
BLOCKED = ("DFLASH", "DSPARK")
"""Algorithms that propose blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A part of the Deployment that is omitted or changed.

    `path` is a field of the Deployment's pod (`containers[engine].env[HF_TOKEN]`) or a flag, `text` says why, and what
    happens instead.
    """

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class UnansweredError(ValueError):
    """Questions that the Deployment leaves open and an option can answer; one per line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculating:
    """The resource's draft and candidates; None and () without speculation."""

    said: str = ""
    """The flag that enables speculation, and its value."""
    draft: Mapping[str, Any] | None = None
    candidates: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Importing:
    """How users start the engine, and what its arguments mean."""

    modules: tuple[str, ...]
    """Modules after `python -m` that start it."""
    programs: tuple[tuple[str, str], ...] = ()
    """Programs that start it, each with its first argument."""
    entry_point: str = ""
    """Part of the name of an image whose entry point starts the engine: its containers have arguments, but no command.
    """
    title: str = ""
    """Prefix of its processes' titles, before two colons."""
    repositories: tuple[str, ...]
    """Repositories of its official image: their tags are the engine's releases."""
    flags: Callable[[str], FlagList]
    """Engine version → its flag list."""
    bare_model: bool = False
    """Whether the first word without a flag is the model."""
    key_variable: str = ""
    """The variable with its API key."""
    other_hub: str = ""
    """The variable that makes it download from ModelScope."""
    speculative: tuple[str, ...] = ("--speculative-", "--spec-")
    """Prefixes of speculative flags, except the few that a candidate's `args` accept."""
    removed: frozenset[str] = frozenset()
    """Rules of the engine whose arguments are removed from an imported resource, in addition to the shared rules."""
    speculating: Callable[[str, Sequence[ParsedFlag], SourceOf, str], Speculating]
    """Engine version, speculative flags, where models are, and the target's name in the Deployment."""


def value_of(flags: Sequence[ParsedFlag], name: str) -> str:
    return next((parsed.value for parsed in flags if parsed.name == name), "")


def words_of(parsed: ParsedFlag) -> list[str]:
    return [f"{parsed.written}={parsed.values[0]}"] if parsed.glued else [parsed.written, *parsed.values]


def text_of(parsed: ParsedFlag) -> str:
    return " ".join(words_of(parsed))
