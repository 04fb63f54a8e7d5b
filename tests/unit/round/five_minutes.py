"""`make five-minutes`: a round whose servers really take five minutes to start, and how much of the time is idle.

Two arms and four workloads, as the example's latency pool has them, with processes on loopback and an emulated engine
that is set to load for five minutes. Writes docs/reports/idle.md. It sleeps for nearly all of its eleven minutes.
"""

import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tests.support.running import free_port
from tests.unit.round.held import FIVE_MINUTES, MOST_IDLE, Held, finish
from tests.unit.round.pod import Outcome, begin, workload, write_models
from tests.unit.round.test_round import published_pair

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "docs" / "reports" / "idle.md"
WORKLOADS = tuple(workload(name, 1, 6, 96) for name in ("code", "swe", "terminal", "chat"))
PATIENCE = 1800.0


def main() -> int:
    at = commit()
    with tempfile.TemporaryDirectory() as directory:
        models, port = write_models(Path(directory)), free_port()
        began = time.monotonic()
        pod = begin(
            models,
            port,
            published_pair(models, port),
            *WORKLOADS,
            change=lambda plan: replace(plan, start_timeout_seconds=PATIENCE),
            PACELINE_EMULATE_STARTUP_SECONDS=str(FIVE_MINUTES),
        )
        try:
            held, outcome = finish(pod, began, PATIENCE)
        finally:
            pod.end()
    share = held.idle / held.whole
    text = report(held, outcome, share, at)
    REPORT.write_text(text)
    print(text)
    return 0 if share <= MOST_IDLE else 1


def commit() -> str:
    asked = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def report(held: Held, outcome: Outcome, share: float, commit: str) -> str:
    rows = []
    for one in outcome.result.replicates:
        measured = sum(point.duration or 0.0 for point in one.points)
        rows.append(f"| {one.arm} | {one.start_seconds:.0f} s | {len(one.points)} | {measured:.1f} s |")
    return "\n".join(
        [
            "# Idle time of a round with five-minute starts",
            "",
            f"Written by `make five-minutes` on {datetime.now(UTC):%Y-%m-%d} at commit {commit}, on "
            f"{platform.machine()}, Linux {platform.release()}.",
            "The engine was emulated and set to load for five minutes. Wrapper, client and SGLang's client were real,",
            "the pod was not: two processes on loopback, so no image was pulled and no container made.",
            "",
            "| arm | start | points | measured |",
            "|---|---|---|---|",
            *rows,
            "",
            f"Held {held.whole:.1f} s: {held.starting:.1f} s of {held.starts} starts, {held.measuring:.1f} s of "
            f"{held.points} measured",
            f"workloads, and **{held.idle:.1f} s idle: {share:.1%}**, of at most {MOST_IDLE:.0%}. The round's status",
            f"says {held.said:.0f} s. What counts as idle: "
            "[what a run records](../report.md#what-accelerators-were-held-for).",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
