"""How long a round waits: by what is asked, or as a person says."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.example import RUN, SETTINGS, pool, run
from tests.support.rendered import example
from tests.support.world import World
from tests.support.world import example as in_world

from paceline import api
from paceline.core import Dataset, RunSpec, Timeouts, Workload
from paceline.core.timeouts import PULL_SECONDS
from paceline.evidence import RoundPlan, fingerprint
from paceline.render import round_job
from paceline.render.round_job import LONGEST_DEADLINE, SLACK_SECONDS, round_plan
from paceline.render.where import ANYWHERE

HALF_AN_HOUR = 1800


def load(requests: int, tokens: int, concurrency: int = 1, rate: float | None = None) -> Workload:
    dataset = Dataset(name="code", source="builtin://code", requests=requests, max_tokens=tokens, rate=rate)
    return Workload(dataset=dataset, concurrency=concurrency)


def planned(asked: RunSpec) -> RoundPlan:
    return round_plan(RUN, asked, pool().spec.arms, number=0, try_=0)


def deadline(asked: RunSpec) -> int:
    job = round_job(RUN, asked, planned(asked), where=ANYWHERE, settings=SETTINGS)
    found: int = job["spec"]["template"]["spec"]["activeDeadlineSeconds"]
    return found


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        (load(6, 96), HALF_AN_HOUR),
        (load(64, 4096), 64 * 4096 / 5),  # what 30 minutes were too short for at 145 tokens a second
        (load(96, 512, concurrency=32), HALF_AN_HOUR),
        (load(384, 4096, concurrency=32), 12 * 4096 / 5),
        (load(100, 4096, concurrency=32), 4 * 4096 / 5),  # the last ones, too
        (load(480, 256, rate=8), 60 + HALF_AN_HOUR),
        (load(100, 512, rate=0.01), 10_000 + HALF_AN_HOUR),
        (load(480, 20_000, rate=8), 60 + 20_000 / 5),
    ],
)
def test_a_workload_gets_the_time_of_all_its_answers_at_the_least_speed(asked: Workload, seconds: float) -> None:
    assert Timeouts().of(asked) == pytest.approx(seconds, abs=1)
    assert planned(replace(run(), workloads=(asked,))).timeout_of(asked) == Timeouts().of(asked)


def test_what_a_person_says_is_for_every_workload() -> None:
    patient = replace(run(), timeouts=Timeouts(start=5400, workload=600))
    plan = planned(patient)
    assert (plan.start_timeout_seconds, {plan.timeout_of(one) for one in plan.workloads}) == (5400, {600})


def test_a_rounds_deadline_is_the_sum_of_what_it_waits_for() -> None:
    short, long = load(6, 96), load(64, 4096, concurrency=2)
    each = HALF_AN_HOUR + 2 * (Timeouts().of(short) + Timeouts().of(long))  # each with its warm-up
    arms = len(pool().spec.arms)
    assert deadline(replace(run(), workloads=(short, long))) == SLACK_SECONDS + PULL_SECONDS + arms * each
    assert deadline(replace(run(), workloads=(load(100_000, 131_072),))) == LONGEST_DEADLINE


def test_the_plan_comes_back_with_them() -> None:
    plan = planned(replace(run(), workloads=(load(6, 96), load(64, 4096, concurrency=2))))
    assert RoundPlan.from_json(plan.to_json()) == plan
    assert plan.workload_timeouts == {"code@2": 26215}


SAID: dict[str, Any] = {"start": "1h30m", "workload": "45m"}


def test_a_pools_run_has_what_its_deployment_says() -> None:
    manifest = in_world()
    manifest["spec"].setdefault("benchmark", {})["timeouts"] = SAID
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    (asked,) = world.runs("latency")
    assert asked["spec"]["timeouts"] == SAID


def test_both_kinds_have_the_field_and_a_question_without_it_is_the_one_it_was() -> None:
    manifest = example("qwen3-coder-next")
    manifest["spec"]["benchmark"] = {"timeouts": SAID}
    assert api.deployment(manifest).run_timeouts == Timeouts(start=5400, workload=2700)
    asked = api.run_manifest_spec(replace(run(), timeouts=Timeouts(start=5400, workload=2700)))
    assert asked["timeouts"] == SAID
    assert api.run({"spec": asked}).timeouts == Timeouts(start=5400, workload=2700)
    assert "timeouts" not in api.run_manifest_spec(run())
    assert fingerprint(api.run_manifest_spec(run())) != fingerprint(asked)  # what timed out is measured anew


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(100_000, "27h46m40s"), (28 * 3600, "28h"), (99_999 * 3661, "99999h1694h25m39s")],
)
def test_more_than_a_day_is_said_as_the_api_takes_it(seconds: float, said: str) -> None:
    asked = api.run_manifest_spec(replace(run(), timeouts=Timeouts(workload=seconds)))
    assert asked["timeouts"] == {"start": "30m", "workload": said}
    assert api.run({"spec": asked}).timeouts.workload == seconds
