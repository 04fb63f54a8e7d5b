"""Two finished runs as the operator leaves them: the pools of the example, judged by the real gate."""

import random
from collections.abc import Mapping
from typing import Any

from tests.support.campaigns import LATENCY, THROUGHPUT, THROUGHPUT_GATE, Truth, measure
from tests.support.in_status import failed_round, point_noise

from paceline import core, gate
from paceline.api import run_manifest_spec
from paceline.core.names import ATTEMPT, TOKEN, TRIGGER
from paceline.evidence import Failure


def made_by(run: Mapping[str, Any]) -> dict[str, str]:
    """Why the operator made a BenchmarkRun: attempt, trigger and token."""
    found: Mapping[str, str] = run["metadata"].get("annotations") or {}
    names = {name.partition("/")[2]: name for name in (ATTEMPT, TRIGGER, TOKEN)}
    return {short: found[name] for short, name in names.items() if name in found}


HEAD = core.Draft(
    algorithm="EAGLE3",
    model=core.Model(source="hf://thoughtworks/Qwen3-Coder-Next-Eagle3", commit="0e2d8f1c" * 5),
)
WIDE = core.Arm(name="wide", draft=HEAD, tree=core.Tree(num_steps=3, top_k=4, num_draft_tokens=8))
NARROW = core.Arm(name="narrow", draft=HEAD, tree=core.Tree(num_steps=5, top_k=1, num_draft_tokens=6))
BASELINE = core.Arm(name="baseline")

SERVER = core.Server(
    engine=core.Engine(
        type="SGLang",
        version="0.5.23",
        image="lmsysorg/sglang:v0.5.23",
        args=("--attention-backend=triton", "--mem-fraction-static=0.85"),
        trust_remote_code=True,
    ),
    target=core.Model(source="hf://Qwen/Qwen3-Coder-Next", commit="a1b2c3d4" * 5),
    served_name="qwen3-coder-next",
    accelerator=core.Accelerator(product="NVIDIA-H200", count=4, tensor_parallel_size=4),
    cache=core.Cache(claim="models"),
    max_concurrency=32,
)


def latency(**status: Any) -> dict[str, Any]:
    return manifest("latency", 1, (BASELINE, WIDE), LATENCY, core.Gate(), seed=1, **status)


def throughput(**status: Any) -> dict[str, Any]:
    return manifest("throughput", 32, (BASELINE, NARROW, WIDE), THROUGHPUT, THROUGHPUT_GATE, seed=5, **status)


def manifest(
    pool: str, concurrency: int, arms: tuple[core.Arm, ...], truth: Truth, rule: core.Gate, *, seed: int, **status: Any
) -> dict[str, Any]:
    """A BenchmarkRun whose points scatter by 0.4 %, whose machine gets slower by 0.2 % a round; `status` overrides."""
    points = {
        (m.round, m.arm, m.workload): (m.output_throughput or 0) * 0.998**m.round
        for m in measure(truth, cv=0.004, seed=seed)
    }
    measured = [
        core.Measurement(round=n, arm=arm, workload=w, output_throughput=value) for (n, arm, w), value in points.items()
    ]
    verdict = gate.decide(rule, list(truth), dict.fromkeys(truth["baseline"], 1.0), measured)
    rounds = [_round(pool, n, truth, points, concurrency) for n in range(verdict.rounds)]
    spec = core.RunSpec(
        pool=pool,
        server=SERVER,
        arms=arms,
        workloads=tuple(
            core.Workload(
                dataset=core.Dataset(name=w, source=f"builtin://{w}", requests=160, max_tokens=96),
                concurrency=concurrency,
            )
            for w in truth["baseline"]
        ),
        gate=rule,
    )
    noise = point_noise(rounds)
    return {
        "apiVersion": "paceline.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": f"qwen3-coder-next-{pool}-5f0c9a1b2d-1", "namespace": "models"},
        "spec": run_manifest_spec(spec),
        "status": {
            "conditions": [
                {
                    "type": "Complete",
                    "status": "True",
                    "reason": verdict.outcome.value,
                    "message": "",
                    "lastTransitionTime": "2026-11-20T10:40:00Z",
                }
            ],
            "fingerprint": "5f0c9a1b2d",
            "node": "gpu-0",
            "engineVersion": "0.5.23",
            "results": [entry for name, arm in verdict.arms.items() for entry in _results(name, arm, concurrency)],
            "armVerdicts": [
                {"arm": name, "outcome": arm.outcome.value, "reason": gate.explain(arm)}
                for name, arm in verdict.arms.items()
            ],
            "verdict": {
                "outcome": verdict.outcome.value,
                "winner": verdict.winner or "",
                "rounds": verdict.rounds,
                "reason": verdict.arms[verdict.winner or arms[-1].name].reason,
                "message": "",
            },
            "cost": {"gpuSeconds": 4 * 190 * verdict.rounds, "serverStarts": len(arms) * verdict.rounds},
            "emulated": True,
            "noise": f"{noise:.5f}",
            **status,
        },
        "rounds": rounds,
    }


def lost_round(number: int, why: str) -> dict[str, Any]:
    return failed_round(round=number, try_=0, job="run-0-0", node="gpu-0", error=why, reason=Failure.ClientFailed)


def _round(
    pool: str, n: int, truth: Truth, points: Mapping[tuple[int, str, str], float], concurrency: int
) -> dict[str, Any]:
    arms = [*list(truth)[n % len(truth) :], *list(truth)[: n % len(truth)]]
    dice = random.Random(n)
    tree = {"baseline": "", "wide": "3/4/8", "narrow": "5/1/6"}
    return {
        "round": n,
        "try": 0,
        "job": f"qwen3-coder-next-{pool}-5f0c9a1b2d-1-{n}-0",
        "node": "gpu-0",
        "startTime": f"2026-11-20T10:{10 + 4 * n:02}:00Z",
        "completionTime": f"2026-11-20T10:{13 + 4 * n:02}:10Z",
        "gpus": [f"GPU-0000{i}" for i in range(4)],
        "engineVersion": "0.5.23",
        "emulated": True,
        "replicates": [
            {
                "arm": arm,
                "startSeconds": f"{dice.uniform(12, 14):.1f}",
                "resolved": {"attention_backend": "triton", "page_size": "1", "speculative": tree[arm]},
                "restSHA256": "0f" * 8,
            }
            for arm in arms
        ],
        "points": [
            {
                "arm": arm,
                "workload": f"{w}@{concurrency}",
                "valid": True,
                "why": "",
                "asked": 160,
                "completed": 160,
                "outputThroughput": f"{0.98 * points[n, arm, w]:.6g}",
                "steadyThroughput": f"{points[n, arm, w]:.6g}",
                "meanConcurrency": f"{concurrency}",
            }
            for arm in arms
            for w in truth["baseline"]
        ],
        "error": "",
    }


def _results(name: str, arm: core.ArmVerdict, concurrency: int) -> list[dict[str, str]]:
    length = {"wide": "2.810", "narrow": "2.340"}[name]
    mean = [{"arm": name, "workload": "mean", **_bounds(arm.mean)}] if arm.mean else []
    return mean + [
        {"arm": name, "workload": f"{w}@{concurrency}", **_bounds(found), "acceptLength": length}
        for w, found in arm.workloads.items()
    ]


def _bounds(found: core.Bounds) -> dict[str, str]:
    return {"ratio": f"{found.ratio:.4f}", "lower": f"{found.lower:.4f}", "upper": f"{found.upper:.4f}"}
