"""What SGLang's releases speak, read in the published wheels, for `add_release.py`.

Reads the sources as syntax trees and writes operator/paceline/engines/sglang/data/flags.json: the flags of the server,
the target architectures whose class has the hook that an EAGLE3 head needs, and those that draft with layers of their
own, each with the releases that have it. Older versions call `parser.add_argument` for every flag; since then flags are
annotated fields, `name: A[type, "help" or Arg(...)]`, from which SGLang derives the arguments; first in server_args.py
(0.5.17), then in modules of their own.
"""

import ast
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wheels import DATA, wheel

TO = DATA / "flags.json"
SERVER_ARGS = "sglang.srt.server_args"
FIELDS = "sglang/srt/arg_groups/fields/"
MODELS = "sglang/srt/models/"
CONFIG = "sglang.srt.configs.model_config"
HOOK = "set_eagle3_layers_to_capture"

KINDS = {
    "bool": "switch", "int": "int", "float": "float", "str": "str", "human_readable_int": "size",
    "json.loads": "json", "json_list_type": "json", "parse_cuda_graph_config_arg": "json",
}  # fmt: skip
"""What a value is made of, by the function that reads it; of any other function: str."""
SWITCHES = {"store_true", "BooleanOptionalAction", "DeprecatedStoreTrueAction", "DeprecatedAction"}


class UnknownError(ValueError):
    """An expression whose value only the running program knows."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel's modules as syntax trees."""

    file: zipfile.ZipFile

    def module(self, name: str) -> ast.Module:
        path = name.replace(".", "/")
        found = next((one for one in (f"{path}.py", f"{path}/__init__.py") if one in self.file.namelist()), None)
        if found is None:
            raise UnknownError(name)
        return ast.parse(self.file.read(found))

    def value(self, node: ast.expr, module: str) -> Any:
        """Of an expression made of constants, names of constants, and lists of a table's keys."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self.value(item, module) for item in items]
            case ast.Dict(keys=keys):
                return [self.value(key, module) for key in keys if key is not None]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.value(left, module) + self.value(right, module)
            case ast.Name(id=name):
                return self.named(name, module)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                return self.in_class(owner, name, module)
            case ast.Call(func=ast.Name(id="list" | "set" | "frozenset"), args=[only]):
                return self.value(only, module)
            case ast.Call(func=ast.Name(id=name), args=[]):
                return self.returned(name, module)
            case ast.Call(func=ast.Attribute(value=table, attr="keys"), args=[]):
                return self.value(table, module)
        raise UnknownError(ast.unparse(node))

    def named(self, name: str, module: str) -> Any:
        """Of a name that is set somewhere in the module, or imported."""
        for node in ast.walk(self.module(module)):
            match node:
                case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                    return self.value(value, module)
                case ast.ImportFrom(module=str(source), names=names) if name in map(_known_as, names):
                    return self.named(next(one.name for one in names if _known_as(one) == name), source)
        raise UnknownError(name)

    def returned(self, function: str, module: str) -> Any:
        """What a function returns at its end."""
        for node in self.module(module).body:
            match node:
                case ast.FunctionDef(name=found, body=[*_, ast.Return(value=ast.expr() as value)]) if found == function:
                    return self.value(value, module)
        raise UnknownError(function)

    def in_class(self, owner: str, name: str, module: str) -> Any:
        for node in self.module(module).body:
            match node:
                case ast.ClassDef(name=found, body=body) if found == owner:
                    for line in body:
                        match line:
                            case ast.AnnAssign(target=ast.Name(id=field), value=ast.expr() as value) if field == name:
                                return self.value(value, module)
                            case ast.Assign(targets=[ast.Name(id=field)], value=value) if field == name:
                                return self.value(value, module)
                case ast.ImportFrom(module=str(source), names=names) if owner in (one.name for one in names):
                    return self.in_class(owner, name, source)
        raise UnknownError(f"{owner}.{name}")


def flags(wheel: Wheel) -> Iterator[dict[str, Any]]:
    paths = sorted(name for name in wheel.file.namelist() if name.startswith(FIELDS) and name.endswith(".py"))
    for module in (
        SERVER_ARGS,
        *(path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in paths),
    ):
        for node in ast.walk(wheel.module(module)):
            match node:
                case ast.AnnAssign(
                    target=ast.Name(id=field),
                    annotation=ast.Subscript(value=ast.Name(id="A"), slice=ast.Tuple(elts=[kind, *about])),
                ):
                    yield from _of_a_field(wheel, module, field, kind, about)
    for node in ast.walk(wheel.module(SERVER_ARGS)):
        match node:
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=[_, *_]):
                yield _of_a_call(wheel, node)


def _of_a_call(wheel: Wheel, node: ast.Call) -> dict[str, Any]:
    said = {word.arg: word.value for word in node.keywords if word.arg}
    action = _name(said["action"]) if "action" in said else "store"
    kind = "switch" if action in SWITCHES else KINDS.get(_name(said["type"]), "str") if "type" in said else "str"
    names = [wheel.value(name, SERVER_ARGS) for name in node.args]
    return _flag(wheel, SERVER_ARGS, names, kind, said, action)


def _of_a_field(
    wheel: Wheel, module: str, field: str, kind: ast.expr, about: list[ast.expr]
) -> Iterator[dict[str, Any]]:
    said = {word.arg: word.value for one in about if isinstance(one, ast.Call) for word in one.keywords if word.arg}
    if isinstance(more := said.get("action_kwargs"), ast.Dict):
        said |= {
            str(key.value): value
            for key, value in zip(more.keys, more.values, strict=True)
            if isinstance(key, ast.Constant)
        }
    helps = [one for one in about if not (isinstance(one, ast.Call) and _name(one.func) == "NS")]
    if (
        not any(isinstance(one, ast.Call | ast.Constant | ast.JoinedStr | ast.BinOp) for one in helps)
        or "no_cli" in said
    ):
        return
    name = wheel.value(said["cli_name"], module) if "cli_name" in said else "--" + field.replace("_", "-")
    aliases = wheel.value(said["aliases"], module) if "aliases" in said else []
    inner = _without_optional(kind)
    match inner:
        case ast.Subscript(value=ast.Name(id="Literal"), slice=literal):
            said.setdefault("choices", literal if isinstance(literal, ast.Tuple) else ast.List(elts=[literal]))
            value = wheel.value(said["choices"], module)[0]
            inner = ast.Name(id=type(value).__name__)
        case ast.Subscript(value=ast.Name(id="List" | "list"), slice=item) if "type_parser" not in said:
            said.setdefault("nargs", ast.Constant("+"))
            inner = item
    read_by = _name(said["type_parser"]) if "type_parser" in said else _name(inner)
    action = _name(said["action"]) if "action" in said else "store"
    yield _flag(
        wheel, module, [name, *aliases], "switch" if action in SWITCHES else KINDS.get(read_by, "str"), said, action
    )


def _flag(
    wheel: Wheel, module: str, names: list[str], kind: str, said: dict[str, ast.expr], action: str
) -> dict[str, Any]:
    """`names`, `kind`, and where said: `many` (argparse's nargs), `choices`, `instead` (of a deprecated flag)."""
    if action == "BooleanOptionalAction":
        names = [*names, *(name.replace("--", "--no-", 1) for name in names)]
    found: dict[str, Any] = {"names": names, "kind": kind}
    for key, under in (("nargs", "many"), ("choices", "choices"), ("new_flag", "instead")):
        if key in said:
            try:
                value = wheel.value(said[key], module)
            except UnknownError:
                continue
            if value is not None:
                found[under] = sorted(value) if under == "choices" and all(isinstance(v, str) for v in value) else value
    return found


def eagle3_targets(wheel: Wheel) -> list[str]:
    """Architectures whose class has `set_eagle3_layers_to_capture`, of its own or inherited."""
    bases: dict[str, list[str]] = {}
    hooked: set[str] = set()
    served: set[str] = set()
    for path in (name for name in wheel.file.namelist() if name.startswith(MODELS) and name.endswith(".py")):
        for node in ast.parse(wheel.file.read(path)).body:
            match node:
                case ast.ClassDef(name=name, bases=parents, body=body):
                    bases[name] = [ast.unparse(parent).rsplit(".", 1)[-1] for parent in parents]
                    if any(isinstance(part, ast.FunctionDef) and part.name == HOOK for part in body):
                        hooked.add(name)
                case ast.Assign(targets=[ast.Name(id="EntryClass")], value=value):
                    served |= {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}

    def has_hook(name: str) -> bool:
        return name in hooked or any(map(has_hook, bases.get(name, ())))

    return sorted(filter(has_hook, served))


def mtp_targets(wheel: Wheel) -> list[str]:
    """Architectures that become the class of their layers for further tokens where they are loaded as a draft."""
    found: set[str] = set()
    for node in ast.walk(wheel.module(CONFIG)):
        if not (isinstance(node, ast.If) and "is_draft_model" in ast.unparse(node.test)):
            continue
        for part in ast.walk(node.test):
            match part:
                case ast.Compare(left=left, ops=[ast.Eq() | ast.In()], comparators=[right]):
                    if "architectures" in ast.unparse(left):
                        value = wheel.value(right, CONFIG)
                        found |= {value} if isinstance(value, str) else set(value)
    return sorted(found)


def _known_as(name: ast.alias) -> str:
    return name.asname or name.name


def _without_optional(kind: ast.expr) -> ast.expr:
    match kind:
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return inner
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return left
    return kind


def _name(node: ast.expr) -> str:
    text = str(node.value) if isinstance(node, ast.Constant) else ast.unparse(node)
    return text if text in KINDS else text.rsplit(".", 1)[-1]


Spans = dict[str, list[list[str]]]
"""What some releases have → the first and last of each unbroken row of them; one that goes on has no last."""


def spans(found: Mapping[str, Iterable[str]]) -> Spans:
    """`found` is by release, from the oldest on."""
    kept: Spans = {}
    before: dict[str, None] = {}
    for version, had in found.items():
        now = dict.fromkeys(had)
        for one in now:
            if one in before:
                kept[one][-1][1:] = [version]
            else:
                kept.setdefault(one, []).append([version, version])
        before = now
    return {one: [span[:1] if span[-1] == version else span for span in each] for one, each in kept.items()}


def main(versions: Iterable[str]) -> None:
    flags_of = dict[str, list[dict[str, Any]]]()
    targets: dict[str, dict[str, list[str]]] = {name: {} for name in TARGETS}
    for version in versions:
        with zipfile.ZipFile(wheel(version)) as opened:
            read_in = Wheel(opened)
            flags_of[version] = list(flags(read_in))
            for name, read in TARGETS.items():
                targets[name][version] = read(read_in)
    TO.write_text(data(flags_of, targets))


TARGETS = {"eagle3Targets": eagle3_targets, "mtpTargets": mtp_targets}


def data(flags_of: Mapping[str, list[dict[str, Any]]], targets: Mapping[str, Mapping[str, list[str]]]) -> str:
    """One line a flag or target, so that a change can be read. Words of a flag's choices that not all of its releases
    have are in `sometimes`."""
    rows = spans({version: map(_shape, flags) for version, flags in flags_of.items()})
    words = spans({version: [one for row in flags for one in _words(row)] for version, flags in flags_of.items()})
    choices: dict[str, Spans] = {}
    for one, span in words.items():
        shape, word = json.loads(one)
        choices.setdefault(shape, {})[word] = span
    lines = []
    for shape, span in rows.items():
        row, had = json.loads(shape), choices.get(shape, {})
        if had:
            row["choices"] = sorted(word for word, of in had.items() if of == span)
            row |= {"sometimes": some} if (some := {word: of for word, of in had.items() if of != span}) else {}
        lines.append(json.dumps({**row, "in": span}))
    said = {"source": "wheels of SGLang on PyPI, by dev/sglang/add_release.py", "releases": list(flags_of)}
    parts = [json.dumps(said)[1:-1]]
    for kind, of in targets.items():
        each = (f"{json.dumps(name)}: {json.dumps(span)}" for name, span in sorted(spans(of).items()))
        parts.append(f'"{kind}": {{\n' + ",\n".join(each) + "}")
    parts.append('"flags": [\n' + ",\n".join(lines) + "\n]")
    return "{" + ",\n".join(parts) + "}\n"


def _shape(row: dict[str, Any]) -> str:
    """The row without choices that may grow."""
    return json.dumps({**row, "choices": []} if _has_words(row) else row)


def _words(row: dict[str, Any]) -> list[str]:
    return [json.dumps([_shape(row), word]) for word in row["choices"]] if _has_words(row) else []


def _has_words(row: dict[str, Any]) -> bool:
    return "choices" in row and all(isinstance(word, str) for word in row["choices"])
