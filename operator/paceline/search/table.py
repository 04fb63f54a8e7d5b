"""The measured points as a table: arms by workloads."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from paceline.core import BASELINE
from paceline.search.belief import Array
from paceline.search.question import Observation, Question

_TRIES = 2
"""Rounds in which an arm may fail before it is out, as in the gate: one failure may be the node's."""


@dataclass(slots=True)
class Table:
    """Rows are the options of the question, columns its workloads."""

    question: Question
    counts: Array
    """Number of valid measurements of each cell."""
    logs: Array
    """Mean ln of a cell's tokens per second; 0 without a measurement."""
    lengths: Array
    """Mean acceptance length of a cell; NaN without one."""
    apart: Array
    """ln(largest / smallest throughput) of a cell."""
    started: dict[int, set[str]] = field(default_factory=dict)
    """Round → the arms whose servers were started."""
    failed: dict[str, set[int]] = field(default_factory=dict)
    """Arm → rounds in which it failed."""
    errors: dict[str, str] = field(default_factory=dict)
    """Arm → its first error."""
    points: int = 0
    """Points of this search, including failed ones, which cost as much."""

    @classmethod
    def of(cls, question: Question, points: Iterable[Observation]) -> "Table":
        """Build the table. Raises ValueError for an unknown arm or workload, or a cell that a round has twice."""
        rows = {name: i for i, name in enumerate(question.names)}
        columns = {name: i for i, name in enumerate(question.loads)}
        shape = len(rows), len(columns)
        table = cls(question, np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))
        told, least, most, seen = np.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf), set()
        for point in sorted(points, key=lambda point: (point.round, point.cell)):
            arm, workload = point.cell.arm, point.cell.workload
            if arm not in rows or workload not in columns:
                raise ValueError(f"points: there is no option {arm} on {workload}")
            if (point.round, point.cell) in seen:
                raise ValueError(f"points: round {point.round} has {arm} on {workload} twice")
            seen.add((point.round, point.cell))
            table.points += point.round >= 0
            table.started.setdefault(point.round, set()).add(arm)
            if point.error or not valid(point.throughput):
                table.failed.setdefault(arm, set()).add(point.round)
                table.errors.setdefault(arm, point.error or f"throughput {point.throughput}")
                continue
            assert point.throughput is not None
            at, log = (rows[arm], columns[workload]), math.log(point.throughput)
            table.counts[at] += 1
            table.logs[at] += log
            least[at], most[at] = min(least[at], log), max(most[at], log)
            length = 1.0 if arm == BASELINE else point.accept_length
            if length is not None and 1 <= length < math.inf:
                told[at] += 1
                table.lengths[at] += length
        measured = table.counts > 0
        table.apart[measured] = (most - least)[measured]
        np.divide(table.logs, table.counts, out=table.logs, where=measured)
        with np.errstate(invalid="ignore"):
            table.lengths /= told
        return table

    def out(self, row: int) -> bool:
        return len(self.failed.get(self.question.names[row], ())) >= _TRIES

    @property
    def usable(self) -> NDArray[np.bool_]:
        return np.array([not self.out(row) for row in range(len(self.question.options))])

    @property
    def starts(self) -> int:
        return sum(map(len, self.started.values()))

    def rounds_since(self, row: int) -> int:
        """Rounds since the first in which all of this arm's points were valid; another search's rounds count as one."""
        name = self.question.names[row]
        failed = self.failed.get(name, set())
        first = min(number for number, arms in self.started.items() if name in arms and number not in failed)
        return sum(number > first for number in self.started if number >= 0) + (first < 0)


def valid(throughput: float | None) -> bool:
    """Whether the number is positive and finite; NaN is not."""
    return throughput is not None and 0 < throughput < math.inf
