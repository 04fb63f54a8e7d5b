"""`paceline measure --emulated` from a file to its verdict, killed on the way: real processes on loopback."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from paceline.measure.record import load_run

EXAMPLE = Path(__file__).parents[3] / "examples" / "try.yaml"
QUICK = ("PACELINE_EMULATE_STARTUP_SECONDS=0.1", "PACELINE_EMULATE_WARMUP_SECONDS=0.1", "PACELINE_EMULATE_NOISE_CV=0")
PATIENCE = 200.0


UPSTREAM = EXAMPLE.with_stem("qwen3-coder-next-upstream")


def question(directory: Path, example: Path = EXAMPLE, candidates: Sequence[Any] = ()) -> Path:
    """Two rounds of one short workload. Whatever is faster at all is promoted: speeds here are of a busy machine."""
    manifest: dict[str, Any] = yaml.safe_load(example.read_text())
    if candidates:
        manifest["spec"]["candidates"] = candidates
        manifest["spec"]["pools"] = [{"name": "latency", "replicas": 1, "load": [{"concurrency": [1]}]}]
    manifest["spec"]["benchmark"] = {
        "datasets": [{"name": "code", "source": "builtin://code", "requests": 5, "maxTokens": 48}],
    }
    manifest["spec"]["gate"] = {
        "minImprovement": "0%",
        "maxRegression": "90%",
        "confidence": "50%",
        "decideAfterRounds": [2],
    }
    file = directory / "question.yaml"
    file.write_text(yaml.safe_dump(manifest))
    return file


def measure(directory: Path) -> "subprocess.Popen[str]":
    variables = [word for variable in QUICK for word in ("--env", variable)]
    program = [sys.executable, "-m", "paceline.cli", "measure", str(directory / "question.yaml"), "--emulated"]
    return subprocess.Popen(
        [*program, "-o", str(directory / "run.yaml"), *variables],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def remembered(directory: Path, name: str = "run.yaml") -> list[dict[str, Any]]:
    return list((load_run(directory / name) or {"rounds": []})["rounds"])


def the_run(directory: Path, name: str = "run.yaml") -> dict[str, Any]:
    found = load_run(directory / name)
    assert found
    return found


def until_a_server_of_the_second_round_runs(
    directory: Path, process: "subprocess.Popen[str]", logs: str = "run.d"
) -> int:
    """Its pid."""
    outs = directory / logs / "round-1-0" / "ctl" / "out"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0]
        if text := "".join(path.read_text().strip() for path in outs.glob("*/pid")):
            return int(text)
        time.sleep(0.05)
    raise AssertionError("there was no second round")


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.timeout(600)
def test_a_schedule_is_measured_from_a_file_that_says_what_the_resource_says(tmp_path: Path) -> None:
    falling = [{"fromBatchSize": 1, "numSteps": 3}, {"fromBatchSize": 2, "numSteps": 0}]
    question(tmp_path, UPSTREAM, candidates=[{"name": "falls", "depthByBatchSize": falling}])
    process = measure(tmp_path)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, output
    (written,) = (tmp_path / "run.d" / "files").iterdir()
    assert json.loads(written.read_text()) == {"1": {"candidate_steps": [3]}, "2": {"candidate_steps": [0]}}
    assert f"'speculative_adaptive_config': '{written}'" in (tmp_path / "run.d/round-0-0/arm-falls.log").read_text()
    (first, *_) = remembered(tmp_path)
    points = {point["arm"]: point for point in first["points"]}
    assert points["falls"]["draftTokens"] == "3"
    assert the_run(tmp_path)["status"]["verdict"]["winner"] == "falls"


@pytest.mark.timeout(600)
def test_a_run_that_was_killed_goes_on_at_its_round_and_comes_to_its_verdict(tmp_path: Path) -> None:
    question(tmp_path)
    killed = measure(tmp_path)
    server = until_a_server_of_the_second_round_runs(tmp_path, killed)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    (first,) = remembered(tmp_path)

    again = measure(tmp_path)
    output, _ = again.communicate(timeout=PATIENCE)
    assert not runs(server)  # it was ended before another round began
    assert again.returncode == 0, output
    rounds = remembered(tmp_path)
    assert rounds[0] == first  # not measured again
    assert [(entry["round"], entry["try"], entry["error"]) for entry in rounds] == [(0, 0, ""), (1, 0, "")]
    assert [entry["replicates"][0]["arm"] for entry in rounds] == ["baseline", "wide"]
    assert all(entry["emulated"] and "without a cluster" in entry["notes"][0] for entry in rounds)

    status = the_run(tmp_path)["status"]
    assert (status["verdict"]["outcome"], status["verdict"]["winner"], status["emulated"]) == ("Promote", "wide", True)
    assert "Emulated: Promote wide: " in output

    measured = the_run(tmp_path)["spec"]["measured"]
    assert measured["rounds"] == 2
    assert "no evidence for a cluster: the servers had PACELINE_EMULATE_STARTUP_SECONDS (--env)" in output
    assert "mulated" in (tmp_path / "report.html").read_text()
