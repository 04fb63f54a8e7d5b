"""What `paceline gate` is given: a case as JSON, and a place of it changed."""

from collections.abc import Callable
from typing import Any

from tests.support.campaigns import WORKLOADS, Truth, measure

Run = Callable[[str, str], tuple[int, str, str]]
"""File name, its text → exit code, what was printed, what was complained about."""


def case(truth: Truth, *, cv: float = 0.003, seed: int = 1, rounds: int = 8, **rule: Any) -> dict[str, Any]:
    return {
        "gate": rule,
        "decideAfterRounds": [3, 5, 8],
        "arms": list(truth),
        "workloads": [{"name": w, "weight": 1} for w in WORKLOADS],
        "measurements": [
            {
                "round": m.round,
                "arm": m.arm,
                "workload": m.workload,
                "outputThroughput": m.output_throughput,
                "valid": True,
            }
            for m in measure(truth, cv=cv, seed=seed, rounds=rounds)
        ],
    }


def change(question: dict[str, Any], path: list[str | int], value: Any) -> dict[str, Any]:
    *way, last = path
    part: Any = question
    for step in way:
        part = part[step]
    part[last] = value
    return question
