"""A round of two arms on two workloads, as planned and as measured."""

import dataclasses
from typing import Any

from paceline.core import Dataset, Workload
from paceline.evidence import ArmCommand, Point, Replicate, RoundPlan

CODE = Workload(dataset=Dataset(name="code", source="builtin://code", requests=6, max_tokens=128), concurrency=1)


CHAT = Workload(dataset=Dataset(name="chat", source="builtin://chat", requests=6, max_tokens=128), concurrency=1)


def arm_command(name: str, *argv: str, candidate: bool = True, **fields: Any) -> ArmCommand:
    """Of a server that SGLang starts."""
    given = {"engine": "SGLang", "port": 30000, "compared": ("attention_backend",), **fields}
    return ArmCommand(name=name, argv=argv or ("serve",), candidate=candidate, **given)


def with_arms(plan: RoundPlan, **fields: Any) -> RoundPlan:
    """The plan with these fields on all of its arms."""
    return dataclasses.replace(plan, arms=tuple(dataclasses.replace(arm, **fields) for arm in plan.arms))


PLAN = RoundPlan(
    run="pair-latency-0123456789-1",
    round=0,
    try_=0,
    served_name="pair",
    arms=(
        arm_command("baseline", candidate=False, expected={"speculative_algorithm": None}),
        arm_command("wide", "serve", "--speculative-num-steps=3", expected={"speculative_num_steps": 3}),
    ),
    workloads=(CODE, CHAT),
    results_dir="/models/results",
)


GOOD = Point(
    workload="code@1",
    asked=6,
    completed=6,
    errors=0,
    output_tokens=576,
    output_throughput=241.2,
    steady_throughput=249.7,
    fullness=1.0,
    mean_ttft=0.04,
    p95_ttft=0.05,
    retractions=0,
    client_cpu=0.1,
    client_lag=0.0002,
)


SPECULATED = dataclasses.replace(GOOD, accept_length=2.81, verify_calls=205, steady_throughput=379.5)


def both(point: Point) -> tuple[Point, ...]:
    return tuple(dataclasses.replace(point, workload=workload.name) for workload in PLAN.workloads)


BASELINE = Replicate(
    arm="baseline",
    start_seconds=13.2,
    resolved={"attention_backend": "triton", "speculative_algorithm": None},
    points=both(GOOD),
)


WIDE = Replicate(
    arm="wide",
    start_seconds=15.0,
    resolved={"attention_backend": "triton", "speculative_num_steps": 3},
    points=both(SPECULATED),
)
