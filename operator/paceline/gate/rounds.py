"""Measurements as a table, and the rounds of it that count for a candidate."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from paceline.core import Measurement
from paceline.gate.own_ends import worst

Cell = tuple[int, str, str]
"""Round, arm, workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """What was measured of one baseline and its candidates. A cell that was not measured is not there."""

    baseline: str
    workloads: Mapping[str, float]
    """Name → weight."""
    cells: Mapping[Cell, Measurement]

    def of(self, arm: str) -> list[int]:
        """The rounds that it was in, in order."""
        return sorted({number for number, name, _ in self.cells if name == arm})

    def complete(self, candidate: str) -> list[int]:
        """The rounds in which candidate and baseline are valid on all workloads, in order."""
        pair = (self.baseline, candidate)
        return [
            n
            for n in self.of(candidate)
            if all(usable(self.cells.get((n, arm, w))) for arm in pair for w in self.workloads)
        ]

    def ended(self, arm: str, number: int) -> str:
        """Why its own server did not get through that round, the worst of all workloads; "" if it did."""
        cells = (self.cells.get((number, arm, w)) for w in self.workloads)
        return worst(cell.ended for cell in cells if cell)

    def saturated(self, workload: str, numbers: Sequence[int]) -> int:
        """In how many of these rounds the baseline did not keep the workload's rate."""
        return sum(self.cells[n, self.baseline, workload].saturated for n in numbers)

    def speed_ups(self, candidate: str, numbers: Sequence[int], workload: str) -> list[float]:
        """ln(candidate/baseline output tokens per second) of these complete rounds."""
        return [
            math.log(throughput(self.cells[n, candidate, workload]))
            - math.log(throughput(self.cells[n, self.baseline, workload]))
            for n in numbers
        ]

    def changes(self, candidate: str, numbers: Sequence[int], workload: str, metric: str) -> list[float] | None:
        """ln(candidate/baseline) of another metric; None if it is not a positive number in each of these rounds."""
        logs = []
        for n in numbers:
            mine, theirs = (self.cells[n, arm, workload].metrics.get(metric) for arm in (candidate, self.baseline))
            if not (positive(mine) and positive(theirs)):
                return None
            logs.append(math.log(mine) - math.log(theirs))
        return logs

    def nothing_accepted(self, candidate: str, number: int) -> list[str]:
        """The workloads on which the candidate's draft got nothing accepted in that round."""
        return [w for w in self.workloads if self.cells[number, candidate, w].nothing_accepted]


def table(baseline: str, workloads: Mapping[str, float], measurements: Sequence[Measurement]) -> Rounds:
    cells = {(m.round, m.arm, m.workload): m for m in measurements}
    return Rounds(baseline=baseline, workloads=workloads, cells=cells)


def usable(measurement: Measurement | None) -> bool:
    """Absent, marked invalid, null, not finite or not positive: all of it is no measurement."""
    return measurement is not None and measurement.valid and positive(measurement.output_throughput)


def throughput(measurement: Measurement) -> float:
    """Of a usable measurement."""
    value = measurement.output_throughput
    assert value is not None
    return value


def weighted_means(workloads: Mapping[str, float], logs: Mapping[str, Sequence[float]]) -> list[float]:
    """Round by round, over workloads (name → weight)."""
    total = math.fsum(workloads.values())
    numbers = range(min(map(len, logs.values())))
    return [math.fsum(weight * logs[w][i] for w, weight in workloads.items()) / total for i in numbers]


def positive(value: float | None) -> TypeGuard[float]:
    """NaN never passes: it compares as nothing."""
    return value is not None and 0 < value < math.inf
