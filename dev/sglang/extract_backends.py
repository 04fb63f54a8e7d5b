"""What the wheels say of attention backends, for the tests of the table of them and for `add_release.py`.

Read as syntax trees, from the first release on that has both modules: `drafts` are the keys of both maps of the
backends that EAGLE's worker drafts on (speculative/draft_utils.py), `onlyMLA` and `neverMLA` the backends of the
registry that refuse other models, `neverSpeculates` those that refuse to speculate at all
(layers/attention/attention_registry.py). Writes tests/unit/engines/sglang/backends.json.
"""

import ast
import json
import zipfile
from collections.abc import Iterator, Sequence

from extract_flags import Wheel, spans
from wheels import ROOT, wheel

TO = ROOT / "tests/unit/engines/sglang/backends.json"
DRAFTS, REGISTRY = "sglang.srt.speculative.draft_utils", "sglang.srt.layers.attention.attention_registry"
FIRST = "0.5.5"
SAYS = {
    "onlyMLA": ("can only be used with MLA models",),
    "neverMLA": ("can only be used with non-MLA models", "does not use an MLA backend"),
    "neverSpeculates": ("does not support speculative decoding",),
}


def drafts(wheel: Wheel) -> list[str]:
    maps = [set(wheel.value(node.value, DRAFTS)) for node in _maps(wheel)]
    return sorted(set.intersection(*maps))


def _maps(wheel: Wheel) -> Iterator[ast.Assign]:
    for node in ast.walk(wheel.module(DRAFTS)):
        match node:
            case ast.Assign(targets=[ast.Name(id="backend_map")], value=ast.Dict()):
                yield node


def refusing(wheel: Wheel, words: tuple[str, ...]) -> list[str]:
    found = []
    for node in wheel.module(REGISTRY).body:
        match node:
            case ast.FunctionDef(decorator_list=[ast.Call(args=[ast.Constant(value=str(name))])], body=body):
                if any(word in ast.unparse(ast.Module(body, [])) for word in words):
                    found.append(name)
    return found


def main(versions: Sequence[str]) -> None:
    said: dict[str, dict[str, list[str]]] = {name: {} for name in ("drafts", *SAYS)}
    for version in versions[versions.index(FIRST) :]:
        with zipfile.ZipFile(wheel(version)) as opened:
            read_in = Wheel(opened)
            said["drafts"][version] = drafts(read_in)
            for name, words in SAYS.items():
                said[name][version] = refusing(read_in, words)
    rows = (f'"{name}": {json.dumps(spans(found))}' for name, found in said.items())
    TO.write_text("{\n" + ",\n".join(rows) + "\n}\n")
