"""Rules about a server and its arms; rules about arguments that all engines share.

Each engine has a table of `EngineRule`s. It includes the shared rules below under its own ids, with its own sources if
it has any; the rules read the engine's `FlagList`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Generic, TypeVar

from paceline.core import Arm, Server
from paceline.engines.arguments import NONE, VALUE_KINDS, Flag, FlagList, ParsedFlag, one_word
from paceline.engines.refusal import Refusal

_Subject = TypeVar("_Subject")


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRule(Generic[_Subject]):
    """`reason` is what would happen otherwise, `source` the place in the engine where that was read or seen."""

    id: str
    reason: str
    source: str
    check: Callable[[_Subject], Iterable[Refusal]]


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A server and the arms that share it, with their arguments parsed once for all rules."""

    server: Server
    arms: tuple[Arm, ...]
    flags: FlagList

    @property
    def version(self) -> str:
        return self.server.engine.version

    @property
    def engine(self) -> str:
        """The engine's name for messages."""
        return f"{self.server.engine.type} {self.version}"

    @cached_property
    def shared(self) -> tuple[ParsedFlag, ...]:
        """The arguments of all arms."""
        return self.flags.parse(self.server.engine.args)

    def own(self, arm: Arm) -> tuple[ParsedFlag, ...]:
        return self.flags.parse(arm.args, arm.name, "args")

    @cached_property
    def lists(self) -> tuple[tuple[ParsedFlag, ...], ...]:
        """Each argument list of the resource."""
        return (self.shared, *(self.own(arm) for arm in self.arms))

    @property
    def all(self) -> Iterator[ParsedFlag]:
        for parsed_flags in self.lists:
            yield from parsed_flags

    def find(self, *names: str) -> Iterator[ParsedFlag]:
        """The flags of all arms with one of these first names."""
        return (parsed for parsed in self.shared if parsed.name in names)

    def value(self, name: str) -> str | None:
        """The value of a flag of all arms; None without one."""
        return next((parsed.values[0] for parsed in self.find(name) if parsed.values), None)


def refusals(rules: Iterable[EngineRule[_Subject]], subject: _Subject) -> tuple[Refusal, ...]:
    """All refusals, in the order of the rules, without duplicates."""
    refused = (replace(refusal, rule=rule.id) for rule in rules for refusal in rule.check(subject))
    return tuple(dict.fromkeys(refused))


def reserved_variables(names: Mapping[str, str]) -> Callable[[Configuration], Iterator[Refusal]]:
    """Refuses environment variables that Paceline sets, with the way out."""

    def check(configuration: Configuration) -> Iterator[Refusal]:
        for index, variable in enumerate(configuration.server.engine.env):
            if way_out := names.get(str(variable["name"])):
                message = f"{variable['name']} is set by Paceline; {way_out}"
                yield Refusal(path=f"engine.env[{index}].name", message=message)

    return check


def _stray(configuration: Configuration) -> Iterator[Refusal]:
    """Words before the first flag, and a flag and its value in one word."""
    for parsed in configuration.all:
        given = "=".join((parsed.written, *parsed.values[: parsed.glued]))
        if whole := one_word(given):
            yield parsed.refused(f"{given} is one argument with a space; split it: {whole}")
        for index, word in () if parsed.written else parsed.words:
            yield parsed.refused(f"{word} belongs to no flag; remove it, or write --flag=VALUE", index)


def _unfilled(configuration: Configuration) -> Iterator[Refusal]:
    """References to variables, which the kubelet would fill in for a serving pod, but not in a round."""
    for parsed in configuration.all:
        for index, word in variables(parsed):
            yield parsed.refused(f"{word}: $(VAR) is not filled in; write the value", index)


def variables(parsed: ParsedFlag) -> Iterator[tuple[int, str]]:
    if "$(" in parsed.written:
        yield parsed.index, parsed.written
    for index, word in parsed.words:
        if "$(" in word:
            yield index, f"{parsed.written}={word}" if parsed.glued and index == parsed.index else word


def _managed(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.all:
        if managed := configuration.flags.managed_as(parsed):
            name, way_out = managed
            yield parsed.refused(f"{_read_as(parsed, name)} is set by Paceline from the resource; {way_out}")


def _forbidden(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.all:
        if forbidden := configuration.flags.forbidden_as(parsed):
            name, reason = forbidden
            yield parsed.refused(f"{_read_as(parsed, name)}: {reason}; remove it")


def _abbreviated(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in _unlisted(configuration):
        match configuration.flags.short_for(parsed.name):
            case [full]:
                yield parsed.refused(f"{parsed.written} is short for {full}; write it in full")
            case [_, *_] as several:
                yield parsed.refused(f"{parsed.written} may be short for {few(several)}; write one of them in full")


def _retired(configuration: Configuration) -> Iterator[Refusal]:
    for parsed in configuration.all:
        if instead := configuration.flags.retired(parsed.written):
            yield parsed.refused(f"{parsed.written} is no longer a flag of {configuration.engine}; write {instead}")


def _unknown(configuration: Configuration) -> Iterator[Refusal]:
    flags = configuration.flags
    for parsed in _unlisted(configuration) if flags.complete else ():
        if not flags.short_for(parsed.name) and not flags.is_own(parsed):
            yield parsed.refused(f"{flags.source} has no flag {parsed.written}; {_way_out(flags, parsed.name)}")


def _misvalued(configuration: Configuration) -> Iterator[Refusal]:
    flags = configuration.flags
    for parsed in configuration.all:
        if parsed.flag and not flags.is_ours(parsed):
            whole = flags.is_plain(parsed)
            if fault := fault_of(parsed, parsed.flag, flags.exact) if whole else _fault_of_a_part(parsed):
                yield parsed.refused(f"{parsed.written} {fault}")


def _twice(configuration: Configuration) -> Iterator[Refusal]:
    """Flags given twice. Keys of a JSON flag (--flag.key) may repeat."""
    shared = {parsed.name for parsed in configuration.shared}
    for parsed_flags in configuration.lists:
        names = set(shared) if parsed_flags and parsed_flags[0].arm else set()
        for parsed in parsed_flags:
            repeated = parsed.written and parsed.name in names and "." not in parsed.written
            if repeated and not configuration.flags.is_ours(parsed):
                yield parsed.refused(f"{parsed.written} is given twice; keep one")
            names.add(parsed.name)


def _different(configuration: Configuration) -> Iterator[Refusal]:
    """An allow list of flags in which arms may differ; other rules refuse unknown or managed flags."""
    flags = configuration.flags
    for arm in configuration.arms:
        for parsed in configuration.own(arm):
            known = parsed.flag or (parsed.written and not flags.complete)
            if known and not flags.is_own(parsed) and not flags.is_ours(parsed):
                yield parsed.refused(
                    f"{parsed.written} is not a speculation flag: set it in spec.engine.args, for all arms, or in "
                    "engine.args of this one, to measure it"
                )


STRAY = EngineRule(id="stray", check=_stray, reason="the server exits 2: unrecognized arguments", source="argparse")
UNFILLED = EngineRule(
    id="variable",
    check=_unfilled,
    reason="the kubelet fills it in for a server that serves, but nothing does in a round",
    source="Kubernetes; ours",
)
MANAGED = EngineRule(
    id="managed", check=_managed, reason="the last of two flags wins, and the user's would be last", source="argparse"
)
FORBIDDEN = EngineRule(
    id="forbidden", check=_forbidden, reason="the comparison would be worthless", source="the flag's reason"
)
ABBREVIATED = EngineRule(
    id="abbreviated",
    check=_abbreviated,
    reason="another release may add a flag that begins the same, and rules and limits look for full names",
    source="argparse, allow_abbrev",
)
RETIRED = EngineRule(id="retired", check=_retired, reason="the server exits 2", source="the flag lists")
UNKNOWN = replace(STRAY, id="unknown", check=_unknown, source="the flag lists")
MISVALUED = EngineRule(
    id="value", check=_misvalued, reason="the server exits 2: invalid value", source="the flag lists"
)
TWICE = EngineRule(id="twice", check=_twice, reason="the last of two wins, and no log says so", source="argparse")
DIFFERENT = EngineRule(
    id="different", check=_different, reason="the arms would differ in more than their speculation", source="ours"
)


def few(names: Sequence[object], most: int = 8) -> str:
    return ", ".join(map(str, names[:most])) + (" …" if len(names) > most else "")


def _unlisted(configuration: Configuration) -> Iterator[ParsedFlag]:
    """Flags that are not listed, retired or ours, and do not include a value, which `_stray` refuses."""
    flags = configuration.flags
    for parsed in configuration.all:
        known = parsed.flag or flags.retired(parsed.written) or flags.is_ours(parsed)
        if parsed.written and not known and " " not in parsed.written:
            yield parsed


def _read_as(parsed: ParsedFlag, name: str) -> str:
    return parsed.written if parsed.flag or name == parsed.name else f"{parsed.written} (read as {name})"


def _way_out(flags: FlagList, name: str) -> str:
    if other := flags.elsewhere(name):
        return other
    near = get_close_matches(name, [flag for flag in flags.flags if flag not in flags.managed], n=1, cutoff=0.8)
    return f"did you mean {near[0]}?" if near else "remove it"


def fault_of(parsed: ParsedFlag, flag: Flag, exact: bool) -> str:
    """The fault of a listed flag's values and the way out; "" if there is none."""
    count = len(parsed.values)
    if flag.kind == "switch":
        return "takes no value; write it alone" if count else ""
    if count == 0 and flag.many not in ("*", "?"):
        return f"needs a value; write {parsed.written}=VALUE"
    if count > 1 and flag.many in ("", "?"):
        return f"takes one value; got {' '.join(parsed.values)}"
    if parsed.glued and count > 1:
        return f"takes its values after a space: {parsed.written} {' '.join(parsed.values)}"
    pattern, words = VALUE_KINDS.get(flag.kind, ("(?s).*", ""))
    for value in (value for value in parsed.values if "$(" not in value and not (flag.optional and value in NONE)):
        if not re.fullmatch(pattern, value):
            return f"takes {words}; got {value}"
        if flag.kind == "json" and not _is_json(value):
            return f"takes JSON; got {value}"
        if flag.kind == "object" and not _is_json(value, dict):
            return f"takes a JSON object; got {value}"
        word = value.lower().replace("-", "_") if flag.kind == "folded" else value
        if exact and flag.choices and word not in map(str, flag.choices):
            near = get_close_matches(word, map(str, flag.choices), n=1)
            return f"cannot be {value}; " + (f"did you mean {near[0]}?" if near else f"take {few(flag.choices)}")
    return ""


def _fault_of_a_part(parsed: ParsedFlag) -> str:
    """The fault of a flag's key or of a level, whose single value is not checked."""
    return f"takes one value; got {' '.join(parsed.values)}" if len(parsed.values) > 1 else ""


def _is_json(text: str, kind: type = object) -> bool:
    try:
        return isinstance(json.loads(text), kind)
    except ValueError:
        return False
