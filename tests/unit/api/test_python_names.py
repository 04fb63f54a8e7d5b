"""A field has one name, the API's: `numSteps` and not `num_steps`, at the desk as at the API server."""

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_snake
from tests.api.objects import SCHEMAS, Path, fields

from paceline.api import problems
from paceline.cli import gate_case

PYTHON_NAMES = [
    (kind, (*path[:-1], to_snake(str(path[-1]))), str(path[-1]))
    for kind, schema in SCHEMAS.items()
    if kind != "BenchmarkRound"  # nobody writes one by hand
    for path, _ in fields(schema["properties"]["spec"], ("spec",))
    if isinstance(path[-1], str) and to_snake(path[-1]) != path[-1] and 1 not in path
]


def holding(path: Path, value: Any) -> Any:
    """A document with nothing but the value at the path."""
    for step in reversed(path):
        value = [value] if isinstance(step, int) else {step: value}
    return value


def written(path: Path) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


@pytest.mark.parametrize(("kind", "path", "name"), PYTHON_NAMES, ids=lambda part: str(part)[:80])
def test_the_desk_refuses_the_python_name_of_every_field(kind: str, path: Path, name: str) -> None:
    manifest = {"apiVersion": "paceline.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, **holding(path, "x")}
    found = {problem.path: problem.message for problem in problems(manifest)}
    assert found[written(path)] == f"is not a field here; did you mean {name}?"


PLACES: dict[type[BaseModel], Path] = {
    gate_case.Thresholds: ("gate",),
    gate_case.LimitInput: ("gate", "limits", 0),
    gate_case.WorkloadInput: ("workloads", 0),
    gate_case.MeasurementInput: ("measurements", 0),
    gate_case.CaseInput: (),
}
NAMES_OF_A_CASE = [
    (*place, name)
    for model, place in PLACES.items()
    for name, field in model.model_fields.items()
    if field.alias != name
]


def case() -> dict[str, Any]:
    return {
        "gate": {"limits": [{"metric": "p95TTFT", "maxIncrease": 0.1}]},
        "arms": ["baseline", "wide"],
        "workloads": [{"name": "code"}],
        "measurements": [{"round": 0, "arm": "wide", "workload": "code"}],
        "note": "harmless",
    }


def test_the_case_of_these_tests_is_a_good_one() -> None:
    assert gate_case.read_case(json.dumps(case()).encode()).arms == ("baseline", "wide")


@pytest.mark.parametrize("path", NAMES_OF_A_CASE, ids=written)
def test_gate_refuses_the_python_name_of_every_field(path: Path) -> None:
    wrong = case()
    node: Any = wrong
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = 1
    with pytest.raises(ValueError, match=rf"{re.escape(written(path))}: unknown field"):
        gate_case.read_case(json.dumps(wrong).encode())
