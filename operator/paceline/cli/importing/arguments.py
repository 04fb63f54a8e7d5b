"""An engine's arguments, each with the field that holds it in the resource."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from paceline.cli.importing.note import HIDDEN, Note, UnansweredError
from paceline.engines.arguments import FlagList, ParsedFlag
from paceline.engines.sglang.arguments import flag_list as sglang_flags
from paceline.engines.sglang_jax.rules import flag_list as sglang_jax_flags
from paceline.engines.vllm.arguments import flag_list as vllm_flags

FLAG_LISTS: Mapping[str, Callable[[str], FlagList]] = {
    "SGLang": sglang_flags,
    "SGLangJAX": sglang_jax_flags,
    "VLLM": vllm_flags,
}
FIELDS: Mapping[str, str] = {
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
"""Flag → the field of `Told` that it is read into. All its names are here: lists differ in which comes first."""
SPECULATIVE = "--spec"
"""How the flags of speculation begin, but for the few that a candidate's `args` take."""
SECRETS = ("--api-key", "--admin-api-key", "--hf-token")
REQUESTS = ("--max-running-requests", "--max-num-seqs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the arguments say. `args` are those without a field, flag by flag; `speculative` those of speculation."""

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
    notes: tuple[Note, ...] = field(default=())


def told(engine: str, version: str, args: Sequence[str], target: str = "") -> Told:
    """`target` is what a person says of the model. Raises UnansweredError if nobody names one, or if the server takes
    several nodes."""
    flags = FLAG_LISTS[engine](version)
    notes: list[Note] = []
    last: dict[str, ParsedFlag] = {}
    model = ""
    for parsed in (_in_full(one, flags) for one in flags.parse(args)):
        surplus = [word for _, word in parsed.surplus] if parsed.written else list(parsed.values)
        if engine == "VLLM" and surplus and not model:
            model, *surplus = surplus
        notes += [Note(path=word, text="belongs to no flag, and is left out") for word in surplus]
        if not parsed.written:
            continue
        key = parsed.written if "." in parsed.written else parsed.name
        if key in last:
            again = readable(_words(last.pop(key)))
            notes.append(Note(path=again, text="is given again later, and the last one counts"))
        last[key] = parsed
        if parsed.name == "--api-key" and parsed.values[1:] and not list(parsed.surplus):
            text = f"{len(parsed.values)} keys are given there, and a server has one here"
            notes.append(Note(path=parsed.written, text=text))
    fields = {FIELDS[name]: parsed for name, parsed in last.items() if name in FIELDS}
    if "nodes" in fields and fields["nodes"].value != "1":
        raise UnansweredError(f"--nnodes {fields['nodes'].value}: a Deployment is no server over several nodes")
    model = _value(fields, "model") or model
    if not (model or target):
        raise UnansweredError("no argument names a model; say which with --target hf://OWNER/NAME or pvc://CLAIM/PATH")
    rest = [parsed for name, parsed in last.items() if name not in FIELDS]
    speculative = tuple(parsed for parsed in rest if parsed.name.startswith(SPECULATIVE) or flags.is_own(parsed))
    limits = [parsed.value for parsed in rest if parsed.name in REQUESTS and parsed.value.isdecimal()]
    return Told(
        model=model,
        revision=_value(fields, "revision"),
        served=fields["served"].values if "served" in fields else (),
        tensor_parallel=_whole(fields, "tensor_parallel"),
        trusts="trusts" in fields and not fields["trusts"].written.startswith("--no-"),
        api_key=_value(fields, "api_key"),
        admin_key=_value(fields, "admin_key"),
        port=_value(fields, "port"),
        args=tuple(_words(parsed) for parsed in rest if parsed not in speculative),
        speculative=speculative,
        most_requests=int(limits[0]) if limits else None,
        notes=tuple(notes),
    )


def _in_full(parsed: ParsedFlag, flags: FlagList) -> ParsedFlag:
    """argparse takes any beginning that fits one flag alone; the resource wants the whole name."""
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
    """As they are written in the resource, without what the flag does not take."""
    surplus = len(list(parsed.surplus))
    values = parsed.values[: len(parsed.values) - surplus]
    return (f"{parsed.written}={values[0]}", *values[1:]) if parsed.glued and values else (parsed.written, *values)


def readable(words: Sequence[str]) -> str:
    """A flag for a person to read, without a secret."""
    name = words[0].partition("=")[0]
    return f"{name} {HIDDEN}" if name in SECRETS else " ".join(words)


def _value(fields: Mapping[str, ParsedFlag], name: str) -> str:
    return fields[name].value if name in fields else ""


def _whole(fields: Mapping[str, ParsedFlag], name: str) -> int:
    text = _value(fields, name) or "1"
    if not text.isdecimal():
        raise UnansweredError(
            f"{fields[name].written} {text}: is no number: write it out in the Deployment's arguments"
        )
    return int(text)
