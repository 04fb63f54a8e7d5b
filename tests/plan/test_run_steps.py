"""The steps of a run: the list that its docstring shows, walked in order; what they compute, they compute once."""

import re

import pytest
from tests.support.in_status import records
from tests.support.verdicts import question

from paceline.core import Dataset, Workload
from paceline.plan import run
from paceline.plan.run.evidence import Evidence

CODE = Dataset(name="code", source="builtin://code", requests=64, max_tokens=128)
WORKLOADS = tuple(Workload(dataset=CODE, concurrency=concurrency) for concurrency in (1, 8))


def test_the_docstring_lists_the_steps_in_their_order() -> None:
    listed = re.findall(r"^ {4}\d\. (\w+)", run.__doc__ or "", re.MULTILINE)
    assert listed == [step.__name__ for step in run.STEPS]


def test_each_step_has_the_name_of_its_module() -> None:
    assert [step.__module__ for step in run.STEPS] == [f"paceline.plan.run.steps.{step.__name__}" for step in run.STEPS]


@pytest.mark.parametrize("name", ["verdict", "crossover", "measurements", "accept_lengths"])
def test_what_is_made_of_the_rounds_is_made_once_a_pass(name: str) -> None:
    points = [
        {"arm": arm, "workload": f"code@{n}", "valid": True, "steadyThroughput": speed, "acceptLength": "2.5"}
        for arm, speed in (("baseline", "100"), ("wide", "150"))
        for n in (1, 8)
    ]
    rounds = [{"round": number, "try": 0, "points": points, "error": ""} for number in range(3)]
    spec = question("wide", WORKLOADS)
    evidence = Evidence(spec=spec, records=records(rounds))
    first = getattr(evidence, name)
    assert first
    assert getattr(evidence, name) is first
