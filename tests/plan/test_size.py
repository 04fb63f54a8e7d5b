"""Nothing of the largest run that is admitted takes more than 110 kB: neither it, with its status, nor a round."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.plan.test_sweep import COMMIT
from tests.support.answers import answer
from tests.support.edits import example_run
from tests.support.in_status import failed_round, round_status
from tests.support.verdicts import between_rounds

from paceline import api
from paceline.api.round import Round
from paceline.core import RunSpec
from paceline.core.manifest import Manifest
from paceline.core.outputs import MOST_COMPARED
from paceline.core.record import from_status
from paceline.evidence import Failure, Point, Replicate, decode, encode, judge_points
from paceline.evidence.clocks import Clocks, Throttled
from paceline.evidence.failures import MANY
from paceline.evidence.result import Parts
from paceline.plan import run
from paceline.plan.run.rounds import manifest as recorded
from paceline.plan.run.steps.collect import LONGEST_REASON
from paceline.render import Owner
from paceline.render.round_job import round_plan

MOST = 110_000
"""Bytes, as the API server sends an object; etcd takes 1.5 MiB (--max-request-bytes)."""
LONG = {"name": "n" * 63, "namespace": "s" * 63, "uid": "0" * 36}
IMAGE = "docker.io/lmsysorg/sglang@sha256:" + "0" * 64
SAMPLES = 32
"""The bound of parity.samples."""
NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)


def asking(arms: int, workloads: int, rounds: int) -> Manifest:
    manifest: Manifest = example_run()
    spec = manifest["spec"]
    manifest["metadata"] |= LONG
    spec["target"]["commit"] = COMMIT
    baseline, candidate = spec["arms"][:2]
    candidate["draft"]["commit"] = COMMIT
    candidates = [
        {**candidate, "name": f"candidate-{n:0>20}", "tree": {"numSteps": n, "topK": 1, "numDraftTokens": n + 1}}
        for n in range(4, arms + 3)
    ]
    code = {"name": "a-set-of-prompts-of-thirty-let", "source": "builtin://code", "requests": 20_480, "maxTokens": 512}
    del spec["maxConcurrency"]
    return manifest | {
        "spec": spec
        | {
            "arms": [baseline, *candidates],
            "workloads": [{**code, "weight": 1, "concurrency": 4096 - number} for number in range(workloads)],
            "gate": {
                "decideAfterRounds": [rounds],
                **({"parity": {"samples": SAMPLES}} if arms <= MOST_COMPARED else {}),
            },
        }
    }


def every_number(point: Point) -> Point:
    """With all its digits."""
    time, positions = 123.456789, tuple(0.8765 - 0.1 * place for place in range(8))
    return replace(
        point,
        steady_throughput=12345.6789,
        fullness=0.97,
        p99_itl=time,
        **dict.fromkeys(("mean_ttft", "p95_ttft", "mean_tpot", "p95_tpot", "mean_e2e", "p95_e2e"), time),
        **dict.fromkeys(("p50_ttft", "p99_ttft", "p50_tpot", "p99_tpot"), time),
        accepted_at=positions if point.accept_length else (),
        good_requests=point.asked,
        good_tokens=point.output_tokens,
        mean_input=1234.5,
        p50_input=1234,
        p99_input=12345,
        p50_output=1234,
        p99_output=12345,
        request_spread=0.123,
        **(
            dict.fromkeys(("worst_decile", "median_prompt", "best_decile", "slower_prompts"), 0.8765)
            if positions
            else {}
        ),
    )


def whole(replicate: Replicate) -> Replicate:
    """And near ties in every answer: with any other difference the run would end after two rounds."""
    ties, outputs = {"near_ties": SAMPLES, "first": 123, "gap": 0.24}, replicate.outputs
    held = (Throttled(workload=point.workload, reasons=0xFC, percent=100) for point in replicate.points)
    return replace(
        replicate,
        kv_tokens=1_000_000,
        seconds=Parts(imports=43.61, weights=142.9, graphs=14.01, warm_up=14.02, loads=1234.0, end=5.123),
        clocks=Clocks(sm_mhz=1755, most_sm_mhz=1980, limit_watts=700, celsius=71, throttled=tuple(held)),
        points=tuple(map(every_number, replicate.points)),
        outputs=replace(outputs, **ties) if outputs and outputs.samples else outputs,  # type: ignore[arg-type]
    )


def measured(spec: RunSpec, owner: Owner, number: int, attempt: int) -> dict[str, Any]:
    """A round of which every number was believed, as status keeps it."""
    asked = round_plan(owner, spec, spec.arms, number, attempt)
    names = [workload.name for workload in spec.workloads]
    truth = {arm.name: dict.fromkeys(names, 12345.6789) for arm in spec.arms}
    result = decode(answer(asked, truth, 1_795_245_504.0, 1_795_249_004.0, {arm.name: whole for arm in spec.arms}))
    result = decode(encode(replace(
        result,
        gpus=tuple(f"GPU-{number:036}" for number in range(8)),
        lines_sha256="0" * 64,
        lines_bytes=123_456_789,
    )))  # fmt: skip
    entry = round_status(asked, result, judge_points(asked, result), "j" * 63, "n" * 63, IMAGE, 3600, IMAGE)
    assert all(point["valid"] for point in entry["points"]), entry["points"][0]["why"]
    return entry | {"neighbours": [f"{LONG['namespace']}/{LONG['name']} (8)"] * 16}


def rounds(spec: RunSpec, owner: Owner) -> Iterator[dict[str, Any]]:
    """Each after as many tries as a run has patience for."""
    for number in range(spec.gate.decide_after_rounds[-1]):
        for attempt in range(MANY - 1):
            evicted = {"job": "j" * 63, "node": "n" * 63, "reason": Failure.VolumeInUse, "error": "e" * LONGEST_REASON}
            yield failed_round(round=number, try_=attempt, held_seconds=3600, **evicted)  # type: ignore[arg-type]
        yield measured(spec, owner, number, MANY - 1)


@pytest.mark.parametrize(
    ("arms", "workloads", "looks"), [(2, 24, 10), (24, 2, 10), (48, 1, 10), (12, 4, 50), (3, 16, 50)]
)
def test_no_object_of_the_largest_run_is_large(arms: int, workloads: int, looks: int) -> None:
    manifest = asking(arms, workloads, looks)
    spec, owner = api.run(manifest), Owner(kind="BenchmarkRun", **LONG)
    objects = tuple(recorded(owner, manifest, from_status(Round, one)) for one in rounds(spec, owner))
    status = run.plan(replace(between_rounds(manifest, spec), objects=objects), NOW).status
    assert status is not None
    assert status["verdict"]["rounds"] == looks
    sizes = [len(json.dumps(one, separators=(",", ":")).encode()) for one in (manifest | {"status": status}, *objects)]
    assert max(sizes) < MOST, f"the run {sizes[0]}, a round {max(sizes[1:])}"
