"""The flags of `vllm serve`, read in the published wheel: `python dev/vllm/extract_flags.py [WHEEL]`.

Without WHEEL it is downloaded (pip; nothing is installed or imported). The sources are read as syntax trees. Written
are operator/paceline/engines/vllm/data/flags-VERSION.json, with methods and keys of the speculative configuration, and,
for the emulator, the flags with defaults. vLLM derives its arguments from the annotations of dataclass fields
(engine/arg_utils.py, `_compute_kwargs`); so does this. Names for types that stand elsewhere, and functions that read a
value, it cannot follow: where the real parser of this version was captured (`try_values.py`), kinds and choices are
those that it showed.
"""

import ast
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

VERSION = "0.33.0"
ROOT = Path(__file__).parents[2]
SERVE = "vllm/entrypoints/common/cli_args.py"
ENGINE = "vllm/engine/arg_utils.py"
FRONTENDS = ("BaseFrontendArgs", "FrontendArgs")
SPECULATION = "SpeculativeConfig"
BACKENDS = "vllm/v1/attention/backends/registry.py"
FILLED_IN = "SkipValidation"
"""How fields of SPECULATION are declared that are no keys of a user's."""
SWITCHES = {"store_true", "BooleanOptionalAction"}
INVERSE = {"--enable-": "--disable-", "--disable-": "--enable-"}
JSON_LISTS = {"allowed_origins", "allowed_methods", "allowed_headers"}
ONE_WORD = {"middleware", "disable_access_log_for_endpoints"}
"""What `FrontendArgs._customize_cli_kwargs` makes of fields that are lists: JSON, and one word."""
COUNTS = {"max_num_batched_tokens", "max_num_scheduled_tokens", "kv_cache_memory_bytes",
          "safetensors_prefetch_block_size", "max_num_queued_tokens"}  # fmt: skip
CONTEXT = "max_model_len"
"""Fields that are read by a function of their own: `human_readable_int` and `human_readable_int_or_auto`."""
KINDS = ("bool", "int", "float")
PARSER = ROOT / "tests/contract/captures/vllm/parser.jsonl"
"""Of VERSION."""
NUMBERS, REALS, JSON = {"0", "7", "-1"}, {"1.5", "-0.5", "1e3"}, {"{}", "[1]", '{"a": 1}', "true"}
SHOWN: tuple[tuple[str, set[str]], ...] = (
    ("int", NUMBERS),
    ("float", NUMBERS | REALS),
    ("json", NUMBERS | REALS | JSON),
    ("object", {"{}"}),
    ("count", NUMBERS | {"2k", "1.5k", "2K"}),
    ("context", NUMBERS | {"2k", "1.5k", "2K", "auto"}),
)
"""Kind → the words that the real parser takes for it, beside those for no value."""
NONE = {"", "None"}
FOLDED = {"--moe-backend", "--linear-backend", "--sparse-indexer-topk-backend"}
"""Whose words are read in small letters, and with underscores for dashes (engine/arg_utils.py:1844)."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel's classes, what their fields are declared as, and names for types."""

    file: zipfile.ZipFile
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    types: dict[str, ast.expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.file.namelist():
            if path in (SERVE, ENGINE) or re.fullmatch(r"vllm/config/\w+\.py", path):
                for node in ast.walk(self.tree(path)):
                    match node:
                        case ast.ClassDef(name=name):
                            self.classes[name] = node
                        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() as named):
                            self.types[name] = named

    def tree(self, path: str) -> ast.Module:
        return ast.parse(self.file.read(path))

    def fields(self, owner: str) -> Mapping[str, ast.AnnAssign]:
        body = self.classes[owner].body
        return {n.target.id: n for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}


def flags(wheel: Wheel) -> Iterator[dict[str, Any]]:
    for owner in FRONTENDS:
        for name, declared in wheel.fields(owner).items():
            yield _of_a_field(wheel, ["--" + name.replace("_", "-")], name, declared)
    for path in (SERVE, ENGINE):
        tables = dict(_tables(wheel.tree(path)))
        for call in ast.walk(wheel.tree(path)):
            match call:
                case ast.Call(func=ast.Attribute(attr="add_argument"), args=[ast.Constant(), *_] as names):
                    yield _of_a_call(wheel, tables, [n.value for n in names if isinstance(n, ast.Constant)], call)


def speculation(wheel: Wheel) -> dict[str, Any]:
    """The methods of the speculative configuration, and its keys as rows of flags."""
    declared = wheel.fields(SPECULATION).items()
    keys = {name: one for name, one in declared if FILLED_IN not in ast.unparse(one.annotation)}
    return {
        "methods": sorted(_words(wheel, wheel.types["SpeculativeMethod"])),
        "keys": [_key(wheel, _of_a_field(wheel, [name], name, one)) for name, one in keys.items()],
    }


def _key(wheel: Wheel, row: dict[str, Any]) -> dict[str, Any]:
    """As a key, whose value is JSON: no switch, no list of words, no size with a unit."""
    row = {name: value for name, value in row.items() if name != "many"} | {"names": row["names"][:1]}
    if row["names"] == ["attention_backend"]:  # _parse_attention_backend
        return {**row, "kind": "folded", "choices": ["auto", *sorted(map(str.lower, _members(wheel)))]}
    return {**row, "kind": {"switch": "bool", "context": "int"}.get(row["kind"], row["kind"])}


def _members(wheel: Wheel) -> Iterator[str]:
    """Of the enumeration of attention backends."""
    for node in ast.walk(wheel.tree(BACKENDS)):
        match node:
            case ast.ClassDef(name="AttentionBackendEnum"):
                yield from (
                    n.targets[0].id
                    for n in node.body
                    if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)
                )


def _words(wheel: Wheel, node: ast.AST) -> set[str]:
    """Of a `Literal`, in which others may stand by name."""
    named = (wheel.types[n.id] for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in wheel.types)
    own = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return own.union(*(_words(wheel, other) for other in named))


def _tables(module: ast.Module) -> Iterator[tuple[str, str]]:
    """`model_kwargs = get_kwargs(ModelConfig)`: the table's name and the class that it is of."""
    for node in ast.walk(module):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=table)],
                value=ast.Call(func=ast.Name(id="get_kwargs"), args=[ast.Name(id=owner)]),
            ):
                yield table, owner


def _of_a_call(wheel: Wheel, tables: Mapping[str, str], names: list[Any], call: ast.Call) -> dict[str, Any]:
    said = {word.arg: word.value for word in call.keywords}
    match said.get(None):
        case (
            ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=str(name)))
            | ast.Dict(values=[ast.Subscript(value=ast.Name(id=table), slice=ast.Constant(value=str(name))), *_])
        ):
            return _of_a_field(wheel, names, name, wheel.fields(tables[table])[name])
    action = ast.unparse(said["action"]).rpartition(".")[2].strip("'") if "action" in said else "store"
    kind = "switch" if action in SWITCHES else ast.unparse(said["type"]) if "type" in said else "str"
    if action == "BooleanOptionalAction":
        names = _with_negations(names)
    found = {"names": names, "kind": kind if kind in ("switch", *KINDS) else "str"}
    return found if "nargs" not in said else {**found, "many": ast.literal_eval(said["nargs"])}


def _of_a_field(wheel: Wheel, names: list[str], name: str, declared: ast.AnnAssign) -> dict[str, Any]:
    hints = {ast.unparse(hint) for hint in _alternatives(wheel, declared.annotation)}
    default = _default(declared.value)
    if hints == {"bool", "str", "None"}:
        return {"names": names, "kind": "str", "many": "?", **default}
    if "bool" in hints:
        return {"names": _with_negations(names), "kind": "switch", **default}
    found: dict[str, Any] = {"names": names, "kind": _kind(name, hints), **default}
    literal = next((hint for hint in hints if hint.startswith("Literal[")), None)
    if literal and (choices := _literals(literal)):
        found["known" if "str" in hints else "choices"] = sorted(choices)  # a plugin may register more of the known
    if "None" in hints:
        found["optional"] = True
    if name not in JSON_LISTS | ONE_WORD and any(re.match(r"(list|set|tuple)\[", hint) for hint in hints):
        found["many"] = "+"
    return found


def _alternatives(wheel: Wheel, hint: ast.expr) -> Iterator[ast.expr]:
    match hint:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _alternatives(wheel, left)
            yield from _alternatives(wheel, right)
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, *_])):
            yield from _alternatives(wheel, inner)
        case ast.Name(id=name) if name in wheel.types:
            yield from _alternatives(wheel, wheel.types[name])
        case _:
            yield hint


def _literals(hint: str) -> list[str]:
    """Of `Literal[…]`; none where they are named elsewhere or are no strings."""
    try:
        found = ast.literal_eval(f"[{hint.removeprefix('Literal[')}")
    except ValueError:
        return []
    return [one for one in found if isinstance(one, str)]


def _kind(name: str, hints: set[str]) -> str:
    if name in COUNTS:
        return "count"
    if name == CONTEXT:
        return "context"
    if name in JSON_LISTS or ("str" not in hints and any(re.match(r"dict|\w+Config$", hint) for hint in hints)):
        return "json"
    return next((kind for kind in KINDS if kind in hints), "str")


def _with_negations(names: list[str]) -> list[str]:
    """What argparse's BooleanOptionalAction and vLLM's own pairs of --enable-x and --disable-x add."""
    negated = [name.replace("--", "--no-", 1) for name in names if name.startswith("--")]
    pairs = [new + name.removeprefix(old) for name in names for old, new in INVERSE.items() if name.startswith(old)]
    return [*names, *negated, *pairs]


def _default(value: ast.expr | None) -> dict[str, Any]:
    """Where it is a literal."""
    if isinstance(value, ast.Call) and ast.unparse(value.func) in ("Field", "field"):
        value = next((word.value for word in value.keywords if word.arg == "default"), None)
    try:
        found = ast.literal_eval(value) if value else None
    except ValueError:
        return {}
    return {} if found is None else {"default": found}


def _as_shown(flag: dict[str, Any], real: Mapping[str, Any] | None) -> dict[str, Any]:
    """A row with what the real parser showed of it."""
    if real is None or flag["kind"] == "switch":
        return flag
    kept = {key: value for key, value in flag.items() if key in ("names", "default", "known", "many")}
    takes = set(real["takes"])
    optional = {"optional": True} if takes >= NONE and "many" not in takes else {}
    if real["choices"] is not None:
        words = [word for word in real["choices"] if word != "None"]
        numbers = all(word.isdecimal() for word in words)
        kind = "folded" if flag["names"][0] in FOLDED else "int" if numbers else "str"
        return {**kept, "kind": kind, "choices": [int(word) for word in words] if numbers else words, **optional}
    kind = next((kind for kind, shown in SHOWN if takes - NONE == shown), "str")
    return {**kept, "kind": kind, **optional}


def main(wheel: Path) -> None:
    rows_of_the_parser = map(json.loads, PARSER.read_text().splitlines() if PARSER.exists() else ())
    shown = {row["names"][0]: row for row in rows_of_the_parser}
    with zipfile.ZipFile(wheel) as file:
        read = (_as_shown(flag, shown.get(flag["names"][0])) for flag in flags(Wheel(file)))
        found = sorted(read, key=lambda flag: str(flag["names"][0]))
        draft = speculation(Wheel(file))
    own = (
        f'"speculativeMethods": {json.dumps(draft["methods"])},\n"speculativeKeys": {_rows(map(_plain, draft["keys"]))}'
    )
    written = {
        "operator/paceline/engines/vllm/data/flags-": f"{_rows(map(_plain, found))},\n{own}",
        "paceline_emulator/vllm/data/flags_": _rows(found),
    }
    for path, text in written.items():
        to = ROOT / f"{path}{VERSION}.json"
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(f'{{"source": "{wheel.name} of PyPI", "flags": {text}}}\n')
        print(to, len(found))


def _plain(flag: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in flag.items() if key not in ("default", "known")}


def _rows(rows: Iterable[Mapping[str, Any]]) -> str:
    return "[\n" + ",\n".join(json.dumps(row, default=str) for row in rows) + "\n]"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", scratch]
            subprocess.run([*command, "--only-binary", ":all:", f"vllm=={VERSION}"], check=True)
            main(next(Path(scratch).glob("vllm-*.whl")))
