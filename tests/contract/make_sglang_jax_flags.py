"""Writes what sglang-jax's parser takes: `python -m tests.contract.make_sglang_jax_flags DIRECTORY VERSION`.

DIRECTORY holds the package `sgl_jax`, from a wheel (`pip download sglang-jax==VERSION --no-deps --python-version 3.12`,
unpacked) or from `python/` of a checkout. It is parsed, not imported: importing would want jax and a TPU. VERSION is
what the package calls itself; for a checkout, what it is closest to.

Two lists come of it: the operator's, as compact as those of SGLang, and the emulator's, with types and defaults.
"""

import ast
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCES = {"srt/server_args.py": "ServerArgs", "srt/multimodal/common/ServerArgs.py": "MultimodalServerArgs"}

NAMES = (
    "srt/server_args.py", "srt/reasoning_parser.py", "srt/function_call/function_call_parser.py",
    "srt/utils/common_utils.py",
)  # fmt: skip
"""Where lists and tables have names that `choices` refers to."""

SWITCHES = ("store_true", "store_false", "BooleanOptionalAction")
KINDS = {"int": "int", "float": "float", "loads": "json"}
"""What a value is made of, by the function that reads it; of any other function: str."""


def flags(directory: Path) -> list[dict[str, Any]]:
    """Every add_argument of both parsers, in their order."""
    found: list[dict[str, Any]] = []
    names = _names(ast.parse((directory / "sgl_jax" / name).read_text()) for name in NAMES)
    for name, owner in SOURCES.items():
        tree = ast.parse((directory / "sgl_jax" / name).read_text())
        defaults = _defaults(tree, owner)
        found += [_flag(call, defaults, names) for call in _calls(tree)]
    return found


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    """In the order of the source: ast.walk is breadth first."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
    ]
    return iter(sorted(calls, key=lambda call: call.lineno))


def _defaults(tree: ast.Module, owner: str) -> dict[str, Any]:
    """Of the dataclass's fields, where they are literals."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            return {
                line.target.id: _value(line.value, {})
                for line in node.body
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None
            }
    raise LookupError(f"no class {owner}")


def _names(trees: Iterable[ast.Module]) -> dict[str, ast.expr]:
    """What is assigned to a name, in a module, a class or a function."""
    found: dict[str, ast.expr] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            found.setdefault(node.target.id, node.value)
    return found


def _choices(node: ast.expr | None, names: dict[str, ast.expr]) -> Any:
    """A list of literals, by whatever name, as the keys of a table, or as the sum of two; None: there is none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in names:
            return _choices(names[name], names)
        case ast.Call(func=ast.Name(id="list"), args=[ast.Call(func=ast.Attribute(value=table, attr="keys"))]):
            return _choices(table, names)
        case ast.Dict(keys=keys):
            return [key.value for key in keys if isinstance(key, ast.Constant)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [*_choices(left, names), *_choices(right, names)]
        case ast.List(elts=each) | ast.Tuple(elts=each):
            return [_choices(one, names) for one in each]
        case ast.Constant(value=value):
            return value
    return None


def _flag(call: ast.Call, defaults: dict[str, Any], names: dict[str, ast.expr]) -> dict[str, Any]:
    spelled = [_text(argument) for argument in call.args]
    said = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    dest = _text(said["dest"]) if "dest" in said else spelled[0].lstrip("-").replace("-", "_")
    flag: dict[str, Any] = {"flags": spelled, "dest": dest}
    for key in ("action", "type"):
        if key in said:
            word = said[key]
            flag[key] = word.value if isinstance(word, ast.Constant) else ast.unparse(word).split(".")[-1]
    for key in ("nargs", "choices", "required", "default"):
        read = _choices(said.get(key), names) if key == "choices" else _value(said.get(key), defaults)
        if read is not None:
            flag[key] = read
    return flag


def _text(node: ast.expr) -> str:
    """A string; what an f-string fills in is a prefix that is empty."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def _value(node: ast.expr | None, defaults: dict[str, Any]) -> Any:
    """A literal, or the default that `Class.field` has; None for what is neither."""
    if isinstance(node, ast.Attribute):
        return defaults.get(node.attr)
    try:
        return ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None


def compact(flag: dict[str, Any]) -> dict[str, Any]:
    """As the operator's lists have it: `names`, `kind`, and where they are said `many` and `choices`."""
    spelled = list(flag["flags"])
    if flag.get("action") == "BooleanOptionalAction":
        spelled += [f"--no-{name.removeprefix('--')}" for name in flag["flags"]]
    kind = "switch" if flag.get("action") in SWITCHES else KINDS.get(str(flag.get("type")), "str")
    about = {"many": flag.get("nargs"), "choices": sorted(flag["choices"]) if "choices" in flag else None}
    return {"names": spelled, "kind": kind, **{key: value for key, value in about.items() if value is not None}}


def files(directory: Path, version: str) -> dict[Path, str]:
    found = flags(directory)
    source = f"{' and '.join(f'sgl_jax/{name}' for name in SOURCES)} of sglang-jax {version} (PyPI)"

    def text(rows: list[dict[str, Any]]) -> str:
        lines = ",\n".join(json.dumps(row) for row in rows)
        return f'{{"source": {json.dumps(source)}, "flags": [\n{lines}\n]}}\n'

    return {
        ROOT / f"operator/paceline/engines/sglang_jax/data/flags-{version}.json": text(
            [compact(flag) for flag in found]
        ),
        ROOT / f"paceline_emulator/data/flags_sglang_jax_{version}.json": text(found),
    }


if __name__ == "__main__":
    for path, text in files(Path(sys.argv[1]), sys.argv[2]).items():
        path.write_text(text)
        print(path)
