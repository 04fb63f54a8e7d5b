"""Measurements as a table, and the rounds that count for a candidate."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from paceline.core import BASELINE, INCUMBENT, Measurement
from paceline.gate.server_failures import worst

Cell = tuple[int, str, str]
"""Round, arm, workload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The measurements of a baseline and its candidates. A cell that was not measured is absent.

    Build it with `rounds_table`, which computes the other fields from `cells` once, because each look needs them.
    """

    baseline: str
    """What the others are compared with: the first arm, or the incumbent."""
    workloads: Mapping[str, float]
    """Name → weight."""
    cells: Mapping[Cell, Measurement]
    numbers: Mapping[str, list[int]]
    """Arm → the rounds that contain it, in order."""
    usable: Mapping[str, frozenset[int]]
    """Arm → the rounds in which it is valid on all workloads."""
    failures: Mapping[tuple[str, int], str]
    """Arm and round → why the arm's own server failed in it, the worst over all workloads."""

    @property
    def reference(self) -> str:
        """What sentences call it."""
        return INCUMBENT if self.baseline == INCUMBENT else BASELINE

    def of(self, arm: str) -> list[int]:
        """The rounds that contain the arm, in order."""
        return self.numbers.get(arm, [])

    def complete(self, candidate: str) -> list[int]:
        """The rounds in which candidate and baseline are valid on all workloads, in order."""
        both = self.usable.get(candidate, frozenset()) & self.usable.get(self.baseline, frozenset())
        return sorted(both)

    def ended(self, arm: str, number: int) -> str:
        """Why the arm's own server failed in that round, the worst over all workloads; "" if it did not."""
        return self.failures.get((arm, number), "")

    def saturated(self, workload: str, numbers: Sequence[int]) -> int:
        """Number of these rounds in which the baseline missed the workload's request rate."""
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
            if not (_positive(mine) and _positive(theirs)):
                return None
            logs.append(math.log(mine) - math.log(theirs))
        return logs

    def nothing_accepted(self, candidate: str, number: int) -> list[str]:
        """The workloads on which no draft token of the candidate was accepted in that round."""
        return [w for w in self.workloads if self.cells[number, candidate, w].nothing_accepted]


def rounds_table(baseline: str, workloads: Mapping[str, float], measurements: Sequence[Measurement]) -> Rounds:
    cells = {(m.round, m.arm, m.workload): m for m in measurements if m.workload in workloads}
    numbers: dict[str, set[int]] = {}
    valid: Counter[tuple[str, int]] = Counter()
    ended: dict[tuple[str, int], list[str]] = {}
    for (number, arm, _), cell in cells.items():
        numbers.setdefault(arm, set()).add(number)
        if usable(cell):
            valid[arm, number] += 1
        if cell.ended:
            ended.setdefault((arm, number), []).append(cell.ended)
    return Rounds(
        baseline=baseline,
        workloads=workloads,
        cells=cells,
        numbers={arm: sorted(rounds) for arm, rounds in numbers.items()},
        usable={
            arm: frozenset(number for number in rounds if valid[arm, number] == len(workloads))
            for arm, rounds in numbers.items()
        },
        failures={at: worst(reasons) for at, reasons in ended.items()},
    )


def usable(measurement: Measurement | None) -> bool:
    """False if the measurement is absent, marked invalid, null, not finite or not positive."""
    return measurement is not None and measurement.valid and _positive(measurement.output_throughput)


def throughput(measurement: Measurement) -> float:
    """Output tokens per second of a usable measurement."""
    value = measurement.output_throughput
    assert value is not None
    return value


def weighted_means(workloads: Mapping[str, float], logs: Mapping[str, Sequence[float]]) -> list[float]:
    """The weighted mean over workloads (name → weight), round by round."""
    total = math.fsum(workloads.values())
    numbers = range(min(map(len, logs.values())))
    return [math.fsum(weight * logs[w][i] for w, weight in workloads.items()) / total for i in numbers]


def _positive(value: float | None) -> TypeGuard[float]:
    """False for None, infinity and NaN."""
    return value is not None and 0 < value < math.inf
