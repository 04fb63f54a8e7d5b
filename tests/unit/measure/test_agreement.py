"""What tests/cluster/long_agree.py holds two runs to: runs that differ in their noise meet it, and no others do."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.agreement import disagreements
from tests.support.campaigns import LATENCY
from tests.support.runs import BASELINE, WIDE, manifest

from paceline.core import Gate

SURE = Gate(confidence=0.9995, decide_after_rounds=(4,))
PAIRS = 40
SLOWER = {arm: {w: speed * (0.9 if arm == "wide" else 1.0) for w, speed in ws.items()} for arm, ws in LATENCY.items()}


def run(seed: int, truth: Any = LATENCY) -> dict[str, Any]:
    """Points that scatter by 0.4 %."""
    return manifest("latency", 1, (BASELINE, WIDE), truth, SURE, seed=seed)


def test_runs_of_one_truth_agree() -> None:
    apart = [pair for pair in range(PAIRS) if disagreements(run(2 * pair), run(2 * pair + 1))]
    assert len(apart) <= PAIRS // 10, "13 numbers each, of which the least likely decides"


def test_a_candidate_that_is_slower_by_a_tenth_is_seen() -> None:
    said = " ".join(disagreements(run(1), run(2, SLOWER)))
    assert "speed of wide on code@1: 2" in said
    assert "ratio of wide on mean: 1." in said
    assert "of baseline on" not in said


def other_verdict(run: dict[str, Any]) -> None:
    run["status"]["verdict"] = {"outcome": "Reject", "winner": ""}


def other_server(run: dict[str, Any]) -> None:
    run["spec"]["engine"]["args"] = ["--attention-backend=fa3"]


def other_arguments(run: dict[str, Any]) -> None:
    run["rounds"][-1]["replicates"][0]["resolved"] = {"tp_size": "8"}


def other_order(run: dict[str, Any]) -> None:
    run["rounds"][0]["replicates"].reverse()


def invalid(run: dict[str, Any]) -> None:
    run["rounds"][0]["points"][0] |= {"valid": False, "why": "6 of 6 requests failed"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_verdict, "outcome: Promote and Reject"),
        (other_server, "their specs differ in engine"),
        (other_arguments, "resolved arguments: "),
        (other_order, "order of arms: "),
        (invalid, "invalid points: [] and ['6 of 6 requests failed']"),
    ],
)
def test_whatever_else_differs_is_named(change: Callable[[dict[str, Any]], None], message: str) -> None:
    other = run(1)
    change(other)
    assert any(said.startswith(message) for said in disagreements(run(1), other))
