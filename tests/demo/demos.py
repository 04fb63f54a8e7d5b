"""`make demos`: the demo several times in a row, each from nothing, and whether each ended as the published tables say.

Writes docs/reports/demos.md: the outcome, the speed-ups and the noise of a point of every demo. No seed is picked: the
emulator's noise is seeded from the pods' uids. All runs are added to what tests/gate/test_coverage.py counts over.
"""

import argparse
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.demo.demo import ROOT, Cluster, clock, demo
from tests.demo.record import RECORDED, keep

REPORT = ROOT / "docs" / "reports" / "demos.md"
MOST_NOISE = 0.007
"""Of a point, emulator and machine: at 1 % one demo in twenty ends Inconclusive (docs/reports/error-rates.md)."""

MOST_IDLE, FIVE_MINUTES = 0.1, 300
"""Of the time that accelerators are held, if each start took so many seconds: docs/report.md."""

TABLE = (
    "| demo | time | latency | speed-up | rounds | noise | throughput | speed-up | rounds | noise | |",
    "|---|---|---|---|---|---|---|---|---|---|---|",
)
"""Above what `row` gives."""

EXPECTED = {
    "latency": {"winner": "wide", "wide": "promotable: FasterThanMinimum"},
    "throughput": {
        "winner": "narrow",
        "wide": "rejected: WorkloadRegressed",
        "narrow": "promotable: FasterThanMinimum",
    },
}


def main(times: int, namespace: str) -> int:
    rows, good = [], 0
    for number in range(1, times + 1):
        clear(namespace)
        started = time.monotonic()
        code = demo(namespace, Path("/tmp") / f"demo-{number}.html", limit=1800)
        runs = Cluster(namespace).runs()
        keep(runs, RECORDED / "demos.jsonl")
        wrong = [f"exit code {code}"] if code else [fault for run in runs for fault in faults(run)]
        good += not wrong
        rows.append(row(number, runs, time.monotonic() - started, wrong))
        print(rows[-1], flush=True)
        REPORT.parent.mkdir(exist_ok=True)
        REPORT.write_text(report(rows))
    print(f"{good} of {times} demos ended as expected")
    return 0 if good == times else 1


def clear(namespace: str) -> None:
    """What a demo leaves: the resource goes, the namespace and all in it too."""
    Cluster("default").run("delete", "namespace", namespace, "--ignore-not-found", "--wait=true", "--timeout=300s")


def faults(run: dict[str, Any]) -> list[str]:
    pool, status = run["spec"]["pool"], run["status"]
    found = unexpected(run)
    idle = sum(record["idleSeconds"] for record in run["rounds"])
    would_hold = idle + FIVE_MINUTES * status["cost"]["serverStarts"]
    if idle > MOST_IDLE * would_hold:
        found.append(f"{pool}: {idle} s idle, of {would_hold} s that five-minute starts would take")
    if float(status["noise"]) > MOST_NOISE:
        found.append(f"{pool}: noise of a point {float(status['noise']):.2%}")
    return found


def unexpected(run: dict[str, Any]) -> list[str]:
    """What the gate said otherwise than the published tables have it."""
    pool, status = run["spec"]["pool"], run["status"]
    expected = dict(EXPECTED[pool])
    found = []
    if status["verdict"]["winner"] != expected.pop("winner"):
        found.append(f"{pool}: winner {status['verdict']['winner'] or 'none'}")
    said = {verdict["arm"]: f"{verdict['outcome']}: {verdict['reason']}" for verdict in status["armVerdicts"]}
    return found + [f"{pool}: {arm} {said[arm]}" for arm, words in expected.items() if not said[arm].startswith(words)]


def row(number: int, runs: list[dict[str, Any]], seconds: float, wrong: list[str]) -> str:
    cells = [str(number), clock(seconds)]
    for run in sorted(runs, key=lambda run: str(run["spec"]["pool"])):
        status = run["status"]
        verdict = status["verdict"]
        cells += [
            f"{verdict['outcome']} {verdict['winner']}",
            " / ".join(
                f"{result['workload'].split('@')[0]} {float(result['ratio']):.3f}"
                for result in status["results"]
                if result["arm"] == verdict["winner"]
            ),
            str(len(run["rounds"])),
            f"{float(status['noise']):.2%}",
        ]
    return "| " + " | ".join([*cells, "; ".join(wrong) or "as expected"]) + " |"


def report(rows: list[str]) -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True)
    return "\n".join(
        [
            "# Demos in a row",
            "",
            f"Written by `make demos` at commit {commit.stdout.strip()}, on {platform.machine()}, "
            f"Linux {platform.release()}. The engine was emulated, so speeds are",
            "those of published tables. Speed-ups are of the winner, its weighted mean first.",
            "",
            *TABLE,
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--namespace", default="paceline-demos")
    arguments = parser.parse_args()
    sys.exit(main(arguments.times, arguments.namespace))
