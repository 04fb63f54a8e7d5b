"""`paceline gate FILE`: apply the gate to your own measurements (docs/gate.md#measurements-of-your-own)."""

import argparse
import gc
import json
import math
import os
import re
import sys
from codecs import BOM_UTF8
from pathlib import Path
from typing import Any

from paceline import core, gate
from paceline.cli import options
from paceline.cli.gate_case import CaseInput, read_case

RUN_KIND = re.compile(rb'"?kind"?: "?BenchmarkRun\b')
_DEPLOYMENT = re.compile(rb'"?kind"?: "?SpeculativeDeployment\b')
SEARCH = re.compile(rb'^\s*"?search"?:', re.MULTILINE)
"""Finds the field in YAML or JSON."""

_NOTES = """\
FILE is {"gate": {...as spec.gate, decideAfterRounds too}, "arms": ["baseline", ...],
"workloads": [{"name": ..., "weight": 1, "rate": null}], "measurements": [{"round": 0, "arm": ..., "workload": ...,
"outputThroughput": ..., "valid": true, "metrics": {...}, "nothingAccepted": false, "ended": "", "saturated": false}]}.
Defaults of decideAfterRounds: [4, 6, 8] for two arms, [3, 6, 9] for three, [4, 8] for more. metrics: values above 0 of
the metrics that limits name, and outputTokens to compare the length of answers. For a workload with a rate,
outputThroughput is the speed of a request, and such workloads have their own mean. ended: why the arm's server failed
in the round (ServerCrashed). saturated: the arm did not keep the rate. An arm named incumbent is what serves: the
others must not be slower than it by gate.maxSlowdown, nor their meanTTFT (in metrics) longer than limits allow.
Exit: 0 Promote, 10 Reject, 11 Inconclusive, 12 Error, 1 if FILE cannot be judged.
A FILE named *.jsonl holds one case per line and gives one result per line; its exit code is 0.

For a NAME, the verdict is on the present spec. With several pools the highest code counts. Two more codes:
13 no verdict yet, or none within --wait; 14 none before a person acts (the deployment is Stalled).
"""


def add(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "gate",
        description="Judge measurements by the rule that the operator uses for promotion.",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE|NAME",
        help="a case as JSON, or cases as JSON lines (*.jsonl); otherwise the name of a SpeculativeDeployment in "
        "the cluster, which may be left out if there is only one",
    )
    parser.add_argument("--pool", help="for a NAME: only this pool")
    parser.add_argument(
        "--wait",
        type=options.seconds,
        default=0,
        metavar="DURATION",
        help="for a NAME: wait this long for verdicts, such as 2h [not at all]",
    )
    options.add_json(parser)
    options.add_kubectls(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the verdict, which also sets the exit code."""
    if not _is_file(args.file):
        from paceline.cli import gate_live

        return gate_live.run(args)
    if args.pool or args.wait:
        print(f"{args.file}: --pool and --wait are for the NAME of a SpeculativeDeployment", file=sys.stderr)
        return 1
    gc.disable()  # reading a hundred thousand measurements then takes a third of the time, and reading makes no cycles
    try:
        return _run(Path(args.file))
    except BrokenPipeError:  # the reader closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        gc.enable()


def _is_file(name: str | None) -> bool:
    return name is not None and (Path(name).suffix in (".json", ".jsonl") or "/" in name or Path(name).is_file())


def _run(file: Path) -> int:
    try:
        text = file.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        print(f"{file}: {error.strerror}", file=sys.stderr)
        return 1
    place = str(file)
    try:
        if RUN_KIND.search(text) and SEARCH.search(text):
            raise ValueError(
                "it is a BenchmarkRun that searches, and a search decides nothing: a gate compares what it found "
                "with the baseline; `paceline report` shows both"
            )
        if RUN_KIND.search(text):
            raise ValueError("it is a BenchmarkRun, which has its verdict in status: `paceline report` shows it")
        if _DEPLOYMENT.search(text):
            raise ValueError("it is a SpeculativeDeployment: give the NAME that it has in the cluster, or a case")
        if file.suffix != ".jsonl":
            verdict = judged(text)
            print(json.dumps(result(verdict), indent=2, allow_nan=False))
            return options.EXIT[verdict.outcome]
        if not text.strip():
            raise ValueError("it has no case: write one JSON object per line")
        for number, line in enumerate(text.splitlines(), start=1):
            place = f"{file}:{number}"
            if line.strip():
                print(json.dumps(result(judged(line)), allow_nan=False))
    except ValueError as error:
        print(f"{place}: {error}", file=sys.stderr)
        return 1
    return 0


def judged(text: bytes) -> core.Verdict:
    """The verdict on one case in JSON. Raises ValueError with the fault and its place."""
    case = read_case(text)
    weights, rated = {w.name: w.weight for w in case.workloads}, [w.name for w in case.workloads if w.rate]
    return gate.decide(_gate(case), case.arms, weights, _measurements(case), rated=rated)


def result(verdict: core.Verdict) -> dict[str, Any]:
    """The result in the form of docs/gate.md#measurements-of-your-own. Each candidate also has its margin, its mean at
    a rate next to its mean in closed loops (`rated`), the length of its answers (`tokens`, by workload) and its lost
    rounds. Before the first look, `mean`, `rated` and the margin are null and `workloads` is empty. With an incumbent
    each arm has its mean's ratio to that (`incumbent`); the baseline has nothing else."""
    return {
        "outcome": verdict.outcome,
        "winner": verdict.winner,
        "rounds": verdict.rounds,
        "arms": {
            name: {
                "mean": _bounds(arm.mean) if arm.mean else None,
                "workloads": {workload: _bounds(bounds) for workload, bounds in arm.workloads.items()},
                "verdict": arm.outcome,
                "reason": gate.explain(arm),
                "margin": _finite(arm.margin),
                "rated": _bounds(arm.rated) if arm.rated else None,
                "tokens": {workload: _bounds(bounds) for workload, bounds in arm.lengths.items()},
                "lost": arm.lost,
                **({"incumbent": _bounds(arm.incumbent)} if arm.incumbent else {}),
            }
            for name, arm in verdict.arms.items()
        },
    }


def _bounds(bounds: core.Bounds) -> dict[str, float | None]:
    return {"ratio": _finite(bounds.ratio), "lower": _finite(bounds.lower), "upper": _finite(bounds.upper)}


def _finite(value: float | None) -> float | None:
    """The number; None for an infinity, which JSON lacks."""
    return value if value is not None and math.isfinite(value) else None


def _gate(case: CaseInput) -> core.Gate:
    return core.Gate(
        min_improvement=case.gate.min_improvement,
        max_regression=case.gate.max_regression,
        max_slowdown=case.gate.max_slowdown,
        confidence=case.gate.confidence,
        variance_floor=case.gate.variance_floor,
        limits=tuple(core.Limit(**limit.model_dump()) for limit in case.gate.limits),
        decide_after_rounds=core.default_looks(len(case.arms))
        if case.decide_after_rounds is None
        else case.decide_after_rounds,
    )


def _measurements(case: CaseInput) -> list[core.Measurement]:
    return [
        core.Measurement(
            round=m.round,
            arm=m.arm,
            workload=m.workload,
            output_throughput=m.output_throughput,
            valid=m.valid and not m.ended,
            nothing_accepted=m.nothing_accepted,
            ended=m.ended,
            saturated=m.saturated,
            metrics={name: value for name, value in m.metrics.items() if value is not None},
        )
        for m in case.measurements
    ]
