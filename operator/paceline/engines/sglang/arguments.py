"""Rules about pasted arguments, by the flag list of the engine's version."""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from paceline.engines.adapter import Refusal
from paceline.engines.release import release
from paceline.engines.sglang.case import Case, Rule, Written
from paceline.engines.sglang.flags import KINDS, Flag, Given, first_with
from paceline.engines.sglang.owned import LOSSY, OWN_FLAGS, OWNED, RETIRED, SPECULATIVE, TUNING
from paceline.engines.sglang.versions import is_newer, neighbours


def _stray(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        if not one.given.name:
            yield one.refused(f"{one.given.values[0]} belongs to no flag; write --flag=value")


def _variable(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        if found := next((word for word in (one.given.name, *one.given.values) if "$(" in word), None):
            yield one.refused(f"{found}: $(VAR) is not filled in; write the value")


def _owned(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        name, reads_as = one.given.name, _read_as(one, case.flags)
        if reads_as in LOSSY or reads_as in TUNING:
            continue
        if way_out := OWNED.get(reads_as):
            short = "" if reads_as == name else f" (read as {reads_as})"
            yield one.refused(f"{name}{short} is set by Paceline from the resource; {way_out}")
        elif (reads_as.startswith(SPECULATIVE) and one.flag) or (len(name) > 3 and SPECULATIVE.startswith(name)):
            yield one.refused(f"{name} is made of a candidate's draft and shape; write it there")


def _misplaced(case: Case) -> Iterator[Refusal]:
    for one in case.shared:
        if one.name in TUNING:
            yield one.refused(f"{one.given.name} is a candidate's own; move it to the args of the candidates")


def _lossy(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        if (flag := _read_as(one, case.flags)) in LOSSY:
            yield one.refused(f"{flag} lets tokens pass that the target would not have written; remove it")


def _abbreviated(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        if one.flag or _retired(one, case) or _is_owned(one, case):
            continue
        match _meant(one.given, case.flags):
            case [only]:
                yield one.refused(f"{one.given.name} is short for {only}; write it in full")
            case [_, *_] as several:
                yield one.refused(f"{one.given.name} may be short for {_few(several)}; write one of them in full")


def _gone(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        if instead := _retired(one, case):
            yield one.refused(f"{one.given.name} is no longer a flag of {case.engine}; write {instead}")


def _unknown(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        if one.flag or not one.given.name or is_newer(case.version):
            continue
        if _retired(one, case) or _meant(one.given, case.flags) or _is_owned(one, case):
            continue
        yield one.refused(
            f"{one.given.name} is no flag of {case.engine}{_judged_by(case)}{_hint(one.given.name, case)}"
        )


def _misvalued(case: Case) -> Iterator[Refusal]:
    for one in _all(case):
        if one.flag and not _is_owned(one, case) and (wrong := _wrong(one.given, one.flag, _is_known(case))):
            yield one.refused(f"{one.given.name} {wrong}")


def _twice(case: Case) -> Iterator[Refusal]:
    shared = {one.name for one in case.shared}
    for written in case.lists:
        seen = set(shared) if written and written[0].arm else set()
        for one in written:
            if one.name and one.name in seen:
                yield one.refused(f"{one.given.name} is given twice; keep one")
            seen.add(one.name)


def _different(case: Case) -> Iterator[Refusal]:
    """An allow list: TUNING and OWN_FLAGS. What is no flag, or none in full, is told by another rule."""
    for arm in case.arms:
        for one in case.own(arm):
            known = one.flag or (one.given.name and is_newer(case.version))
            if not known or _is_owned(one, case) or one.name.startswith(SPECULATIVE) or one.name in OWN_FLAGS:
                continue
            yield one.refused(
                f"{one.given.name} is no part of speculation, and arms may differ in nothing else: "
                "set it in spec.engine.args, for all arms"
            )


RULES = (
    Rule(id="args-stray", broken=_stray, reason="the server exits 2: unrecognized arguments", source="argparse"),
    Rule(
        id="args-variable",
        broken=_variable,
        reason="the kubelet fills it in where a server serves, and nobody where it is measured",
        source="Kubernetes; ours",
    ),
    Rule(
        id="args-owned",
        broken=_owned,
        reason="the last of two flags wins, and it would be theirs",
        source="argparse",
    ),
    Rule(
        id="args-misplaced",
        broken=_misplaced,
        reason="the baseline would carry it, and its revision change with it",
        source="ours",
    ),
    Rule(
        id="args-lossy",
        broken=_lossy,
        reason="a faster arm would write other text than the baseline",
        source="fields/spec.py:109",
    ),
    Rule(
        id="args-abbreviated",
        broken=_abbreviated,
        reason="it means another flag, or none, as soon as the next version has one more",
        source="argparse, allow_abbrev; --tp and --pp tried",
    ),
    Rule(
        id="args-gone",
        broken=_gone,
        reason="the server exits 2, or soon will",
        source="the flag lists; --cuda-graph-max-bs tried",
    ),
    Rule(
        id="args-unknown",
        broken=_unknown,
        reason="the server exits 2: unrecognized arguments",
        source="the flag lists",
    ),
    Rule(
        id="args-value",
        broken=_misvalued,
        reason="the server exits 2: invalid value",
        source="the flag lists",
    ),
    Rule(id="args-twice", broken=_twice, reason="the last of two wins, unsaid", source="argparse"),
    Rule(
        id="args-different",
        broken=_different,
        reason="the arms would differ in more than their speculation",
        source="ours",
    ),
)


def _all(case: Case) -> Iterator[Written]:
    for written in case.lists:
        yield from written


def _meant(given: Given, known: Mapping[str, Flag]) -> list[str]:
    """The flags that argparse would take the beginning of a name for."""
    return sorted({flag for flag in known if len(given.name) > 2 and flag.startswith(given.name)})


def _read_as(one: Written, known: Mapping[str, Flag]) -> str:
    """The flag that a name stands for, if it stands for one only."""
    meant = [one.given.name] if one.flag else _meant(one.given, known)
    names = {known[name].name for name in meant}
    if len(names) == 1:
        return next((name for name in meant if name in OWNED), names.pop())
    return next((name for name in meant if name in OWNED), one.given.name)


def _is_owned(one: Written, case: Case) -> bool:
    reads_as = _read_as(one, case.flags)
    ours = reads_as in OWNED or reads_as in LOSSY or (reads_as.startswith(SPECULATIVE) and reads_as not in TUNING)
    return ours or (len(one.given.name) > 3 and SPECULATIVE.startswith(one.given.name))


def _retired(one: Written, case: Case) -> str:
    """What takes its place in this version; "" where it is in use."""
    instead = (one.flag.instead if one.flag else "") or RETIRED.get(one.given.name, "")
    return instead if re.sub(r"[={].*", "", instead) in case.flags or "{" in instead or "<" in instead else ""


def _judged_by(case: Case) -> str:
    """A version that is not known is judged by those around it, and that is worth saying where it refuses."""
    return "" if _is_known(case) else f" (as {' and '.join(row.version for row in neighbours(case.version))} tell)"


def _is_known(case: Case) -> bool:
    return release(case.version) == release(case.speaks.version)


def _hint(name: str, case: Case) -> str:
    if later := first_with(name):
        return f"; {later} has it"
    near = get_close_matches(name, [flag for flag in case.flags if flag not in OWNED], n=1)
    return f"; did you mean {near[0]}?" if near else "; remove it"


def _wrong(given: Given, flag: Flag, exactly: bool) -> str:
    """What is wrong with the values of a known flag, and what to write; "" if nothing is.

    The choices of another version than one that is known `exactly` may be more.
    """
    several, count = bool(flag.many), len(given.values)
    if flag.kind == "switch":
        return "takes no value; write it alone" if count else ""
    if count == 0 and flag.many not in ("*", "?"):
        return f"needs a value; write {given.name}=VALUE"
    if count > 1 and (not several or flag.many == "?"):
        return f"takes one value; got {' '.join(given.values)}"
    if given.glued and count > 1:
        return f"takes its values after a space: {given.name} {' '.join(given.values)}"
    pattern, words = KINDS.get(flag.kind, ("(?s).*", ""))
    for value in (value for value in given.values if "$(" not in value):
        if not re.fullmatch(pattern, value):
            return f"takes {words}; got {value}"
        if flag.kind == "json" and not _is_json(value):
            return f"takes JSON; got {value}"
        if exactly and flag.choices and value not in map(str, flag.choices):
            near = get_close_matches(value, map(str, flag.choices), n=1)
            return f"has no choice {value}; " + (f"did you mean {near[0]}?" if near else f"take {_few(flag.choices)}")
    return ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _few(names: "list[str] | tuple[object, ...]", most: int = 8) -> str:
    shown = [str(name) for name in names[:most]]
    return ", ".join(shown) + (" …" if len(names) > most else "")
