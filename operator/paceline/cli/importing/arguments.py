"""Maps an engine's arguments to fields of the resource."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.cli.importing.secret import MASK
from paceline.engines import ENGINES
from paceline.engines.arguments import FlagList, ParsedFlag
from paceline.engines.importing import Note

_FIELDS: Mapping[str, str] = {
    "--model-path": "model",
    "--model": "model",
    "--revision": "revision",
    "--served-model-name": "served",
    "--tp-size": "tensor_parallel",
    "--tensor-parallel-size": "tensor_parallel",
    "--trust-remote-code": "trusts",
    "--api-key": "api_key",
    "--admin-api-key": "admin_key",
    "--port": "port",
    "--nnodes": "nodes",
}
"""Flag → its field of `Told`. Lists all names of a flag: releases differ in which comes first."""
SECRETS = ("--api-key", "--admin-api-key", "--hf-token")
NODES = "for a model over several nodes, a SpeculativeDeployment has spec.accelerator.nodes"
TEMPLATE = re.compile(r" <([\w-]+)>")
"""A flag's value in the replacement that an engine names, as in --attn-dp-size <dp-size>."""
REQUESTS = ("--max-running-requests", "--max-num-seqs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The parsed arguments. `args` have no field; `speculative` configure speculation; `questions` need a person's
    answer."""

    model: str
    revision: str = ""
    served: tuple[str, ...] = ()
    tensor_parallel: int = 1
    trusts: bool = False
    api_key: str = ""
    admin_key: str = ""
    port: str = ""
    args: tuple[tuple[str, ...], ...] = ()
    speculative: tuple[ParsedFlag, ...] = ()
    most_requests: int | None = None
    notes: tuple[Note, ...] = ()
    questions: tuple[str, ...] = ()


def carried_arguments(engine: str, version: str, args: Sequence[str], target: str = "") -> Told:
    """Assign each argument to a field. `target` is the model that the user names."""
    flags = ENGINES[engine].importing.flags(version)
    words, notes = renamed(engine, version, args)
    last: dict[str, ParsedFlag] = {}
    model = ""
    questions = list[str]()
    for parsed in (_in_full(one, flags) for one in flags.parse(words)):
        surplus = [word for _, word in parsed.surplus] if parsed.written else list(parsed.values)
        if ENGINES[engine].importing.bare_model and surplus and not model:
            model, *surplus = surplus
        for word in surplus:
            if "$(" in word:
                questions.append(f"{word}: its value is not in the Deployment: write it out there")
            notes.append(Note(path=word, text="belongs to no flag, and is left out"))
        if not parsed.written:
            continue
        key = parsed.written if "." in parsed.written else parsed.name
        if key in last:
            again = readable(_words(last.pop(key)))
            notes.append(Note(path=again, text="is given again later, and the last one counts"))
        last[key] = parsed
        if parsed.name == "--api-key" and parsed.values[1:] and not list(parsed.surplus):
            text = f"{len(parsed.values)} keys are given, but Paceline's servers take one"
            notes.append(Note(path=parsed.written, text=text))
    fields = {_FIELDS[name]: parsed for name, parsed in last.items() if name in _FIELDS}
    if "nodes" in fields and fields["nodes"].value != "1":
        questions.append(f"--nnodes {fields['nodes'].value}: a Deployment cannot span several nodes; {NODES}")
    model = _value(fields, "model") or model
    if not (model or target):
        questions.append("no argument names a model; name it with --target hf://OWNER/NAME or pvc://CLAIM/PATH")
    parallel = _value(fields, "tensor_parallel") or "1"
    if not parallel.isdecimal():
        written = fields["tensor_parallel"].written
        questions.append(f"{written} {parallel} is not a number; write the number into the Deployment's arguments")
    rest = [parsed for name, parsed in last.items() if name not in _FIELDS]
    prefixes = ENGINES[engine].importing.speculative
    speculative = tuple(parsed for parsed in rest if parsed.name.startswith(prefixes) or flags.is_own(parsed))
    limits = [parsed.value for parsed in rest if parsed.name in REQUESTS and parsed.value.isdecimal()]
    return Told(
        model=model,
        revision=_value(fields, "revision"),
        served=fields["served"].values if "served" in fields else (),
        tensor_parallel=int(parallel) if parallel.isdecimal() else 1,
        trusts="trusts" in fields and not fields["trusts"].written.startswith("--no-"),
        api_key=_value(fields, "api_key"),
        admin_key=_value(fields, "admin_key"),
        port=_value(fields, "port"),
        args=tuple(_words(parsed) for parsed in rest if parsed not in speculative),
        speculative=speculative,
        most_requests=int(limits[0]) if limits else None,
        notes=tuple(notes),
        questions=tuple(questions),
    )


def renamed(engine: str, version: str, args: Sequence[str]) -> tuple[list[str], list[Note]]:
    """The arguments, with removed flags renamed if this release has an equivalent."""
    flags = ENGINES[engine].importing.flags(version)
    parsed = [_in_full(one, flags) for one in flags.parse(args)]
    given = {one.name: one.value for one in parsed}
    new, notes = dict[str, list[str]](), list[Note]()
    for one in parsed:
        instead = flags.renamed.get(one.written, "")
        if words := _successor(one, instead, flags, given):
            template = TEMPLATE.search(instead)  # the new flag combines the values of both
            both = [one, *(each for each in parsed if template and each.name == f"--{template[1]}")]
            new |= {each.written: words if each is one else [] for each in both}
            text = f"is written {' '.join(words)} in {engine} {version}"
            notes += [Note(path=each.written, text=text) for each in both]
    return [word for one in parsed for word in new.get(one.written, _all_words(one))], notes


def _successor(old: ParsedFlag, instead: str, flags: FlagList, given: Mapping[str, str]) -> list[str]:
    """The equivalent words in this release; empty if the tables do not name any."""
    if template := TEMPLATE.search(instead):
        value = given.get(f"--{template[1]}")
        return [instead.partition(" ")[0], value] if value else []
    if "=" in instead:
        options = re.search(r"\{(.+)\}", instead)
        whole = [instead.replace(options[0], option) for option in options[1].split(",")] if options else [instead]
        return [] if old.values else whole
    named = flags.flags.get(instead)
    return [instead, *old.values] if named and (named.kind == "switch") is not bool(old.values) else []


def _in_full(parsed: ParsedFlag, flags: FlagList) -> ParsedFlag:
    """Expands an abbreviated flag: argparse accepts any unique prefix, the resource only the full name."""
    if parsed.flag or not parsed.written:
        return parsed
    names = {flags.flags[full].name: full for full in flags.short_for(parsed.name)}
    if len(names) != 1:
        return parsed
    ((name, full),) = names.items()
    return ParsedFlag(
        arm=parsed.arm,
        path=parsed.path,
        index=parsed.index,
        written=full,
        name=name,
        values=parsed.values,
        glued=parsed.glued,
        flag=flags.flags[full],
    )


def _words(parsed: ParsedFlag) -> tuple[str, ...]:
    """The words for the resource, without values that the flag does not take."""
    surplus = len(list(parsed.surplus))
    values = parsed.values[: len(parsed.values) - surplus]
    return (f"{parsed.written}={values[0]}", *values[1:]) if parsed.glued and values else (parsed.written, *values)


def _all_words(parsed: ParsedFlag) -> list[str]:
    """The words as given."""
    written = [f"{parsed.written}={parsed.values[0]}"] if parsed.glued else [parsed.written] if parsed.written else []
    return [*written, *parsed.values[parsed.glued :]]


def readable(words: Sequence[str]) -> str:
    """A flag in readable form, without secrets."""
    name = words[0].partition("=")[0]
    return f"{name} {MASK}" if name in SECRETS else " ".join(words)


def _value(fields: Mapping[str, ParsedFlag], name: str) -> str:
    return fields[name].value if name in fields else ""
