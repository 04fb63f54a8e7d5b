"""What a verdict holds for stands in its sentence."""

import dataclasses
from typing import Any

import pytest
from tests.plan.test_sweep import COMMIT
from tests.support.edits import example_run
from tests.support.messages import Says

from paceline import api
from paceline.api.round import PointRecord, Round
from paceline.core import RunSpec
from paceline.plan.run.scope import sampled, scope


@pytest.fixture
def spec() -> RunSpec:
    manifest: Any = example_run()
    manifest["spec"]["target"]["commit"] = COMMIT
    return api.run(manifest)


def at(spec: RunSpec, *temperatures: float | None) -> RunSpec:
    """With as many workloads, at these."""
    first = spec.workloads[0]
    workloads = (
        dataclasses.replace(first, dataset=dataclasses.replace(first.dataset, name=name, temperature=temperature))
        for name, temperature in zip(("code", "chat", "swe"), temperatures, strict=False)
    )
    return dataclasses.replace(spec, workloads=tuple(workloads))


def served_by(spec: RunSpec, name: str, version: str) -> RunSpec:
    engine = dataclasses.replace(spec.server.engine, type=name, version=version)
    return dataclasses.replace(spec, server=dataclasses.replace(spec.server, engine=engine))


def test_how_requests_were_sampled(spec: RunSpec, says: Says) -> None:
    says(*(sampled(at(spec, *asked)) for asked in ((0.0, 0.0), (0.7,), (None,), (0.0, None, 0.0))))


@pytest.mark.parametrize(("name", "version"), [("SGLang", "0.4.5"), ("SGLangJAX", "0.1.0rc0")])
def test_a_server_that_reads_nothing_of_the_models_is_not_said_to(
    spec: RunSpec, name: str, version: str, says: Says
) -> None:
    says(sampled(served_by(at(spec, None), name, version)))


def test_prompts_that_came_again_are_told_with_it(spec: RunSpec, says: Says) -> None:
    first = spec.workloads[0]
    many = dataclasses.replace(
        spec, workloads=(dataclasses.replace(first, dataset=dataclasses.replace(first.dataset, requests=160)),)
    )
    rounds = [Round(round=number, prompts={first.dataset.name: 512}) for number in range(4)]
    assert scope(many, rounds[:3]) == "at temperature 0"
    assert f"the 512 of {first.name}" in scope(many, rounds)
    says(scope(many, rounds))


def test_rounds_that_sent_fewer_requests_repeat_no_prompt(spec: RunSpec) -> None:
    """Four rounds of a set of 230: 64 requests, then 35 of each part of 64 (0068)."""
    first = spec.workloads[0]
    sized = dataclasses.replace(
        spec, workloads=(dataclasses.replace(first, dataset=dataclasses.replace(first.dataset, requests=64)),)
    )

    def rounds(*asked: int) -> list[Round]:
        return [
            Round(
                round=n,
                prompts={first.dataset.name: 230},
                points=(PointRecord(arm="a", workload=first.name, asked=sent),),
            )
            for n, sent in enumerate(asked)
        ]

    assert scope(sized, rounds(64, 35, 35, 35)) == "at temperature 0"
    assert scope(sized, rounds(64, 64, 64, 64)).endswith(f"the 230 of {first.name}")


def test_a_verdict_says_which_servers_were_still_becoming_faster(spec: RunSpec, says: Says) -> None:
    """Their warm-up ended at its limit of four windows."""
    name = spec.workloads[0].name

    def record(windows: int, gain: float) -> Round:
        point = PointRecord(arm="narrow", workload=name, warm_up_windows=windows, warm_up_gain=gain)
        return Round(points=(point, PointRecord(arm="baseline", workload=name)))

    assert scope(spec, [record(4, 0.04), record(2, -0.2)]) == scope(spec, [])
    says(scope(spec, [record(4, 0.3), record(3, 0.01), record(4, 0.06)]))
