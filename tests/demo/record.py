"""Keeps finished runs as cases for `paceline gate`: what tests/gate/test_coverage.py counts over.

    kubectl -n paceline-demo get bench,benchround -o json | .venv/bin/python -m tests.demo.record demos.jsonl

adds them to tests/gate/recorded/demos.jsonl. Keep all that a series gave, or none: picking would spoil the count.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.in_status import measurements
from tests.support.reports import runs_of

RECORDED = Path(__file__).resolve().parents[1] / "gate" / "recorded"


def case(run: Mapping[str, Any]) -> dict[str, Any]:
    """Of a finished BenchmarkRun; beside what `paceline gate` reads: what the operator showed, and of which trees."""
    spec, status = run["spec"], run["status"]
    rule = dict(spec["gate"])
    looks = rule.pop("decideAfterRounds")
    return {
        "pool": spec["pool"],
        "engine": status["engineVersion"],
        "emulated": status["emulated"],
        "finishedAt": status["completionTime"],
        "noise": status["noise"],
        "trees": {arm["name"]: list(_tree(arm["tree"])) for arm in spec["arms"] if arm.get("tree")},
        "shown": [{key: entry[key] for key in ("arm", "workload", "lower", "upper")} for entry in status["results"]],
        "gate": rule,
        "decideAfterRounds": looks,
        "arms": [arm["name"] for arm in spec["arms"]],
        "workloads": [{"name": f"{w['name']}@{w['concurrency']}", "weight": w["weight"]} for w in spec["workloads"]],
        "measurements": [
            {
                "round": m.round,
                "arm": m.arm,
                "workload": m.workload,
                "outputThroughput": m.output_throughput,
                "valid": m.valid,
                **({"ended": m.ended} if m.ended else {}),
            }
            for m in measurements(run["rounds"])
        ],
    }


def _tree(tree: Mapping[str, int]) -> tuple[int, int, int]:
    return tree["numSteps"], tree["topK"], tree["numDraftTokens"]


def keep(runs: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Adds the finished ones; how many."""
    cases = [case(run) for run in runs if "verdict" in run.get("status", {})]
    with path.open("a") as file:
        file.writelines(json.dumps(found, separators=(",", ":")) + "\n" for found in cases)
    return len(cases)


if __name__ == "__main__":
    print(keep(runs_of(json.load(sys.stdin)["items"]), RECORDED / sys.argv[1]), "runs kept")
