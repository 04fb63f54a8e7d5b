"""report.py FOLDER…: docs/reports/gpu.md, on stdout, of runs that dev/gpu/run has measured, in this order.

FOLDER is OUT/QUESTION of `run`: run.yaml, and if they are there measure.txt (what `paceline measure` printed) and
gpu.csv (what sampler.py wrote), of which energy is computed, and machine.txt, there or a folder above; each as it is
or as .gz. A run without a verdict is told as that.
"""

import csv
import gzip
import io
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from paceline.api.round import with_rounds
from paceline.report import build_report
from paceline.report.text import interval_text, ratio_text

Run = Mapping[str, Any]
Key = tuple[int, str, str]
"""Round from 0, arm, workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """Of the GPU during one load."""

    joules: float
    watts: float
    sm_mhz: int
    """The lowest."""


def power(run: Run, printed: str, samples: Sequence[Mapping[str, str]]) -> dict[Key, Power]:
    """By load. `printed` tells the second in which a load ended; how long it took follows from its tokens."""
    found: dict[Key, Power] = {}
    times = [float(row["t"]) for row in samples]
    for entry in _rounds(run) if samples else ():
        began = datetime.fromisoformat(entry["startTime"])
        ended = datetime.fromisoformat(entry["completionTime"])
        for point in entry["points"]:
            at = _ended(printed, f" {point['arm']} {point['workload']}: ", began, ended)
            speed = float(point.get("outputThroughput") or 0)
            if at is None or not speed:
                continue
            seconds = point["outputTokens"] / speed
            if not times[0] <= at - seconds < at <= times[-1]:
                continue
            joules = _energy(times, samples, at) - _energy(times, samples, at - seconds)
            during = samples[bisect_left(times, at - seconds) : bisect_left(times, at)]
            found[entry["round"], point["arm"], point["workload"]] = Power(
                joules=joules, watts=joules / seconds, sm_mhz=min(int(row["sm_mhz"]) for row in during)
            )
    return found


def _ended(printed: str, what: str, began: datetime, ended: datetime) -> float | None:
    """Seconds since 1970 of the line that tells it, between the two; the middle of its second."""
    for line in printed.splitlines():
        if what in line and line.endswith(" tok/s"):
            told = datetime.combine(began.date(), datetime.strptime(line[:8], "%H:%M:%S").time(), UTC)
            told += timedelta(days=1) if told < began else timedelta()
            if told <= ended:
                return told.timestamp() + 0.5
    return None


def _energy(times: Sequence[float], samples: Sequence[Mapping[str, str]], at: float) -> float:
    """The driver's counter at a time between two samples, in joules."""
    after = max(1, bisect_left(times, at))
    low, high = (float(samples[place]["energy_mj"]) / 1000 for place in (after - 1, after))
    return low + (high - low) * (at - times[after - 1]) / (times[after] - times[after - 1])


def written(run: Run, printed: str = "", samples: Sequence[Mapping[str, str]] = (), machine: str = "") -> str:
    parts = (_head(run, machine), _verdict(run), _points(run, power(run, printed, samples)), _servers(run), _time(run))
    return "\n".join(line for part in parts for line in (*part, ""))


TITLE = """# One GPU

The target has 5.95 billion parameters and computes the same function as a small one (4.5 million,
trained on Python's standard library; `dev/gpu/models.py`). Speed, memory and power are real; the
language, and so the acceptance, is a toy's. Written by `dev/gpu/report.py`.

Loads have one value per round, in order, or one for all rounds. Tokens per second are measured over
a whole load, with start and end; SM, MHz is its lowest clock. Joules and watts are from the driver's
counter, read every quarter of a second; the end of a load is known to half a second. A server sizes
its KV cache by the free memory at its start: equal caches show that the previous arm had freed its
memory.
"""


def _head(run: Run, machine: str) -> Iterator[str]:
    status, spec = run["status"], run["spec"]
    arms = [arm["name"] for arm in spec["arms"]]
    yield f"## {_rounds(run)[0]['startTime'][:10]}: {', '.join(arms[:-1])} and {arms[-1]}"
    yield ""
    if status.get("emulated"):
        yield "**The engine was emulated: nothing here is of a GPU.**"
    first, last = (entry[at][:16].replace("T", " ") for entry, at in _ends(run))
    engine = f"{spec['engine']['type']} {status.get('engineVersion') or spec['engine']['version']}"
    yield f"{engine} on {status.get('gpuModel') or 'an unnamed GPU'}, driver {status.get('driver') or 'unknown'},"
    yield f"{first} to {last} UTC, by `paceline measure`."
    if machine:
        yield f"Machine: {', '.join(machine.split(chr(10)))}."


def _ends(run: Run) -> tuple[tuple[Mapping[str, str], str], tuple[Mapping[str, str], str]]:
    rounds = _rounds(run)
    return (rounds[0], "startTime"), (rounds[-1], "completionTime")


def _verdict(run: Run) -> Iterator[str]:
    (said,) = build_report([run]).runs
    looks = said.asked.rpartition("looked at after ")[2]
    yield "### Verdict"
    yield ""
    if run["status"].get("verdict"):
        yield f"**{said.decision}**: {said.found}"
    else:
        yield f"**No verdict**: {len(_rounds(run))} rounds were measured, and the gate looks after {looks}"
        yield "The bounds below are provisional and decide nothing."
    yield ""
    yield "| arm | workload | ratio | bounds | |"
    yield "|---|---|---|---|---|"
    for one in said.candidates:
        for effect in one.effects:
            yield _row(
                one.name, effect.workload, ratio_text(effect.bounds.ratio), interval_text(effect.bounds), one.outcome
            )


def _points(run: Run, powers: Mapping[Key, Power]) -> Iterator[str]:
    yield "### Loads"
    yield ""
    yield "| arm | workload | tokens/s | of the baseline | acceptance length | J/token | W | SM, MHz | |"
    yield "|---|---|---|---|---|---|---|---|---|"
    rows: dict[tuple[str, str], list[Sequence[str]]] = {}
    points = [(entry, point) for entry in _rounds(run) for point in entry["points"]]
    base = {(e["round"], p["workload"]): p for e, p in points if p["arm"] == "baseline" and p["valid"]}
    order = [arm["name"] for arm in run["spec"]["arms"]]
    workloads = list(dict.fromkeys(point["workload"] for _, point in points))
    for entry, point in sorted(
        points, key=lambda one: (order.index(one[1]["arm"]), workloads.index(one[1]["workload"]), one[0]["round"])
    ):
        beside = base.get((entry["round"], point["workload"]))
        speeds = [
            float(one["outputThroughput"]) if one and one.get("outputThroughput") else 0 for one in (point, beside)
        ]
        used = powers.get((entry["round"], point["arm"], point["workload"]))
        rows.setdefault((point["arm"], point["workload"]), []).append((
            f"{speeds[0]:,.0f}" if speeds[0] else "–",
            ratio_text(speeds[0] / speeds[1]) if all(speeds) and point is not beside else "",
            f"{float(point['acceptLength']):.2f}" if point.get("acceptLength") else "",
            f"{used.joules / point['outputTokens']:.3f}" if used else "", f"{used.watts:.0f}" if used else "",
            f"{used.sm_mhz}" if used else "", point["why"],
        ))  # fmt: skip
    for (arm, workload), found in rows.items():
        yield _row(arm, workload, *map(_by_round, zip(*found, strict=True)))


def _by_round(cells: Sequence[str]) -> str:
    """Once if it is the same in each round."""
    return cells[0] if len(set(cells)) == 1 else "; ".join(cell or "–" for cell in cells)


def _servers(run: Run) -> Iterator[str]:
    """The same arm has to find the same memory in every round, whichever arm came before it."""
    yield "### Servers"
    yield ""
    yield "| round | arm | start, s | KV cache, tokens | SM clock, MHz | power limit, W | °C | throttled |"
    yield "|---|---|---|---|---|---|---|---|"
    capacities: dict[str, list[int]] = {}
    for entry in _rounds(run):
        for one in entry.get("replicates", ()):
            clocks = one.get("clocks") or {}
            if one.get("kvTokens"):
                capacities.setdefault(one["arm"], []).append(one["kvTokens"])
            throttled = [
                f"{'+'.join(each['reasons'])} on {each['workload']}, {each.get('percent') or '?'} % of the time"
                for each in clocks.get("throttled", ())
            ]
            yield _row(
                entry["round"] + 1, one["arm"], one.get("startSeconds", ""), one.get("kvTokens", ""),
                f"{clocks.get('smMHz', '')} of {clocks.get('mostSMMHz', '')}" if clocks else "",
                clocks.get("powerLimitWatts", ""), clocks.get("celsius", ""), "; ".join(throttled),
            )  # fmt: skip
    yield ""
    first = capacities.get("baseline", [0])[0]
    for arm, found in capacities.items():
        beside = f"; {found[0] / first - 1:+.1%} of the baseline's" if first and arm != "baseline" else ""
        yield f"* {arm}: its KV cache differs by {max(found) / min(found) - 1:.2%} between rounds{beside}."


def _time(run: Run) -> Iterator[str]:
    starting, loading, idle = shares(run)
    held = ", ".join(str(entry["heldSeconds"]) for entry in _rounds(run))
    yield "### Time"
    yield ""
    yield f"Rounds held the GPU for {held} s. Of this, servers started for {starting:.0%}, loads ran for"
    yield f"{loading:.0%}, and for {idle:.0%} the GPU was idle by the operator's count."


def shares(run: Run) -> tuple[float, float, float]:
    """Of the time that rounds held the GPU: servers started, loads ran, neither."""
    held = sum(entry["heldSeconds"] for entry in _rounds(run))
    starts = sum(float(one.get("startSeconds") or 0) for entry in _rounds(run) for one in entry.get("replicates", ()))
    points = [point for entry in _rounds(run) for point in entry["points"] if point.get("outputThroughput")]
    loads = sum(point["outputTokens"] / float(point["outputThroughput"]) for point in points)
    return starts / held, loads / held, sum(entry.get("idleSeconds") or 0 for entry in _rounds(run)) / held


def _rounds(run: Run) -> list[Mapping[str, Any]]:
    return [entry for entry in run["rounds"] if not entry.get("error")]


def _row(*cells: Any) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _text(folder: Path, name: str) -> str:
    """Of a file as it is or as .gz; empty if there is neither."""
    for file, opened in ((folder / name, Path.open), (folder / f"{name}.gz", gzip.open)):
        if file.exists():
            with opened(file, "rt") as text:
                return str(text.read())
    return ""


def measured(text: str) -> Run:
    """The run of the file, with its rounds."""
    run, *rounds = yaml.safe_load_all(text)
    return with_rounds(run, rounds)


def of_folder(folder: Path) -> str:
    samples = [row for row in csv.DictReader(io.StringIO(_text(folder, "gpu.csv"))) if row["energy_mj"]]
    machine = _text(folder, "machine.txt") or _text(folder.parent, "machine.txt")
    return written(measured(_text(folder, "run.yaml")), _text(folder, "measure.txt"), samples, machine.strip())


def page(folders: Sequence[Path]) -> str:
    return "\n".join((TITLE, *map(of_folder, folders))).rstrip("\n") + "\n"


if __name__ == "__main__":
    print(page([Path(folder) for folder in sys.argv[1:]]), end="")
