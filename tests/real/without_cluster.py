"""`paceline measure` of a real engine on this machine's CPU, from a file to its verdict, and what is told of it."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.measured import CALLED, dated, emulated_or_not

from paceline.measure.record import load_run

PATIENCE = 3900.0
ENDED = (0, 10, 11, 12)
"""Exit codes of a run that came to its end, whatever it found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The run as its file has it, the exit code, what was printed, and on which page its report goes."""

    run: Mapping[str, Any]
    code: int
    output: str
    report: Path

    @property
    def status(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.run["status"]
        return found

    @property
    def verdict(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.status["verdict"]
        return found

    @property
    def arms(self) -> list[str]:
        return [one["name"] for one in self.run["spec"]["arms"]]

    @property
    def points(self) -> list[Mapping[str, Any]]:
        return [point for one in self.run["rounds"] for point in one.get("points", ())]

    def of(self, arm: str, workload: str | None = None) -> list[Mapping[str, Any]]:
        """Its points, in the order of the rounds."""
        return [one for one in self.points if one["arm"] == arm and workload in (None, one["workload"])]

    def replicates(self, arm: str) -> list[Mapping[str, Any]]:
        return [each for one in self.run["rounds"] for each in one.get("replicates", ()) if each["arm"] == arm]

    def result(self, arm: str, workload: str = "mean") -> Mapping[str, Any]:
        (found,) = [one for one in self.status["results"] if (one["arm"], one["workload"]) == (arm, workload)]
        return dict(found)


def measure(file: Path, folder: Path, directory: Path, command: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and output; the run is in `directory`/run.yaml. `folder` has the models, `command` is the engine's."""
    program = [sys.executable, "-m", "paceline.cli", "measure", str(file), "--models", str(folder)]
    variables = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
    done = subprocess.run(
        [*program, "--engine-command", command, "-o", str(directory / "run.yaml"), *variables],
        env={**os.environ, "PACELINE_HEARTBEAT_SECONDS": "300"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout


def told(directory: Path, measured: tuple[int, str], report: Path) -> Told:
    """Raises if there is no run that came to an end."""
    code, output = measured
    assert code in ENDED, output
    run = load_run(directory / "run.yaml")
    assert run
    return Told(run=run, code=code, output=output, report=report)


# The report


def report(told: Told) -> str:
    return "\n".join([*_head(told), *_table(told), "", *_parity(told), *_verdict(told), ""])


def _head(told: Told) -> Iterator[str]:
    engine, status = told.run["spec"]["engine"]["type"], told.status
    yield "## `paceline measure`"
    yield ""
    yield dated(f"{CALLED[engine]} {status['engineVersion']}", emulated_or_not(bool(status.get("emulated"))))
    yield ""


def _table(told: Told) -> Iterator[str]:
    yield "By round; one value if all are equal:"
    yield ""
    yield "| arm | workload | ready after, s | requests | output tokens | tok/s | acceptance length | |"
    yield "|---|---|---|---|---|---|---|---|"
    rows: dict[tuple[str, str], list[Sequence[object]]] = {}
    for one in told.run["rounds"]:
        starts = {each["arm"]: each.get("startSeconds") for each in one.get("replicates", ())}
        for point in one.get("points", ()):
            start = starts.get(point["arm"])
            cells: Sequence[object] = (
                "-" if start is None else f"{float(start):.0f}",
                point.get("completed", "-"), point.get("outputTokens", "-"), point.get("outputThroughput", "-"),
                point.get("acceptLength", "-"), "" if point["valid"] else point["why"],
            )  # fmt: skip
            rows.setdefault((point["arm"], point["workload"]), []).append(cells)
    for key, found in rows.items():
        columns = [list(map(str, column)) for column in zip(*found, strict=True)]
        cells = [column[0] if len(set(column)) == 1 else "; ".join(column) for column in columns]
        yield f"| {' | '.join([*key, *cells])} |"


def _parity(told: Told) -> Iterator[str]:
    asked = told.run["spec"]["gate"].get("parity")
    if not asked:
        return
    yield f"Answers to {asked['samples']} prompts of at most {asked['maxTokens']} tokens, beside the baseline's:"
    yield ""
    yield "| arm | rounds | equal | near ties | different | earliest token | widest gap | |"
    yield "|---|---|---|---|---|---|---|---|"
    for arm in told.arms[1:]:
        found = [one["parity"] for one in told.replicates(arm) if "parity" in one]
        unknown = "; ".join(dict.fromkeys(one["unknown"] for one in found if one.get("unknown")))
        known = [one for one in found if not one.get("unknown")]
        counts = [sum(int(one[name]) for one in known) for name in ("identical", "nearTies", "diverged")]
        first = min((int(one["firstDivergence"]) for one in known if "firstDivergence" in one), default="-")
        gap = max((str(one["largestGap"]) for one in known if "largestGap" in one), default="-", key=_number)
        yield f"| {arm} | {len(found)} | {' | '.join(map(str, counts))} | {first} | {gap} | {unknown} |"
    yield ""


def _number(text: str) -> float:
    return -1.0 if text == "-" else float(text)


def _verdict(told: Told) -> Iterator[str]:
    for arm in told.arms[1:]:
        found = [one for one in told.status.get("results", ()) if one["arm"] == arm]
        for one in found if len(found) > 2 else found[:1]:
            interval = f"{one['ratio']} ({one['lower']} to {one['upper']})" if "lower" in one else one.get("ratio", "-")
            yield f"* {arm}, {one['workload']}: {interval}"
    yield ""
    yield f"**{told.verdict['outcome']}**: {told.verdict['message']}"
