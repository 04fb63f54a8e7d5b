"""The options of `vllm serve` and what an argument list says of them.

The list is read in vLLM's wheel by dev/vllm/extract_flags.py. vLLM takes underscores for dashes, `--option.key value`
for a key of a JSON option, and any unambiguous beginning of an option; the beginnings are not taken here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources

VERSION = "0.33.0"
"""Whose list this is. Of other versions nothing is said to be unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """`name` is its first; a switch takes no value, and what `takes_many` takes as many as come."""

    name: str
    names: tuple[str, ...]
    switch: bool
    takes_many: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An option in an argument list: where, as written, as it is called first, and the value that came with it."""

    index: int
    written: str
    name: str
    value: str | None


@cache
def options() -> Mapping[str, Option]:
    """Every name of every option → the option."""
    text = resources.files("paceline.engines").joinpath(f"data/vllm-{VERSION}.json").read_text()
    rows = [row for row in json.loads(text)["flags"] if row["names"][0].startswith("-")]
    listed = (
        Option(
            name=row["names"][0],
            names=tuple(row["names"]),
            switch=row["kind"] == "switch",
            takes_many=row.get("many") == "+",
        )
        for row in rows
    )
    return {name: option for option in listed for name in option.names}


def given(args: tuple[str, ...]) -> Iterator[Given]:
    """Every option of the list; what is no option is a value of the one before it."""
    known = options()
    for index, argument in enumerate(args):
        if not argument.startswith("-") or _is_number(argument):
            continue
        written, equals, value = argument.partition("=")
        plain = written.partition(".")[0].replace("_", "-")
        if plain.startswith("-O") and plain not in known:  # -O3
            plain = "--optimization-level"
        option = known.get(plain)
        following = args[index + 1] if index + 1 < len(args) and not args[index + 1].startswith("--") else None
        yield Given(
            index=index,
            written=written,
            name=option.name if option else plain,
            value=value if equals else None if option and option.switch else following,
        )


def stray(args: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Words that are the value of nothing, where they stand."""
    starts = {one.index: one for one in given(args)}
    room = 0
    for index, word in enumerate(args):
        if one := starts.get(index):
            option = options().get(one.name)
            none = "=" in word or (option is not None and option.switch)
            room = 0 if none else len(args) if option and option.takes_many else 1
        elif room:
            room -= 1
        else:
            yield index, word


def value(args: tuple[str, ...], name: str) -> str | None:
    """Of an option by its first name; None where it is not given."""
    return next((one.value for one in given(args) if one.name == name), None)


def nearest(name: str) -> str | None:
    """The known option that a misspelt one is most like."""
    return next(iter(get_close_matches(name, options(), n=1)), None)


def _is_number(argument: str) -> bool:
    try:
        float(argument)
    except ValueError:
        return False
    return True
