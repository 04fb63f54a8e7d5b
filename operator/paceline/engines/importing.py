"""What `paceline import` knows of an engine: how it is started, and how its arguments say that it speculates."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.engines.arguments import FlagList, ParsedFlag

SourceOf = Callable[[str], str]
"""A model as the arguments name it → its source."""
CURRENT = "current"
"""The candidate that a Deployment speculates with."""
GUESSED_STEPS = 3
BLOCKED = ("DFLASH", "DSPARK")
"""Algorithms that propose a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A thing of the Deployment that is not carried over, or not as it stands there.

    `path` is a field of the Deployment's pod (`containers[engine].env[HF_TOKEN]`) or a flag, `text` says why and what
    """

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class UnansweredError(ValueError):
    """What the Deployment does not say and an option can; a line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculating:
    """The draft and the candidates of the resource; None and () without speculation."""

    said: str = ""
    """The flag that says so, and its value."""
    draft: Mapping[str, Any] | None = None
    candidates: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Importing:
    """How a person starts the engine, and what its arguments say."""

    modules: tuple[str, ...]
    """Modules after `python -m` that start it."""
    programs: tuple[tuple[str, str], ...] = ()
    """Programs that start it, each with its first argument."""
    entry_point: str = ""
    """Part of an image's name whose entry point starts it: a container of that has arguments, and no command."""
    title: str = ""
    """How the titles of its processes begin, before two colons."""
    repositories: tuple[str, ...]
    """Official repositories of its image: their tags are the engine's releases."""
    flags: Callable[[str], FlagList]
    """By engine version."""
    bare_model: bool = False
    """The first word that belongs to no flag is the model."""
    key_variable: str = ""
    """The variable from which it reads the key of its clients."""
    other_hub: str = ""
    """The variable that makes it download from ModelScope."""
    speculative: tuple[str, ...] = ("--speculative-", "--spec-")
    """How the flags of speculation begin, but for the few that a candidate's `args` take."""
    removed: frozenset[str] = frozenset()
    """Rules of the engine whose arguments are taken out of an imported resource, beside the rules of all engines."""
    speculating: Callable[[str, Sequence[ParsedFlag], SourceOf, str], Speculating]
    """Engine version, flags of speculation, where models are, and the target as the Deployment names it."""


def value_of(flags: Sequence[ParsedFlag], name: str) -> str:
    return next((parsed.value for parsed in flags if parsed.name == name), "")


def words_of(parsed: ParsedFlag) -> list[str]:
    return [f"{parsed.written}={parsed.values[0]}"] if parsed.glued else [parsed.written, *parsed.values]


def text_of(parsed: ParsedFlag) -> str:
    return " ".join(words_of(parsed))
