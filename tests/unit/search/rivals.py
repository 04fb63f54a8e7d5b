"""What people do without a search, on the same tables with the same noise: each answers with an arm and its points."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import log
from statistics import fmean

from paceline.core import BASELINE
from paceline.search import Cell, replay
from paceline.search.steps import DEFAULT


@dataclass(slots=True)
class Bench:
    """Measures cells of a grid, and counts them."""

    grid: replay.Grid
    cv: float
    seed: int
    points: dict[Cell, list[float]] = field(default_factory=dict)
    starts: int = 0

    def measure(self, arm: str, *workloads: str) -> None:
        """In one server start; a failed cell costs as much."""
        self.starts += 1
        for workload in workloads:
            cell = Cell(arm=arm, workload=workload)
            point = replay.measured(self.grid, cell, self.starts, self.cv, self.seed)
            self.points.setdefault(cell, []).append(log(point.throughput) if point.throughput else -99.0)

    def speed(self, arm: str, *workloads: str) -> float:
        return fmean(fmean(self.points[Cell(arm=arm, workload=w)]) for w in workloads or self.grid.workloads)

    def best(self, *workloads: str) -> str:
        """Of the arms that were measured on these workloads, or on all."""
        arms = {cell.arm for cell in self.points}
        wanted = workloads or self.grid.workloads
        whole = [arm for arm in arms if all(Cell(arm=arm, workload=w) in self.points for w in wanted)]
        return max(sorted(whole), key=lambda arm: self.speed(arm, *wanted))


Strategy = Callable[[Bench], str]


def default(bench: Bench) -> str:
    """(3, 1, 4), unmeasured."""
    return next((name for name, tree in bench.grid.trees.items() if tree == DEFAULT), BASELINE)


def longest(bench: Bench) -> str:
    """The largest acceptance length, measured once."""
    lengths: dict[str, float] = {}
    for arm in bench.grid.trees:
        bench.measure(arm, *bench.grid.workloads)
        told = [bench.grid.lengths[Cell(arm=arm, workload=w)] or 1.0 for w in bench.grid.workloads]
        lengths[arm] = fmean(map(log, told))
    return max(lengths, key=lengths.__getitem__)


def grid(repetitions: int) -> Strategy:
    def strategy(bench: Bench) -> str:
        for _ in range(repetitions):
            for arm in (BASELINE, *bench.grid.trees):
                bench.measure(arm, *bench.grid.workloads)
        return bench.best()

    return strategy


def halving(bench: Bench) -> str:
    """Every arm on one workload, the better half on the next, and so on."""
    arms = [BASELINE, *bench.grid.trees]
    for i, workload in enumerate(bench.grid.workloads):
        for arm in arms:
            bench.measure(arm, workload)
        measured = bench.grid.workloads[: i + 1]
        ranked = sorted(arms, key=lambda arm: -bench.speed(arm, *measured))
        arms = ranked[: max(2, (len(arms) + 1) // 2)]
    return max(arms, key=bench.speed)


def chance(bench: Bench) -> str:
    """A sixth of the trees, drawn by lot, on every workload."""
    drawn = random.Random(bench.seed).sample(list(bench.grid.trees), max(2, len(bench.grid.trees) // 6))
    for arm in (BASELINE, *drawn):
        bench.measure(arm, *bench.grid.workloads)
    return bench.best()


RIVALS: Mapping[str, Strategy] = {
    "the default (3, 1, 4)": default,
    "largest acceptance length": longest,
    "grid, once": grid(1),
    "grid, three times": grid(3),
    "successive halving": halving,
    "random": chance,
}
