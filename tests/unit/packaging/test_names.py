"""A public name means one thing: no two modules of the operator define it."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

OPERATOR = Path(__file__).parents[3] / "operator/paceline"
SAME_PART = {
    "add", "run", "main",  # of each command
    "log", "RULES", "STEPS", "plan", "Snapshot", "measure", "record",  # of each module of a kind
    "Manifest", "API_VERSION",  # kube and render know nothing of core's and api's
}  # fmt: skip


def defined(module: Path) -> Iterator[str]:
    for node in ast.parse(module.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_no_public_name_is_defined_twice() -> None:
    """The members of an engine's adapter are the same in each engine's package."""
    where: dict[str, list[str]] = defaultdict(list)
    for module in sorted(OPERATOR.rglob("*.py")):
        for name in {*defined(module)} - SAME_PART:
            if not name.startswith("_"):
                where[name].append(str(module.relative_to(OPERATOR)))
    twice = {name: modules for name, modules in where.items() if len(modules) > 1}
    assert {name: found for name, found in twice.items() if not all(one.startswith("engines/") for one in found)} == {}
