"""Parses argument lists like argparse, with the flag list of an engine's version.

A flag's value follows "=" or a space, the last occurrence wins, and a unique prefix stands for its flag.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import resources
from typing import Any

from paceline.engines.refusal import Refusal

WHOLE, NUMBER = r"[+-]?\d+", r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf|nan"
_SIZE = r"\d+|\d+(\.\d+)?[kMGT]|\d+[KMGT]i"
COUNT = rf"{WHOLE}|\d+(\.\d+)?[kmgt]|\d+[KMGT]"
VALUE_KINDS: Mapping[str, tuple[str, str]] = {
    "int": (WHOLE, "a whole number"),
    "float": (NUMBER, "a number"),
    "size": (_SIZE, "a whole number such as 8192, 8k (8000) or 8Ki (8192)"),
    "count": (COUNT, "a whole number such as 8192, 8k (8000) or 8K (8192)"),
    "bool": ("(?i:true|false)", "true or false"),
    "context": (rf"(?i:auto)|{COUNT}", "auto, or a whole number such as 8192, 8k (8000) or 8K (8192)"),
}
"""Kind of a flag → the pattern of its values, and a description of it."""
NONE = ("", "None")
SAME_WORD = 0.9
"""difflib's ratio above which an unknown name is a misspelling of a known one: --speculative-attenton-mode has 0.98."""
NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
"""Words that begin with a dash but are values for argparse (`_negative_number_matcher` of Python 3.10 to 3.12). It
takes -8k and -1e3 for flags; such values must follow "="."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """A row of a flag list: `name` is its first name, `many` is argparse's nargs unless it takes one value. `optional`:
    the words in NONE mean no value."""

    name: str
    kind: str
    many: str = ""
    choices: tuple[Any, ...] = ()
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedFlag:
    """A flag in an argument list of the resource.

    `arm` is None in the arguments of all arms; `path` is the list's, `index` the flag's place in it. `written` is the
    name as the user wrote it ("" for words before the first flag), `name` the flag's first name, or a normalised
    `written` if the list lacks it. `glued`: written as --flag=value.
    """

    arm: str | None
    path: str
    index: int
    written: str
    name: str
    values: tuple[str, ...]
    glued: bool
    flag: Flag | None

    @property
    def value(self) -> str:
        """The first value; "" without one."""
        return self.values[0] if self.values else ""

    @property
    def words(self) -> Iterator[tuple[int, str]]:
        """The values with their places in the list."""
        return enumerate(self.values, self.index + (1 if self.written and not self.glued else 0))

    @property
    def surplus(self) -> Iterator[tuple[int, str]]:
        """Words that the flag does not take; an unknown flag takes one value."""
        return itertools.islice(self.words, self._taken(), None)

    def _taken(self) -> int:
        if self.glued:
            return 1
        if not self.written or (self.flag and self.flag.kind == "switch"):
            return 0
        return len(self.values) if self.flag and self.flag.many in ("*", "+") else 1

    def refused(self, message: str, index: int | None = None) -> Refusal:
        return Refusal(arm=self.arm, path=f"{self.path}[{self.index if index is None else index}]", message=message)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagList:
    """The flags of an engine's version, and who sets them.

    `flags` has every name of every flag. `complete`: the engine knows no other name; `exact`: the choices of each are
    complete, too. `source` names the list in messages.

    `managed` are flags that Paceline renders, with the way out; a trailing asterisk matches any ending. `forbidden` are
    flags with the reason. `own` are flags that a candidate may set; an incomplete list also allows unlisted flags that
    begin with `newer_own`. `renamed` are flags with their replacement, including those that still work; `elsewhere`
    names another release that has a flag, as a way out, or nothing.
    """

    source: str
    flags: Mapping[str, Flag]
    complete: bool = True
    exact: bool = True
    managed: Mapping[str, str] = field(default_factory=dict)
    forbidden: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    newer_own: str = ""
    renamed: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Callable[[str], str] = lambda _: ""
    spelling: Callable[[str], str] = lambda written: written
    """A name as written → its spelling in the list."""

    def parse(self, args: Sequence[str], arm: str | None = None, path: str = "engine.args") -> tuple[ParsedFlag, ...]:
        """Splits the list into flags; words before the first flag form an entry without one."""
        return tuple(self._parsed(args, arm, path))

    def is_plain(self, parsed: ParsedFlag) -> bool:
        """Whether the full name of a flag was written: the value of a key (--flag.key) or of a level (-O3) is not
        checked."""
        return parsed.written.replace("_", "-") == self.spelling(parsed.written)

    def short_for(self, name: str) -> tuple[str, ...]:
        """The flags that argparse would match with this prefix."""
        return tuple(sorted(full for full in self.flags if len(name) > 2 and full.startswith(name)))

    def managed_as(self, parsed: ParsedFlag) -> tuple[str, str] | None:
        """The managed flag that this is or abbreviates, and the way out; None if the user may set it."""
        for prefix, way_out in self._prefixes():
            if len(parsed.name) > 3 and not parsed.flag and prefix.startswith(parsed.name):
                return prefix, way_out
        ways_out = ((name, self._way_out(name)) for name in self._readings(parsed))
        return next(((name, way_out) for name, way_out in ways_out if way_out), None)

    def forbidden_as(self, parsed: ParsedFlag) -> tuple[str, str] | None:
        """The forbidden flag that this is or abbreviates, and the reason; None if it is allowed."""
        names = (parsed.name,) if parsed.flag else self.short_for(parsed.name) or (parsed.name,)
        return (names[0], self.forbidden[names[0]]) if self.forbidden.keys() >= set(names) else None

    def is_ours(self, parsed: ParsedFlag) -> bool:
        """Whether it is managed or forbidden: other rules have nothing to add."""
        return bool(self.managed_as(parsed) or self.forbidden_as(parsed))

    def retired(self, written: str) -> str:
        """The replacement of a removed flag; "" for all others."""
        return "" if written in self.flags else self.renamed.get(written, "")

    def is_own(self, parsed: ParsedFlag) -> bool:
        """Whether a candidate may set it: an unknown flag may belong to a fork or a newer release."""
        return parsed.name in self.own or (
            bool(self.newer_own)
            and parsed.name.startswith(self.newer_own)
            and not (parsed.flag or self.short_for(parsed.name))
            and not (self.complete and self._is_listed_elsewhere_or_misspelt(parsed.name))
        )

    def _is_listed_elsewhere_or_misspelt(self, name: str) -> bool:
        return bool(self.elsewhere(name) or get_close_matches(name, self.flags, n=1, cutoff=SAME_WORD))

    def _readings(self, parsed: ParsedFlag) -> tuple[str, ...]:
        """The names for which `parsed` may stand; empty if it is not ours."""
        if self.is_own(parsed) or parsed.name in self.forbidden:
            return ()
        if parsed.flag:
            return self.spelling(parsed.written), parsed.name
        return self.short_for(parsed.name) or (() if self.complete else (parsed.name,))

    def _way_out(self, name: str) -> str:
        if name in self.own or name in self.forbidden:
            return ""
        covering = (way_out for prefix, way_out in self._prefixes() if name.startswith(prefix))
        return self.managed.get(name) or next(covering, "")

    def _prefixes(self) -> Iterator[tuple[str, str]]:
        return ((name[:-1], way_out) for name, way_out in self.managed.items() if name.endswith("*"))

    def _parsed(self, args: Sequence[str], arm: str | None, path: str) -> Iterator[ParsedFlag]:
        starts = [index for index, word in enumerate(args) if _is_flag(word)]
        first = starts[0] if starts else len(args)
        if first > 0:
            values = tuple(args[:first])
            yield ParsedFlag(
                arm=arm, path=path, index=0, written="", name="", values=values, glued=False, flag=None
            )  # fmt: skip
        for start, end in itertools.pairwise([*starts, len(args)]):
            written, equals, value = args[start].partition("=")
            name = self.spelling(written)
            flag = self.flags.get(name)
            yield ParsedFlag(
                arm=arm,
                path=path,
                index=start,
                written=written,
                name=flag.name if flag else name,
                values=((value,) if equals else ()) + tuple(args[start + 1 : end]),
                glued=bool(equals),
                flag=flag,
            )


def one_word(word: str) -> str:
    """--flag=VALUE for a word that contains a flag, a space and its value; "" for any other word."""
    match = re.fullmatch(r"\s*(--?[A-Za-z][\w.-]*)\s+(['\"]?)(.*)\2\s*", word, re.DOTALL)
    return f"{match[1]}={match[3]}" if match else ""


UNLISTED = FlagList(source="no engine", flags={})
"""An empty flag list, for argument lists of which only the spelling matters."""


def flag_value(args: Sequence[str], name: str, flags: FlagList = UNLISTED) -> str | None:
    """The value of `--flag=value` or `--flag value`; None without one. `name` is the flag's first name, if it is
    listed."""
    return next((parsed.values[0] for parsed in flags.parse(args) if parsed.name == name and parsed.values), None)


def read_flags(engine: str, name: str) -> Mapping[str, Flag]:
    """Every name of every flag of a file in the engine's `data`, without positional arguments."""
    return {written: flag for row in read_data(engine, name)["flags"] for written, flag in read_flag(row)}


def read_flag(row: Mapping[str, Any]) -> Iterator[tuple[str, Flag]]:
    """Each name of the flag, with the flag."""
    yield from ((written, flag_of(row)) for written in row["names"] if written.startswith("-"))


def flag_of(row: Mapping[str, Any]) -> Flag:
    return Flag(
        name=row["names"][0],
        kind=row["kind"],
        many=row.get("many", ""),
        choices=tuple(row.get("choices", ())),
        optional=row.get("optional", False),
    )


def read_data(engine: str, name: str) -> Any:
    """A JSON file in the folder `data` of an engine's package (`__package__`)."""
    return json.loads((resources.files(engine) / "data" / name).read_text())


def _is_flag(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not NEGATIVE.fullmatch(word)
