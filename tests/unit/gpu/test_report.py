"""dev/gpu/report.py: what it makes of the run on an H200, and of runs made by hand."""

import csv
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from dev.gpu.report import Power, measured, page, power, shares, written

ROOT = Path(__file__).parents[3]
H200 = ROOT / "dev" / "gpu" / "h200-2026-11-26"
WITH_A_VERDICT = ROOT / "dev" / "gpu" / "h200-2026-11-27"


@pytest.fixture
def run() -> dict[str, Any]:
    return dict(measured(gzip.decompress((H200 / "run.yaml.gz").read_bytes()).decode()))


@pytest.fixture
def samples() -> list[dict[str, str]]:
    return list(csv.DictReader(gzip.decompress((H200 / "gpu.csv.gz").read_bytes()).decode().splitlines()))


def the_report(run: Mapping[str, Any], samples: Sequence[Mapping[str, str]] = ()) -> str:
    return written(run, (H200 / "measure.txt").read_text(), samples, (H200 / "machine.txt").read_text().strip())


def test_the_document_is_of_these_runs() -> None:
    assert (ROOT / "docs" / "reports" / "gpu.md").read_text() == page([WITH_A_VERDICT, H200])


def test_a_run_without_a_verdict_is_told_as_that(run: dict[str, Any]) -> None:
    told = the_report(run)
    assert "2 rounds" in told
    assert "| narrow | mean | 1.84x | 0.45–7.58 | provisional |" in told
    assert "Promote" not in told


def test_a_verdict_is_told() -> None:
    told = page([WITH_A_VERDICT])
    assert "**Promote narrow**: 1.83x (1.55–2.16); worst workload many@32 1.37x (1.00–1.88)." in told
    assert "| narrow | mean | 1.83x | 1.55–2.16 | promotable |" in told
    assert "provisional" not in told


def test_servers_are_told_with_their_memory_and_what_held_them_down(run: dict[str, Any]) -> None:
    told = the_report(run)
    assert "| 1 | narrow | 56.81 | 263440 | 1980 of 1980 | 700 | 33 |  |" in told
    assert "SwPowerCap on many@32, 88 % of the time" in told
    assert "narrow: its KV cache differs by 0.00% between rounds; -11.1% of the baseline's" in told


def test_of_the_time_most_went_into_starts(run: dict[str, Any]) -> None:
    assert shares(run) == pytest.approx((0.67, 0.147, 0.18), abs=0.005)


def test_without_samples_the_cells_of_energy_are_empty(run: dict[str, Any]) -> None:
    assert power(run, (H200 / "measure.txt").read_text(), []) == {}
    assert "| baseline | one@1 | 233; 235 |  |  |  |  |  |  |" in the_report(run)


def test_an_emulated_run_is_never_taken_for_one_of_a_gpu(run: dict[str, Any]) -> None:
    run["status"]["emulated"] = True
    assert "nothing here is of a GPU" in the_report(run)


def a_load(tokens: int, speed: str) -> dict[str, Any]:
    """Of a round around midnight."""
    point = {"arm": "baseline", "workload": "one@1", "outputTokens": tokens, "outputThroughput": speed}
    entry = {
        "round": 0,
        "startTime": "2026-11-26T23:59:30Z",
        "completionTime": "2026-11-27T00:00:30Z",
        "points": [point],
    }
    return {"rounds": [entry]}


def constant(watts: float) -> list[dict[str, str]]:
    """A sample a second from half a minute before midnight to half a minute after it."""
    midnight = 1795737600
    return [
        {"t": str(midnight + second), "energy_mj": str(watts * 1000 * (second + 100)), "sm_mhz": str(1900 + second)}
        for second in range(-30, 31)
    ]


def test_energy_is_that_of_the_load_and_midnight_is_in_between() -> None:
    """100 tokens at 10 tokens/s: ten seconds before half a second past 00:00:05."""
    found = power(a_load(100, "10"), "00:00:05 baseline one@1: 10.00 tok/s", constant(400))
    assert found == {(0, "baseline", "one@1"): Power(joules=pytest.approx(4000), watts=pytest.approx(400), sm_mhz=1896)}


def test_a_load_that_was_not_sampled_whole_has_no_energy() -> None:
    assert power(a_load(1000, "10"), "00:00:05 baseline one@1: 10.00 tok/s", constant(400)) == {}
