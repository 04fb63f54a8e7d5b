"""A hundred seeded runs a misbehaviour: whatever it makes the numbers look like, no verdict comes of it.

Numbers that would lead to a false verdict, if they were believed, are made of a known truth: a candidate that is no
faster looks 50 % faster, one that is 20 % faster looks slower. Every round is ill, or some of them are.
What an illness looks like in a round's answer is what real rounds showed (`test_validity.py`).
"""

import dataclasses
import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.support.example import RUN
from tests.support.in_status import records as in_status
from tests.support.verdicts import Record, concluded, outcome, question, recorded
from tests.unit.round.pod import workload

from paceline.core import BASELINE, Parity
from paceline.evidence import (
    ArmCommand,
    Outputs,
    Point,
    Replicate,
    RoundPlan,
    RoundResult,
    decode,
    encode,
    judge_points,
)
from paceline.plan.run.next_round import next_try
from paceline.render.round_job import round_plan

SEEDS = range(100)
WORKLOADS = (workload("code", 1, 6, 96), workload("chat", 8, 32, 96))
SPEC = dataclasses.replace(question("wide", WORKLOADS), parity=Parity(samples=2))
PLAN = round_plan(RUN, SPEC, SPEC.arms, 0, 0)
NOISE = 0.005
TRUTHS = {1.0: (1.5, "Promote"), 1.2: (0.7, "Reject")}
"""How fast the candidate is → how fast an ill one looks, and the verdict that would be false."""

UNRELIABLE = "Unreliable"
"""Of a candidate whose own server ended twice, or did not answer twice what the baseline's did, this is no false
verdict, however fast it is."""

Illness = Callable[[Replicate], Replicate]


def points(**numbers: Any) -> Illness:
    """Every point of an arm has these numbers in place of its own."""
    return lambda well: dataclasses.replace(
        well, points=tuple(dataclasses.replace(point, **numbers) for point in well.points)
    )


def each(change: Callable[[Point], Point]) -> Illness:
    return lambda well: dataclasses.replace(well, points=tuple(change(point) for point in well.points))


def half_failed(point: Point) -> Point:
    return dataclasses.replace(point, completed=point.asked // 2, errors=point.asked - point.asked // 2)


def one_broke_off(point: Point) -> Point:
    return dataclasses.replace(point, completed=point.asked - 1, errors=1)


def wrote_less(point: Point) -> Point:
    assert point.output_tokens is not None
    return dataclasses.replace(point, output_tokens=round(point.output_tokens * 0.6))


def failed(error: str, exit_code: int | None = None) -> Illness:
    """It failed at the very end: all points are there, and look good."""
    return lambda well: dataclasses.replace(well, error=error, exit_code=exit_code)


def runs_with(**resolved: str | int) -> Illness:
    return lambda well: dataclasses.replace(well, resolved={**well.resolved, **resolved})


def answered(outputs: Outputs | None) -> Illness:
    return lambda well: dataclasses.replace(well, outputs=outputs)


ANY = {
    "errors in the stream": each(half_failed),
    "a stream that breaks off": each(one_broke_off),
    "all requests 404": points(completed=0),
    "retractions": points(retractions=3),
    "retractions unknown": points(retractions=None),
    "no time to first token": points(mean_ttft=0.0),
    "far fewer tokens": each(wrote_less),
    "throughput NaN": points(steady_throughput=math.nan),
    "throughput infinite": points(steady_throughput=math.inf),
    "throughput absent": points(steady_throughput=None),
    "tokens absent": points(output_tokens=None),
    "another model": failed("the server serves other, not pair"),
    "a restart": failed("code@1: 6 requests were answered, but the server counted 2: it was restarted meanwhile"),
    "a cache that is not emptied": failed("code@1: 400 of 420 prompt tokens came from a cache"),
    "the server died": failed("CUDA error: out of memory", 137),
    "the server ended in peace": failed("", 0),
    "another attention backend": runs_with(attention_backend="flashinfer"),
    "nothing measured": lambda well: dataclasses.replace(well, points=()),
}
CANDIDATE = {
    "another tree": runs_with(speculative_num_steps=1),
    "speculation off, and said so": runs_with(speculative_algorithm="none"),
    "speculation off": points(verify_calls=0, accept_length=None),
    "verify calls absent": points(verify_calls=None),
    "acceptance length absent": points(accept_length=None),
    "acceptance length NaN": points(accept_length=math.nan),
    "acceptance length below one": points(accept_length=0.3),
    "acceptance length beyond the tree": points(accept_length=97.0),
    "outputs not compared": answered(Outputs(unknown="baseline on prompt 0: HTTP 400: no logprobs here")),
    "outputs not asked for": answered(None),
}
BASELINES = {
    "the baseline speculates": points(verify_calls=200, accept_length=2.5),
}
ILL: Mapping[str, Mapping[str, Illness]] = {
    **{f"{name}: {arm}": {arm: illness} for name, illness in ANY.items() for arm in (BASELINE, "wide")},
    **{f"{name}: wide": {"wide": illness} for name, illness in CANDIDATE.items()},
    **{f"{name}: {BASELINE}": {BASELINE: illness} for name, illness in BASELINES.items()},
}
"""What is wrong → arm → what it does to a round's answer."""


BLAMES_THE_SERVER = (
    "the server died: wide",
    "the server ended in peace: wide",
    "retractions: wide",
    "errors in the stream: wide",
    "a stream that breaks off: wide",
    "all requests 404: wide",
)
"""Twice beside a baseline that is well."""


def replicate(arm: ArmCommand, plan: RoundPlan, speed: float, dice: random.Random) -> Replicate:
    """A good one, `speed` times as fast as the baseline."""

    def point(name: str, requests: int, most: int) -> Point:
        tokens = requests * most * 9 // 10
        speculation: dict[str, Any] = {"accept_length": 2.5, "verify_calls": tokens // 3} if arm.candidate else {}
        return Point(
            workload=name,
            asked=requests,
            completed=requests,
            errors=0,
            output_tokens=tokens,
            steady_throughput=200 * speed * math.exp(dice.gauss(0, NOISE)),
            mean_ttft=0.04,
            p95_ttft=0.05,
            mean_e2e=0.5,
            retractions=0,
            client_cpu=0.1,
            client_lag=0.0002,
            **speculation,
        )

    return Replicate(
        arm=arm.name,
        start_seconds=13.0,
        resolved={**dict.fromkeys(arm.compared, "same"), **arm.expected},
        points=tuple(point(one.name, one.dataset.requests, one.dataset.max_tokens) for one in plan.workloads),
        outputs=Outputs(samples=2) if arm.candidate else Outputs(digests=("0a0b", "0c0d")),
    )


def run(speeds: Callable[[int, str], float], dice: random.Random, ill: Callable[[int], Mapping[str, Illness]]) -> str:
    """The outcome of a run in which this arm is so fast in this round, and ill as said; or that it is Unreliable."""
    records: list[Record] = []
    while True:
        number, attempt = next_try(in_status(records))
        plan = dataclasses.replace(PLAN, round=number, try_=attempt)
        measured = {arm.name: replicate(arm, plan, speeds(number, arm.name), dice) for arm in plan.arms}
        for arm, illness in ill(number).items():
            measured[arm] = illness(measured[arm])
        records.append(recorded(plan, RoundResult(round=number, try_=attempt, replicates=tuple(measured.values()))))
        assert_seen(records[-1], ill(number))
        if conclusion := concluded(SPEC, records):
            return UNRELIABLE if conclusion.verdict and conclusion.verdict.reason == UNRELIABLE else outcome(conclusion)


def assert_seen(record: Record, ill: Mapping[str, Illness]) -> None:
    invalid = {point["workload"] for point in record["points"] if not point["valid"]}
    assert invalid == ({workload.name for workload in WORKLOADS} if ill else set())


@pytest.mark.parametrize("name", ILL)
def test_no_false_verdict_in_a_hundred_runs(name: str) -> None:
    for seed in SEEDS:
        dice = random.Random(f"{name} {seed}")
        truth, (looks, false) = dice.choice(list(TRUTHS.items()))
        always = dice.random() < 0.5
        sick = {number for number in range(40) if always or dice.random() < 0.4}

        def speed(number: int, arm: str, sick: set[int] = sick, truth: float = truth, looks: float = looks) -> float:
            return 1.0 if arm == BASELINE else looks if number in sick else truth

        def ill(number: int, sick: set[int] = sick) -> Mapping[str, Illness]:
            return ILL[name] if number in sick else {}

        came_to = run(speed, dice, ill)
        assert came_to == "Error" if always else came_to != false, f"seed {seed}"
        assert came_to != UNRELIABLE or name in BLAMES_THE_SERVER, f"seed {seed}"


@pytest.mark.parametrize("throughput", [math.nan, math.inf, None])
def test_what_is_no_number_is_none_behind_the_message(throughput: float | None) -> None:
    well = [replicate(arm, PLAN, 1.5, random.Random(1)) for arm in PLAN.arms]
    ill = tuple(points(steady_throughput=throughput)(one) for one in well)
    answer = decode(encode(RoundResult(round=0, try_=0, replicates=ill)))
    assert not any(one.valid for one in judge_points(PLAN, answer))


SLOW = {
    "a slow server": lambda slow, arm: arm == slow,
    "a slow node": lambda *_: True,
}
"""Whether an arm is slow in a round in which `slow` is the arm that it could be."""


@pytest.mark.parametrize("name", SLOW)
def test_one_slow_round_is_noise(name: str) -> None:
    """By 30 %, in one round of a run: all points are valid, and the spread of the rounds speaks for itself."""
    for seed in SEEDS:
        dice = random.Random(f"{name} {seed}")
        truth, (_, false) = dice.choice(list(TRUTHS.items()))
        at, slow = dice.randrange(3), BASELINE if truth == 1.0 else "wide"

        def speed(number: int, arm: str, at: int = at, slow: str = slow, truth: float = truth) -> float:
            slowed = 0.7 if number == at and SLOW[name](slow, arm) else 1.0
            return slowed * (1.0 if arm == BASELINE else truth)

        assert run(speed, dice, lambda _: {}) != false, f"seed {seed}"
