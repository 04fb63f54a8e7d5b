"""`paceline gate` as a process: files, pipes, and how long it takes."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.campaigns import LATENCY, against
from tests.support.gate_cases import case
from tests.support.processor_time import least_seconds


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert paceline("gate", str(tmp_path)).stderr == f"{tmp_path}: Is a directory\n"
    gone = paceline("gate", str(tmp_path / "case.json"))
    assert (gone.returncode, gone.stderr) == (1, f"{tmp_path / 'case.json'}: No such file or directory\n")


def test_a_reader_that_has_seen_enough_gets_no_traceback(tmp_path: Path) -> None:
    """As `| head` does: the reading end is closed before anything is written."""
    file = tmp_path / "cases.jsonl"
    file.write_text(f"{json.dumps(case(LATENCY))}\n" * 3)
    reading, writing = os.pipe()
    os.close(reading)
    ended = paceline("gate", str(file), stdout=writing)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, "")


IMPORTS = "import json, pydantic, mpmath"
"""What a command that judges cannot do without."""


def test_64000_measurements_are_tabulated_once(tmp_path: Path) -> None:
    """A thousand rounds of 32 workloads: 18 times as long as the imports, where each look that tabulates its rounds
    anew would add about six."""
    workloads = [f"w{i}" for i in range(32)]
    question = case(against(dict.fromkeys(workloads, 1.05)), cv=0.01, rounds=1000)
    question |= {"workloads": [{"name": w} for w in workloads], "decideAfterRounds": [3, 5, 1000]}
    file = tmp_path / "case.json"
    file.write_text(json.dumps(question))
    assert json.loads(paceline("gate", str(file)).stdout)["rounds"] == 1000
    judging = least_seconds("-m", "paceline.cli", "gate", str(file), codes=(11,))
    assert judging < 30 * least_seconds("-c", IMPORTS)


def test_judging_imports_neither_the_api_nor_its_models(tmp_path: Path) -> None:
    """They took as long to import as the measurements to judge."""
    file = tmp_path / "case.json"
    file.write_text(json.dumps(case(LATENCY)))
    code = "import sys; from paceline.cli import main; main(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", code, "gate", str(file)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert {"paceline.gate", "mpmath"} <= set(loaded)
    assert {"paceline.api", "kopf", "scipy", "numpy"}.isdisjoint(loaded)


def paceline(*args: str, stdout: int = subprocess.PIPE) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "paceline.cli", *args]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
