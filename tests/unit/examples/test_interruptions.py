"""`paceline plan` says beforehand which servers are away, and for how long: the same planners, a cluster with that much
room."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.messages import Says
from tests.support.rendered import example

from paceline.cli import main
from paceline.cli.plan import NO_ROOM

FASTER = ("--start-seconds", "120", "--tokens-per-second", "100")


def told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str, replicas: int = 1, **benchmark: Any
) -> str:
    """What is printed of interruptions and of the window."""
    manifest = example("qwen3-coder-next")
    manifest["spec"]["pools"] = manifest["spec"]["pools"][:1]
    manifest["spec"]["pools"][0]["replicas"] = replicas
    manifest["spec"]["benchmark"] = manifest["spec"].get("benchmark", {}) | benchmark
    file = tmp_path / "next.yaml"
    file.write_text(yaml.safe_dump(manifest))
    assert main(["plan", str(file), *FASTER, *arguments]) == (NO_ROOM if arguments else 0)
    return capsys.readouterr().out


def test_a_roll_out_without_room(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    """One server is replaced in place, and clients have none while the next one loads; of two, one after the other."""
    one = told(tmp_path, capsys, "--gpus-free", "0")
    says(*one.splitlines()[-2:])
    assert "latency: not placed" in one
    two = told(tmp_path, capsys, "--gpus-free", "0", replicas=2)
    says(*(line for line in two.splitlines() if line.startswith("  latency ") and "wide" in line))


def test_a_server_that_is_lent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a round of two arms of 1430.72 s each and three of 836.8 s, which send 35 requests and not 64; if a baseline
    does not allow that for four of the first kind. And until it is back, 120 s later."""
    text = told(tmp_path, capsys, "--gpus-free", "0", replicas=2, capacityPolicy="Borrow")
    (loan,) = [line for line in text.splitlines() if "loan to its run" in line]
    assert loan.endswith(f": 1 of 2 servers for {2 * (1430.72 + 3 * 836.8) + 120:.0f}-{4 * 2 * 1430.72 + 120:.0f} s")
    only = told(tmp_path, capsys, "--gpus-free", "0", capacityPolicy="Borrow", minServing=0)
    (loan,) = [line for line in only.splitlines() if "loan to" in line]
    assert ": no server for" in loan


def test_nothing_is_lent_where_there_is_room(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "loan to" not in told(tmp_path, capsys, "--gpus-free", "4", replicas=2, capacityPolicy="Borrow")


def test_when_rounds_may_start(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And what they cost then: the forecast takes the window to be open."""
    window = {"schedule": "0 22 * * *", "duration": "6h", "timeZone": "Europe/Berlin"}
    text = told(tmp_path, capsys, window=window)
    assert "benchmark.window (0 22 * * * Europe/Berlin, for 6 h)" in text
    assert "4-8" in text
