"""A question of dev/sglang, measured by `paceline measure` on this machine: the real SGLang and no cluster."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.sglang.run import Run

from paceline.measure.record import load_run

ROOT = Path(__file__).parents[2]
DECIDED = (0, 10, 11)
"""Exit codes of Promote, Reject and Inconclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured(Run):
    """`said` is the table that the command ends with; `folder` has the logs and the answers."""

    said: str
    folder: Path

    def report(self, number: int, arm: str, workload: str) -> Mapping[str, Any]:
        """The client's, with every request of that round."""
        (found,) = [one["report"] for one in self._lines(number) if (one["arm"], one.get("workload")) == (arm, workload)
                    and "report" in one]  # fmt: skip
        report: Mapping[str, Any] = found
        return report

    def _lines(self, number: int) -> Iterator[Mapping[str, Any]]:
        with gzip.open(self.rounds[number]["raw"]["path"], "rt") as lines:
            yield from map(json.loads, lines)


def measured(name: str, directory: Path, *options: str, **environment: str) -> Measured:
    sglang, file = Path(os.environ["SGLANG_DIR"]), directory / f"{name}.yaml"
    variables = [word for key, value in environment.items() for word in ("--env", f"{key}={value}")]
    command = [sys.executable, "-m", "paceline.cli", "measure", str(ROOT / "dev" / "sglang" / f"{name}.yaml")]
    command += ["--venv", str(sglang / "venv"), "--models", str(sglang), "-o", str(file), *variables, *options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in DECIDED, done.stdout + done.stderr
    return Measured(run=load_run(file) or {}, said=done.stdout, folder=directory / f"{name}.d")
