"""The demo's two questions asked again and again without a cluster: `python -m tests.demo.loopback --times 10`.

Each round is what its pod would run: the wrapper, the client and the emulated server of each arm, as processes on
loopback, in the operator's order of arms and until the operator's gate is content. All campaigns are added to
tests/gate/recorded/loopback.jsonl.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.demo.record import RECORDED, keep
from tests.support.in_status import measurements, point_noise, records, round_status
from tests.support.running import HEAD, TARGET

from paceline import core, gate, render
from paceline.evidence import ENVIRONMENT, ArmCommand, RoundPlan, decode, judge
from paceline.plan.run.steps.measure import came_first, rotated
from paceline_emulator.hub import tokenizer

WIDE = core.Arm(name="wide", tree=core.Tree(num_steps=3, top_k=4, num_draft_tokens=8))
NARROW = core.Arm(name="narrow", tree=core.Tree(num_steps=5, top_k=1, num_draft_tokens=6))
BASELINE = core.Arm(name="baseline")
SETS = ("code", "swe", "terminal", "chat")
PATIENCE = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A pool of examples/qwen3-coder-next.yaml, as short as tests/demo/overlay.yaml makes it."""

    pool: str
    arms: tuple[core.Arm, ...]
    concurrency: int
    requests: int
    rule: core.Gate

    @property
    def workloads(self) -> tuple[core.Workload, ...]:
        sets = [core.Dataset(name=n, source=f"builtin://{n}", requests=self.requests, max_tokens=64) for n in SETS]
        return tuple(core.Workload(dataset=found, concurrency=self.concurrency) for found in sets)


QUESTIONS = (
    Question(pool="latency", arms=(BASELINE, WIDE), concurrency=1, requests=6, rule=core.Gate()),
    Question(
        pool="throughput",
        arms=(BASELINE, NARROW, WIDE),
        concurrency=32,
        requests=160,
        rule=core.Gate(minimum_improvement=0.02, decide_after_rounds=core.default_looks(3)),
    ),
)


def campaign(question: Question) -> dict[str, Any]:
    """A finished run, as far as tests/demo/record.py reads it."""
    entries: list[dict[str, Any]] = []
    weights = {workload.name: 1.0 for workload in question.workloads}
    names = [arm.name for arm in question.arms]
    verdict, left = None, None
    while verdict is None or not verdict.final:
        arms = rotated(question.arms, left, came_first(records(entries)))
        with tempfile.TemporaryDirectory() as directory:
            entries.append(measured(question, arms, len(entries), Path(directory)))
        verdict = gate.decide(question.rule, names, weights, measurements(entries))
        left = gate.undecided(verdict)
    return manifest(question, entries, verdict)


def measured(question: Question, arms: Sequence[core.Arm], number: int, directory: Path) -> dict[str, Any]:
    """A round's entry in `status.rounds`."""
    write_models(directory)
    port = free_port()
    asked = RoundPlan(
        run=question.pool,
        round=number,
        try_=0,
        engine="SGLang",
        served_name="qwen3-coder-next",
        tokenizer=str(directory / "target"),
        port=port,
        arms=tuple(command(arm, directory, port) for arm in arms),
        workloads=question.workloads,
        results_dir=str(directory / "results"),
        compared=("attention_backend",),
        start_timeout_seconds=120,
    )
    for side in ("in", "out"):
        (directory / "ctl" / side).mkdir(parents=True)
    environment = {
        **os.environ,
        "PACELINE_EMULATE_STARTUP_SECONDS": "0.2",
        "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1",
        "PACELINE_CTL": str(directory / "ctl"),
        "PACELINE_TERMINATION_LOG": str(directory / "message"),
        "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1,GPU-2,GPU-3",
        "POD_UID": str(uuid.uuid4()),
        ENVIRONMENT: asked.to_json(),
    }
    wrapper = Path(render.__file__).with_name("wrapper.sh").read_text()
    with (directory / "log").open("wb") as log:
        argvs = (["dash", "-c", wrapper], [sys.executable, "-m", "paceline.pods.round"])
        processes = [subprocess.Popen(argv, env=environment, stdout=log, stderr=log) for argv in argvs]
        for process in reversed(processes):
            process.wait(PATIENCE)
    result = decode((directory / "message").read_text())
    judged = list(judge(asked, result))
    if wrong := [f"{one.arm} on {one.workload}: {one.why}" for one in judged if not one.valid]:
        raise SystemExit("\n".join(wrong))
    return round_status(asked, result, judged, job=f"{question.pool}-{number}", node="loopback")


def write_models(directory: Path) -> None:
    for name, config in {"target": TARGET, "head": HEAD}.items():
        (directory / name).mkdir()
        (directory / name / "config.json").write_text(json.dumps(config))
    for name, content in tokenizer.files().items():
        (directory / "target" / name).write_bytes(content)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def command(arm: core.Arm, directory: Path, port: int) -> ArmCommand:
    flags = {
        "model-path": directory / "target",
        "served-model-name": "qwen3-coder-next",
        "port": port,
        "tp-size": 4,
        "attention-backend": "triton",
        "max-running-requests": 64,
        "random-seed": 0,
        "decode-log-interval": 10,
    }
    if arm.tree:
        flags |= {
            "speculative-algorithm": "EAGLE3",
            "speculative-draft-model-path": directory / "head",
            "speculative-num-steps": arm.tree.num_steps,
            "speculative-eagle-topk": arm.tree.top_k,
            "speculative-num-draft-tokens": arm.tree.num_draft_tokens,
        }
    argv = [sys.executable, "-m", "paceline_emulator", "--enable-metrics"]
    argv += [part for name, value in flags.items() for part in (f"--{name}", str(value))]
    expected = {"speculative_num_steps": arm.tree.num_steps} if arm.tree else {"speculative_algorithm": None}
    return ArmCommand(name=arm.name, argv=tuple(argv), candidate=arm.tree is not None, expected=expected)


def manifest(question: Question, entries: Sequence[Mapping[str, Any]], verdict: core.Verdict) -> dict[str, Any]:
    rule = question.rule
    shown = [
        {"arm": name, "workload": workload, "lower": f"{found.lower:.4f}", "upper": f"{found.upper:.4f}"}
        for name, arm in verdict.arms.items()
        for workload, found in ({"mean": arm.mean} | dict(arm.workloads)).items()
        if found
    ]
    return {
        "spec": {
            "pool": question.pool,
            "gate": {
                "minimumImprovement": str(rule.minimum_improvement),
                "regressionTolerance": str(rule.regression_tolerance),
                "confidence": str(rule.confidence),
                "varianceFloor": str(rule.variance_floor),
                "decideAfterRounds": list(rule.decide_after_rounds),
            },
            "arms": [{"name": arm.name, "tree": _tree(arm)} for arm in question.arms],
            "workloads": [{"name": n, "concurrency": question.concurrency, "weight": 1} for n in SETS],
        },
        "status": {
            "engineVersion": entries[-1]["engineVersion"],
            "emulated": all(entry["emulated"] for entry in entries),
            "finishedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "noise": f"{point_noise(entries):.5f}",
            "rounds": entries,
            "results": shown,
            "verdict": {"outcome": verdict.outcome.value},
        },
    }


def _tree(arm: core.Arm) -> dict[str, int] | None:
    tree = arm.tree
    return tree and {"numSteps": tree.num_steps, "topK": tree.top_k, "numDraftTokens": tree.num_draft_tokens}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    for number in range(parser.parse_args().times):
        for question in QUESTIONS:
            run = campaign(question)
            keep([run], RECORDED / "loopback.jsonl")
            status = run["status"]
            print(
                number + 1,
                question.pool,
                status["verdict"]["outcome"],
                len(status["rounds"]),
                status["noise"],
                flush=True,
            )
