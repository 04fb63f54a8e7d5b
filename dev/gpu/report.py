"""report.py RUN: docs/reports/gpu.md of a measured run, on stdout.

What only a GPU can show, all of it read in the run's own evidence: how much a point and a start vary, whether an arm's
server found the memory that the one before it had (`kvTokens`: SGLang sizes its cache by what is free), driver and
clocks, how much of the time servers started and how much nothing was measured, and the verdicts.
"""

import math
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import variance
from typing import Any

import yaml

TWICE = ("code@1", "again@1")
"""Workloads of the same prompts at the same load."""

Run = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard deviations of ln throughput: `point` of two points of one server, `start` of what servers differ by
    beyond that (0 where that is less than nothing)."""

    point: float
    start: float
    servers: int


def noise(pairs: Mapping[str, Sequence[tuple[float, float]]]) -> Noise | None:
    """Arm → the throughputs of both points of each of its servers. None before an arm has two."""
    arms = [[(math.log(a), math.log(b)) for a, b in servers] for servers in pairs.values() if len(servers) > 1]
    if not arms:
        return None
    freedom = [len(servers) - 1 for servers in arms]
    gaps = _pooled([variance([a - b for a, b in servers]) for servers in arms], freedom)
    means = _pooled([variance([(a + b) / 2 for a, b in servers]) for servers in arms], freedom)
    return Noise(
        point=math.sqrt(gaps / 2),
        start=math.sqrt(max(0.0, means - gaps / 4)),
        servers=sum(map(len, arms)),
    )


def _pooled(variances: Sequence[float], freedom: Sequence[int]) -> float:
    return sum(one * weight for one, weight in zip(variances, freedom, strict=True)) / sum(freedom)


def pairs(run: Run) -> dict[str, list[tuple[float, float]]]:
    found: dict[str, list[tuple[float, float]]] = {}
    for entry in _rounds(run):
        speeds = {
            (point["arm"], point["workload"]): float(point["steadyThroughput"])
            for point in entry.get("points", ())
            if point["valid"] and point.get("steadyThroughput")
        }
        for arm in dict.fromkeys(arm for arm, _ in speeds):
            if all((arm, workload) in speeds for workload in TWICE):
                found.setdefault(arm, []).append((speeds[arm, TWICE[0]], speeds[arm, TWICE[1]]))
    return found


def shares(run: Run) -> tuple[float, float]:
    """Of the time that rounds held the GPU: in which servers started, and in which neither that nor a load went on."""
    held = sum(entry["heldSeconds"] for entry in _rounds(run))
    starts = sum(float(one.get("startSeconds") or 0) for entry in _rounds(run) for one in entry.get("replicates", ()))
    return starts / held, sum(entry.get("idleSeconds") or 0 for entry in _rounds(run)) / held


def _rounds(run: Run) -> list[Mapping[str, Any]]:
    return [entry for entry in run["status"].get("rounds", ()) if not entry.get("error")]


def written(run: Run, machine: str, commit: str) -> str:
    return "\n".join([*_head(run, machine, commit), *_verdicts(run), *_noise(run), *_servers(run), ""])


def _head(run: Run, machine: str, commit: str) -> Iterator[str]:
    status = run["status"]
    engine = run["spec"]["engine"]
    yield "# One GPU"
    yield ""
    if status.get("emulated"):
        yield "**The engine was emulated: nothing here is of a GPU.**"
    yield f"Written by `dev/gpu/measure` at commit {commit}, on {machine}:"
    yield f"{engine['name']} {status.get('engineVersion') or engine['version']} on"
    yield f"{status.get('gpuModel') or 'an unnamed GPU'}, driver {status.get('driver') or 'unknown'},"
    yield f"{status.get('startedAt', '')} to {status.get('finishedAt', '')}. The models are made by seed"
    yield "(`dev/gpu/models.py`): speed and acceptance are real, texts are not."
    yield ""


def _verdicts(run: Run) -> Iterator[str]:
    verdict = run["status"].get("verdict") or {}
    outcome = f"**{verdict.get('outcome') or 'none yet'}** {verdict.get('winner') or ''}".strip()
    yield f"Verdict: {outcome}: {verdict.get('message', '')}"
    yield ""
    yield "| arm | verdict | workload | ratio | acceptance length |"
    yield "|---|---|---|---|---|"
    outcomes = {
        one["arm"]: f"{one['outcome']} {one.get('reason', '')}".strip()
        for one in run["status"].get("armVerdicts") or ()
    }
    for one in run["status"].get("results") or ():
        bounds = f"{one.get('ratio', '')} ({one.get('lower', '')} to {one.get('upper', '')})"
        cells = (one["arm"], outcomes.get(one["arm"], ""), one["workload"], bounds, one.get("acceptLength", ""))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _noise(run: Run) -> Iterator[str]:
    found = noise(pairs(run))
    yield "## Noise and time"
    yield ""
    if found:
        yield f"* Between two points of one server: {found.point:.2%}; between starts, beyond that: {found.start:.2%}"
        yield f"  ({found.servers} servers; standard deviations of ln throughput, `{TWICE[0]}` and `{TWICE[1]}`)."
    starting, idle = shares(run)
    yield f"* Of the time that rounds held the GPU, servers started for {starting:.0%}, and for {idle:.0%} neither a"
    yield "  start nor a load went on."
    yield ""


def _servers(run: Run) -> Iterator[str]:
    """The same arm has to find the same memory in every round, whichever arm came before it."""
    yield "## Servers"
    yield ""
    yield "| round | arm | start, s | KV cache, tokens | SM clock, MHz | power limit, W | °C | throttled |"
    yield "|---|---|---|---|---|---|---|---|"
    capacities: dict[str, list[int]] = {}
    for entry in _rounds(run):
        for one in entry.get("replicates", ()):
            clocks = one.get("clocks") or {}
            if one.get("kvTokens"):
                capacities.setdefault(one["arm"], []).append(one["kvTokens"])
            throttled = [f"{'+'.join(each['reasons'])} on {each['workload']}" for each in clocks.get("throttled", ())]
            cells = (
                entry["round"], one["arm"], one.get("startSeconds", ""), one.get("kvTokens", ""),
                f"{clocks.get('smMHz', '')} of {clocks.get('mostSMMHz', '')}" if clocks else "",
                clocks.get("powerLimitWatts", ""), clocks.get("celsius", ""), ", ".join(throttled),
            )  # fmt: skip
            yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    for arm, found in capacities.items():
        spread = max(found) / min(found) - 1
        yield f"* {arm}: the KV cache of its servers differs by {spread:.2%} between rounds."
    yield ""
    yield "A server sizes its KV cache by the memory that is free when it starts: equal caches show that the arm before"
    yield "had given its memory back."


def machine() -> str:
    asked = "name,driver_version,memory.total"
    said = _said(["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"]) or "no NVIDIA GPU"
    return f"{platform.system()} {platform.release()}, {platform.machine()}, {said.replace(chr(10), '; ')}"


def _said(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def main() -> None:
    run = yaml.safe_load(Path(sys.argv[1]).read_text())
    here = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"]
    print(written(run, machine(), _said(here) or "unknown"), end="")


if __name__ == "__main__":
    main()
