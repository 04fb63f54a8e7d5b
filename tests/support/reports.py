"""Runs to write reports of: recorded ones, ones over several concurrencies, and one that means harm."""

import json
from pathlib import Path
from typing import Any

import yaml
from tests.support.runs import latency, lost_round

from paceline.api.round import with_rounds
from paceline.measure import record
from paceline.report import build_report
from paceline.report.model import RunView, Value

DEMO = Path(__file__).with_name("demo.yaml")
EVIL = "</title><script>alert(1)</script>$x^2$ |\n# <img src=x onerror=alert(2)>`"


def demo() -> list[dict[str, Any]]:
    """What kubectl showed while `make demo` ran: one pool decided, one under way."""
    return runs_of(yaml.safe_load(DEMO.read_text())["items"])


def runs_of(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs of a List, with their rounds."""
    runs, rounds = ([one for one in items if one["kind"] == kind] for kind in ("BenchmarkRun", "BenchmarkRound"))
    return [with_rounds(run, rounds) for run in runs]


def listed(*objects: dict[str, Any]) -> str:
    """As `kubectl get -o json` writes them, of runs with their rounds."""
    items = [
        one for each in objects for one in (record.as_documents(each) if each["kind"] == "BenchmarkRun" else [each])
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def said(run: dict[str, Any]) -> RunView:
    return build_report([run]).runs[0]


def value(run: RunView, metric: str, arm: str, workload: str) -> Value:
    return next(v for v in run.values if (v.metric, v.arm, v.workload) == (metric, arm, workload))


def over(*loads: tuple[int, float, float]) -> dict[str, Any]:
    """Three rounds of one dataset over concurrencies: concurrency, and tokens per second of baseline and wide."""
    run = latency()
    base = run["spec"]["workloads"][0]
    run["spec"]["workloads"] = [base | {"concurrency": c, "requests": 160} for c, _, _ in loads]
    for entry in run["rounds"]:
        entry["points"] = [
            {
                "arm": arm,
                "workload": f"code@{c}",
                "valid": True,
                "steadyThroughput": f"{1.001 ** entry['round'] * speed}",
            }
            for c, *speeds in loads
            for arm, speed in zip(("baseline", "wide"), speeds, strict=True)
        ]
    run["status"]["results"] = []
    return run


def shared_out(*loads: tuple[int, float, float]) -> dict[str, Any]:
    """The same, with the time per token of users who have equal shares. The servers have four GPUs."""
    run = over(*loads)
    for entry in run["rounds"]:
        for point in entry["points"]:
            point["meanTPOT"] = f"{int(point['workload'].partition('@')[2]) / float(point['steadyThroughput'])}"
    return run


GB10 = ((1, 25.0, 35.0), (8, 316.0, 270.0))
"""Published for a GB10."""


def evil() -> dict[str, Any]:
    """Whatever a cluster may say, said by somebody who means harm."""
    text = json.dumps(over(*GB10))
    for word in ("code", "wide", "latency", "gpu-0", "triton", "qwen3-coder-next", "builtin://"):
        text = text.replace(word, json.dumps(EVIL)[1:-1])
    run: dict[str, Any] = json.loads(text)
    status = run["status"]
    status["results"] = [
        {"arm": EVIL, "workload": w, "ratio": "1.1", "lower": "1.0", "upper": "1.2"} for w in ("mean", f"{EVIL}@1")
    ]
    status["armVerdicts"] = [{"arm": EVIL, "outcome": EVIL, "reason": EVIL}]
    status["verdict"] = {"outcome": EVIL, "winner": EVIL, "message": EVIL}
    rounds = run["rounds"]
    rounds[0] |= {"notes": [EVIL], "neighbours": [EVIL], "gpuModel": EVIL, "image": EVIL}
    rounds[1]["points"][0] |= {"valid": False, "why": EVIL}
    for point in rounds[0]["points"]:
        point |= {"p95TTFT": "0.1", "acceptLength": "2"}
    rounds.append(lost_round(9, EVIL))
    return run
