"""Intervals shown on recorded measurements, and the ratios that were published: how often one holds the other.

The measurements are those of emulated servers, all that were made and none picked: demos.jsonl of the demo on the
local cluster (tests/demo/record.py), loopback.jsonl of the same two questions without a cluster
(tests/demo/loopback.py). So the truth is the emulator's profile, and that is the published table itself: its costs are
solved from it, and a closed loop of 1 or 32 requests decodes at exactly the published tokens per second
(tests/unit/emulator/test_profile.py). The 3 % that tests/contract/test_throughput.py allows are for the clock of a
busy machine. The ratios are quotients of the published throughputs, not the rounded 1.39x.
"""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from scipy.stats import binom
from tests.support.published import throughput

from paceline import core
from paceline.cli.gate import judged

RARELY = 0.01
RECORDED = Path(__file__).with_name("recorded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A candidate's interval on one workload in one recorded run."""

    run: str
    arm: str
    workload: str
    bounds: core.Bounds
    published: float
    error: float
    """With which each of its bounds may fail at its look."""

    def holds(self, ratio: float) -> bool:
        return self.bounds.lower <= ratio <= self.bounds.upper


@cache
def cases() -> list[tuple[str, dict[str, Any], core.Verdict]]:
    """Name, case, and what the gate says of it."""
    lines = [
        (f"{path.name}:{number}", line)
        for path in sorted(RECORDED.glob("*.jsonl"))
        for number, line in enumerate(path.read_bytes().splitlines(), start=1)
    ]
    return [(name, json.loads(line), judged(line)) for name, line in lines]


def shown() -> Iterator[Shown]:
    for run, case, verdict in cases():
        error = (1 - float(case["gate"]["confidence"])) / (len(verdict.arms) * len(case["decideAfterRounds"]))
        for name, arm in verdict.arms.items():
            for workload, bounds in arm.workloads.items():
                ratio = published(case, name, workload)
                yield Shown(run=run, arm=name, workload=workload, bounds=bounds, published=ratio, error=error)


def published(case: dict[str, Any], arm: str, workload: str) -> float:
    dataset, _, batch = workload.partition("@")
    steps, branches, tokens = case["trees"][arm]
    return throughput(dataset, int(batch), (steps, branches, tokens)) / throughput(dataset, int(batch), None)


def test_the_published_ratios_are_held_as_often_as_promised() -> None:
    """No more misses than a binomial count shows if every interval fails as often as it may at its look: 3.3 % of
    those of one candidate, 1.7 % of those of two."""
    every = list(shown())
    misses = [found for found in every if not found.holds(found.published)]
    chance = math.fsum(2 * found.error for found in every) / len(every)
    print(f"{len(every) - len(misses)} of {len(every)} intervals of {len(cases())} runs hold the published ratio")
    assert len(every) >= 40
    assert len(misses) <= binom.ppf(1 - RARELY, len(every), chance), misses


def test_each_published_ratio_is_held_by_most_of_its_intervals() -> None:
    """A bias of one workload would hide among the others."""
    held = Counter((found.arm, found.workload) for found in shown() if found.holds(found.published))
    every = Counter((found.arm, found.workload) for found in shown())
    assert len(every) == 12
    assert {key: held[key] for key, count in every.items() if held[key] < binom.ppf(RARELY / 12, count, 0.95)} == {}


def test_they_do_not_hold_it_by_being_wide() -> None:
    """Hardly any holds a ratio 5 % away."""
    held = [found for found in shown() for off in (0.95, 1.05) if found.holds(off * found.published)]
    assert len(held) <= 0.05 * 2 * len(list(shown())), held


def test_the_operator_showed_what_the_gate_says_of_the_same_rounds() -> None:
    for run, case, verdict in cases():
        again = [
            {"arm": name, "workload": workload, "lower": f"{bounds.lower:.4f}", "upper": f"{bounds.upper:.4f}"}
            for name, arm in verdict.arms.items()
            for workload, bounds in ({"mean": arm.mean} | dict(arm.workloads)).items()
            if bounds
        ]
        assert (run, case["emulated"], case["shown"]) == (run, True, again)


def test_no_recorded_run_promoted_what_the_published_tables_would_not() -> None:
    """On a machine too busy to measure a run may end without a winner; it is kept all the same."""
    best = {"latency": "wide", "throughput": "narrow"}
    winners = [(run, verdict.winner, best[case["pool"]]) for run, case, verdict in cases()]
    assert [(run, winner) for run, winner, good in winners if winner not in (good, None)] == []
    assert sum(winner == good for _, winner, good in winners) >= 0.9 * len(winners)
