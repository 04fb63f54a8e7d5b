"""Which targets of vLLM hand out no hidden states: `python dev/vllm/extract_hooks.py WHEEL`.

EAGLE3, DFLASH and DSPARK read them, and vLLM refuses a target without the interface once its weights are loaded
(v1/worker/gpu/spec_decode/eagle/eagle3_utils.py:28). The sources are read as syntax trees: the registry says which
class serves an architecture, and a class has the interface if it, or any class that it is made of, is SupportsEagle3.
Where platforms have classes of their own, one that has it is enough. Written is
operator/paceline/engines/vllm/data/targets-VERSION.json.
"""

import ast
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

VERSION = "0.33.0"
TO = Path(__file__).parents[2] / f"operator/paceline/engines/vllm/data/targets-{VERSION}.json"
REGISTRY = "vllm/model_executor/models/registry.py"
TABLES = ("_TEXT_GENERATION_MODELS", "_MULTIMODAL_MODELS", "_TRANSFORMERS_SUPPORTED_MODELS")
INTERFACE = "SupportsEagle3"
MODELS = "vllm.model_executor.models."
T = TypeVar("T")


@dataclass(frozen=True)
class Module:
    """What a module defines, and what it takes from where: a name may stand for several things, by platform."""

    name: str
    is_package: bool
    tree: ast.Module

    @cached_property
    def classes(self) -> Mapping[str, list[ast.ClassDef]]:
        return _grouped((node.name, node) for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    @cached_property
    def taken(self) -> Mapping[str, list[tuple[str, str]]]:
        """Name → module and name there."""
        return _grouped(
            (alias.asname or alias.name, (self._origin(node), alias.name))
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        )

    @cached_property
    def other_names(self) -> Mapping[str, list[str]]:
        """`B = A`."""
        found = (node for node in ast.walk(self.tree) if isinstance(node, ast.Assign))
        return _grouped(
            (target.id, node.value.id)
            for node in found
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Name)
        )

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        steps = self.name.split(".")
        above = steps[: len(steps) - node.level + self.is_package]
        return ".".join([*above, *([node.module] if node.module else [])])


@dataclass
class Wheel:
    file: zipfile.ZipFile
    read: dict[str, Module | None] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        """None of what is not in the wheel."""
        if name not in self.read:
            path, there = name.replace(".", "/"), set(self.file.namelist())
            found = next((one for one in (f"{path}/__init__.py", f"{path}.py") if one in there), None)
            tree = ast.parse(self.file.read(found)) if found else None
            self.read[name] = Module(name, bool(found and found.endswith("__init__.py")), tree) if tree else None
        return self.read[name]

    def hands_out(self, module: str, name: str, seen: frozenset[tuple[str, str]] = frozenset()) -> bool:
        if name == INTERFACE:
            return True
        if (module, name) in seen or (found := self.module(module)) is None:
            return False
        seen |= {(module, name)}
        bases = [base for one in found.classes.get(name, ()) for base in one.bases]
        plain = [base.value if isinstance(base, ast.Subscript) else base for base in bases]
        return any((
            *(self.hands_out(module, base.id, seen) for base in plain if isinstance(base, ast.Name)),
            *(self.hands_out(*there, seen) for there in found.taken.get(name, ()) if name not in found.classes),
            *(self.hands_out(module, other, seen) for other in found.other_names.get(name, ())),
        ))  # fmt: skip


def served(registry: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Architecture, module and class."""
    for node in registry.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=table)], value=ast.Dict() as rows) if table in TABLES:
                for architecture, (module, name) in ast.literal_eval(rows).items():
                    yield architecture, module if module.startswith("vllm.") else MODELS + module, name


def _grouped(pairs: Iterator[tuple[str, T]]) -> Mapping[str, list[T]]:
    found: dict[str, list[T]] = {}
    for name, one in pairs:
        found.setdefault(name, []).append(one)
    return found


def main(path: Path) -> None:
    with zipfile.ZipFile(path) as file:
        wheel, rows = Wheel(file), sorted(served(ast.parse(file.read(REGISTRY))))
        without = [name for name, module, made_of in rows if not wheel.hands_out(module, made_of)]
    said = json.dumps({"source": f"{path.name} of PyPI", "handOutNoHiddenStates": without}, indent=1)
    TO.write_text(said + "\n")
    print(TO, f"{len(without)} of {len(rows)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
