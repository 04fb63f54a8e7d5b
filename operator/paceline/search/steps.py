"""Chooses what to measure next, given the measured points.

    1. `reference`  one deep chain on every workload, to learn the acceptance there
    2. `probe`      the baseline, the default tree, arms without a tree, and the best estimate of each branching
    3. `enter`      one tree per round: first by the best estimate, then neighbours of the leader; each improves the
                    estimates
    4. `race`       arms that may still be best, until the others trail by more than noise, or there is a tie

Estimates decide what is measured; only measured points decide what wins, and no arm is dropped on fewer than two.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paceline.core import Tree
from paceline.core.text import count
from paceline.search.belief import Array, Belief, places
from paceline.search.found import best_found, nothing
from paceline.search.question import ArmOnWorkload, Measure, NextStep, Observation, Question
from paceline.search.rank import POINT_NOISE, rank
from paceline.search.standing import Standing, standing_rows
from paceline.search.table import Table

DEFAULT = Tree(num_steps=3, top_k=1, num_draft_tokens=4)
DEEP = 8
"""Maximum depth of the reference chain: deeper chains lose most steps, and do not show at which level."""
TWO = 2
"""Workloads, or repetitions, before an arm may be dropped."""
_PROBES = 3
"""Branchings to probe before their estimates are trusted: a branching head can be slow for reasons that no chain
shows."""
ENTRY_POINTS, ENTRY_ROUNDS, GUESSED = 4, 10, 3
"""Maximum workloads for an entering tree; maximum rounds with an entrant; number of first rounds in which the estimate
alone chooses the entrant."""
RACING = 3
"""Arms in the final rounds."""
_RESERVED = 1
"""Server starts reserved for the final rounds."""
REPEATS = 2
"""How often each workload is measured on arms that are too close to call."""
WORTH = 0.0003
"""Expected gain, in ln, below which a server start is not worth it."""
START_SHARE, FEWEST_STARTS = 0.26, 12
POINT_SHARE, FEWEST_TIMES = 0.0575, 5
"""Limits for entering and repeating: server starts as a share of the grid's, points as a share of the grid's measured
three times. On a small grid at least this many starts, and this many points per workload, are allowed."""


def proceed(question: Question, points: Sequence[Observation]) -> NextStep:
    """The next round, or the result. The points, in any order, are the whole state.

    An incomplete round continues with its missing cells: its plan follows from the rounds before it.
    """
    last = max((point.round for point in points), default=-1)
    if last < 0:
        return _round(question, points, 0)
    done = {point.cell for point in points if point.round == last}
    step = _round(question, [point for point in points if point.round < last], last)
    if isinstance(step, Measure) and (missing := tuple(cell for cell in step.cells if cell not in done)):
        return replace(step, cells=missing)
    return _round(question, points, last + 1)


def _round(question: Question, points: Sequence[Observation], number: int) -> NextStep:
    table = Table.of(question, points)
    home = reference_chain(table)
    if home is None:
        return nothing(table)
    if (missing := table.counts[home] == 0).any():
        cells = [
            ArmOnWorkload(arm=question.names[home], workload=w)
            for w, m in zip(question.loads, missing, strict=True)
            if m
        ]
        why = f"{question.names[home]} on every workload, for what is accepted there"
        return _affordable(table, None, Measure(round=number, cells=tuple(cells), why=why))
    now = standing_rows(table, rank(table, home), home)
    step = _planned(_Round(table, now, home), table.rounds_since(home))
    return _affordable(table, now, replace(step, round=number)) if isinstance(step, Measure) else step


def _planned(this: "_Round", stage: int) -> NextStep:
    if stage == 0:
        return this.probe()
    entrants = this.enter(stage) if stage <= ENTRY_ROUNDS else None
    return entrants or this.owed() or this.race()


def reference_chain(table: Table) -> int | None:
    """The deepest chain that runs; without one, the tree with the fewest branches."""

    def preference(row: int) -> tuple[bool, int, int]:
        tree = table.question.options[row].tree
        assert tree
        return tree.top_k > 1, -tree.num_steps if tree.num_steps <= DEEP else tree.num_steps, tree.num_draft_tokens

    return min((row for row in table.question.tree_rows if not table.out(row)), key=preference, default=None)


def _affordable(table: Table, now: Standing | None, step: Measure) -> NextStep:
    """The first arms of this round that the budget allows; if it allows none, the best so far."""
    limits, arms = table.question.limits, list(dict.fromkeys(cell.arm for cell in step.cells))
    kept: list[ArmOnWorkload] = []
    points = math.inf if limits.points is None else limits.points - table.points
    starts = math.inf if limits.starts is None else limits.starts - table.starts
    for arm in arms[: int(min(starts, len(arms)))]:
        cells = [cell for cell in step.cells if cell.arm == arm]
        if len(kept) + len(cells) > points:
            break
        kept += cells
    if kept:
        return replace(step, cells=tuple(kept))
    return best_found(table, now, complete=False, notes=(_spent(table),))


def _spent(table: Table) -> str:
    limits = {"points": table.question.limits.points, "server starts": table.question.limits.starts}
    budget = " and ".join(f"{limit} {of}" for of, limit in limits.items() if limit is not None)
    spent = f"{count(table.points, 'point')} and {count(table.starts, 'server start')}"
    return f"the budget of {budget} is spent after {spent}"


@dataclass(frozen=True, slots=True)
class _Round:
    table: Table
    now: Standing
    home: int

    def probe(self) -> Measure:
        always = self._always()
        rows = [*always, *self._branchings(always)]
        return Measure(
            round=0, cells=self._cells(rows, TWO), why="the baseline, the default and a tree of each branching"
        )

    def _branchings(self, taken: Sequence[int]) -> list[int]:
        """The best estimate of each branching, or of the least, middle and most if there are many; if there are few,
        also other promising trees."""
        question, speed, few = self.table.question, self.now.ranking.speed, self._few()
        few[list(taken)] = False
        best: dict[int, int] = {}
        for row in sorted(np.flatnonzero(few), key=lambda row: -float(speed.mean[row])):
            tree = question.options[row].tree
            if tree and tree.top_k > 1:
                best.setdefault(tree.top_k, int(row))
        widths = sorted(best)
        if len(widths) > _PROBES:
            widths = [widths[i * (len(widths) - 1) // (_PROBES - 1)] for i in range(_PROBES)]
        rows = [best[width] for width in widths]
        return [*rows, *self._promising(_PROBES - len(rows), [*taken, *rows], worth=0.0)]

    def _always(self) -> list[int]:
        """Options that are measured regardless of estimates, if they run."""
        question = self.table.question
        rows = [row for row in range(len(question.options)) if row not in question.tree_rows]
        if (default := question.row(DEFAULT)) not in (None, self.home):
            rows.append(default)
        return [row for row in rows if not self.table.out(row)]

    def owed(self) -> Measure | None:
        """A second point for arms that have only one: after a failure, and if there is only one workload."""
        table, question = self.table, self.table.question
        points = table.counts.sum(axis=1)
        short = [row for row in self._always() if points[row] < TWO]
        if len(question.loads) == 1:
            by_value = sorted(np.flatnonzero((points == 1) & table.usable), key=lambda row: -self.now.values[row])
            short = [*short, *(int(row) for row in by_value[:RACING])]
            if any(points[row] >= TWO for row in self.now.alive if row != question.baseline):
                short = [row for row in short if row in self._always()]
            cells = tuple(
                ArmOnWorkload(arm=question.names[row], workload=question.loads[0]) for row in dict.fromkeys(short)
            )
        else:
            cells = self._cells(short, TWO)
        return Measure(round=0, cells=cells, why="a second point for options with only one") if cells else None

    def enter(self, stage: int) -> Measure | None:
        """The most promising tree; in later rounds first a neighbour of the leader, unless it is certainly slower."""
        if self._starts_left() <= _RESERVED:
            return None
        near = self._near() if stage > GUESSED else []
        rows = near[:1] or self._promising(1, (), worth=WORTH)
        cells = self._cells(rows, ENTRY_POINTS)[: max(0, self._points_left())]
        enough = len(cells) >= min(TWO, len(self.table.question.loads))
        return Measure(round=0, cells=cells, why="options that may be faster than the best so far") if enough else None

    def _near(self) -> list[int]:
        """The leader's nearest neighbours that are deeper, shallower, wider or narrower, or have more or fewer
        branches: those that have not raced and may be faster, most promising first."""
        question, speed, few = self.table.question, self.now.ranking.speed, self._few()
        rows = question.tree_rows
        apart = places(question.shapes) - places(question.shapes)[rows.index(self.now.leading_tree)]
        distance = np.square(apart).sum(axis=1)
        found = set[int]()
        for way in (*apart.T, *-apart.T):
            ahead = np.where(way > 0, distance, np.inf)
            if np.isfinite(ahead).any():
                found.add(rows[int(ahead.argmin())])
        reach = speed.mean + 2 * speed.deviation
        return sorted(
            (row for row in found if few[row] and reach[row] > self.now.best), key=lambda row: -float(reach[row])
        )

    def _starts_left(self) -> int:
        limit = self.table.question.limits.starts
        usual = max(FEWEST_STARTS, int(START_SHARE * len(self.table.question.tree_rows)))
        return (usual if limit is None else min(limit, usual)) - self.table.starts

    def _points_left(self) -> int:
        question = self.table.question
        share = max(FEWEST_TIMES, POINT_SHARE * 3 * len(question.tree_rows))
        return int(share * len(question.loads)) - self.table.points

    def _few(self) -> NDArray[np.bool_]:
        """Trees with too few measurements to race, or not measured on the only workload."""
        question = self.table.question
        enough = min(TWO, len(question.loads))
        few = np.zeros(len(question.options), dtype=bool)
        few[question.tree_rows] = True
        return np.asarray(few & self.table.usable & (self.table.counts.sum(axis=1) < enough))

    def _promising(self, count: int, taken: Sequence[int], worth: float) -> list[int]:
        """Up to `count` trees with the largest expected gain of a measurement; each choice assumes that those before it
        are measured."""
        belief = Belief(self.now.ranking.speed.mean, self.now.ranking.speed.covariance)
        for row in taken:
            belief.observe(row, float(belief.mean[row]), POINT_NOISE)
        few = self._few()
        rows: list[int] = []
        few[list(taken)] = False
        while len(rows) < count and few.any():
            gain = np.where(few, _gain(belief, self.now.best), -1.0)
            row = int(gain.argmax())
            if gain[row] < worth:
                break
            rows.append(row)
            few[row] = False
            belief.observe(row, float(belief.mean[row]), POINT_NOISE)
        return rows

    def _cells(self, rows: Iterable[int], count: int) -> tuple[ArmOnWorkload, ...]:
        """Up to `count` workloads per row, of those that it lacks, starting with the least and the most acceptance:
        trees differ most on these."""
        question, order = self.table.question, self.now.order
        cells = []
        for row in rows:
            missing = [column for column in order if not self.table.counts[row, column]]
            wanted = max(0, min(count, len(order)) - (len(order) - len(missing)))
            cells += [ArmOnWorkload(arm=question.names[row], workload=question.loads[c]) for c in missing[:wanted]]
        return tuple(cells)

    def race(self) -> NextStep:
        """Complete the arms that may still be best; repeat those that are too close; then decide."""
        now, table = self.now, self.table
        rows = now.alive[:RACING]
        leading = bool(rows) and bool((table.counts[rows[0]] == 0).any())
        left = max(int(leading), self._starts_left())  # A winner must be measured on all workloads.
        incomplete = [row for row in rows if (table.counts[row] == 0).any()][:left]
        if incomplete:
            every = len(table.question.loads)
            return Measure(
                round=0, cells=self._cells(incomplete, every), why="options that may still be best, on every workload"
            )
        enough = max(REPEATS * len(table.question.loads), TWO)
        affordable = left >= len(rows) and self._points_left() >= len(rows) * len(table.question.loads)
        if len(rows) > 1 and affordable and table.counts[rows].sum(axis=1).min() < enough:
            names, loads = table.question.names, table.question.loads
            again = tuple(ArmOnWorkload(arm=names[row], workload=workload) for row in rows for workload in loads)
            return Measure(round=0, cells=again, why="options that are too close to call, once more")
        limits = table.question.limits
        points = limits.points is not None and table.points + len(table.question.loads) > limits.points
        if points or (limits.starts is not None and table.starts + _RESERVED >= limits.starts):
            return best_found(table, now, complete=False, notes=(_spent(table),))
        return best_found(table, now)


def _gain(belief: Belief, best: float) -> Array:
    """Expected improvement over the best so far, counting only gains."""
    deviation = np.maximum(belief.deviation, 1e-9)
    z = (belief.mean - best) / deviation
    below = np.array([math.erfc(-one / math.sqrt(2)) / 2 for one in z])
    return np.asarray(deviation * (z * below + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)))
