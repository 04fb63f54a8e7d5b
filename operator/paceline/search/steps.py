"""What to measure next, given what has been measured.

    1. `reference`  one deep chain on every workload: how much is accepted where
    2. `probe`      the baseline, the default tree, arms without a tree; trees of a few verify widths on one workload
    3. `enter`      those that a guess puts nearest to the best, twice or three times over: each round mends the guess
    4. `race`       who may still be best, until the rest is behind by more than noise, or a tie

A guess says who is measured; only measured points say who wins, and none is left behind on fewer than two of them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paceline.core import Tree
from paceline.search.belief import Array, Belief
from paceline.search.found import found, nothing
from paceline.search.question import Cell, Measure, Point, Question, Step
from paceline.search.rank import POINT_NOISE, rank
from paceline.search.standing import Standing, standing
from paceline.search.table import Table

DEFAULT = Tree(num_steps=3, top_k=1, num_draft_tokens=4)
DEEP = 8
"""The reference is the deepest chain up to this: beyond, most steps are lost, and one cannot tell where."""
TWO = 2
"""Workloads, or repetitions, before anything is left behind."""
PROBES = 3
ENTRANTS, ENTRY_ROUNDS, ENTRY_POINTS = 2, 3, 4
RACING = 3
"""Arms in the last rounds."""
RESERVED = 1
"""Server starts kept for them."""
REPEATS = 2
"""Times that a workload is measured on arms that are too close."""
WORTH = 0.0003
"""Expected gain, in ln, below which a server start is not worth it."""
SHARE, FEWEST = 0.26, 12
"""Server starts: so much of the grid's, but never fewer."""


def proceed(question: Question, points: Sequence[Point]) -> Step:
    """The next round, or what was found. The points in any order are the whole state.

    A round that was begun goes on with the cells that are missing: its plan follows from the rounds before it.
    """
    last = max((point.round for point in points), default=0)
    done = {point.cell for point in points if point.round == last}
    step = _round(question, [point for point in points if point.round < last], last)
    if isinstance(step, Measure) and (missing := tuple(cell for cell in step.cells if cell not in done)):
        return replace(step, cells=missing)
    return _round(question, points, last + 1)


def _round(question: Question, points: Sequence[Point], number: int) -> Step:
    table = Table.of(question, points)
    home = reference(table)
    if home is None:
        return nothing(table)
    if (missing := table.counts[home] == 0).any():
        cells = [Cell(arm=question.names[home], workload=w) for w, m in zip(question.loads, missing, strict=True) if m]
        why = f"{question.names[home]} on every workload, for what is accepted there"
        return _affordable(table, None, Measure(round=number, cells=tuple(cells), why=why))
    now = standing(table, rank(table, home), home)
    stage = table.rounds_since(home)
    step = _planned(_Round(table, now, home), stage)
    return _affordable(table, now, replace(step, round=number)) if isinstance(step, Measure) else step


def _planned(this: "_Round", stage: int) -> Step:
    if stage == 0:
        return this.probe()
    entrants = this.enter(last=stage == ENTRY_ROUNDS) if stage <= ENTRY_ROUNDS else None
    return entrants or this.owed() or this.race()


def reference(table: Table) -> int | None:
    """The deepest chain that runs; where there is none, the tree that branches least."""

    def preference(row: int) -> tuple[bool, int, int]:
        tree = table.question.options[row].tree
        assert tree
        return tree.top_k > 1, -tree.num_steps if tree.num_steps <= DEEP else tree.num_steps, tree.num_draft_tokens

    return min((row for row in table.question.tree_rows if not table.out(row)), key=preference, default=None)


def _affordable(table: Table, now: Standing | None, step: Measure) -> Step:
    """As many arms of this round as the budget allows, the first first; without any, the best so far."""
    limits, arms = table.question.limits, list(dict.fromkeys(cell.arm for cell in step.cells))
    kept: list[Cell] = []
    points = math.inf if limits.points is None else limits.points - table.points
    starts = math.inf if limits.starts is None else limits.starts - table.starts
    for arm in arms[: int(min(starts, len(arms)))]:
        cells = [cell for cell in step.cells if cell.arm == arm]
        if len(kept) + len(cells) > points:
            break
        kept += cells
    if kept:
        return replace(step, cells=tuple(kept))
    return found(table, now, complete=False, notes=(_spent(table),))


def _spent(table: Table) -> str:
    limits = {"points": table.question.limits.points, "server starts": table.question.limits.starts}
    budget = " and ".join(f"{limit} {of}" for of, limit in limits.items() if limit is not None)
    return f"the budget of {budget} is spent after {table.points} points and {table.starts} server starts"


@dataclass(frozen=True, slots=True)
class _Round:
    table: Table
    now: Standing
    home: int

    def probe(self) -> Measure:
        always = self._always()
        probes = self._promising(PROBES, always, worth=0.0)
        cells = (*self._cells(always, TWO), *self._cells(probes, 1))
        return Measure(round=0, cells=cells, why="the baseline, the default and a few widths")

    def _always(self) -> list[int]:
        """What is measured whatever a guess says, as long as it runs."""
        question = self.table.question
        rows = [row for row in range(len(question.options)) if row not in question.tree_rows]
        rows += [row for row in (question.row(DEFAULT), *self._warm()) if row is not None and row != self.home]
        return [row for row in dict.fromkeys(rows) if not self.table.out(row)]

    def owed(self) -> Measure | None:
        """A second point for who has not two: after a failure, and where there is one workload only."""
        table, question = self.table, self.table.question
        points = table.counts.sum(axis=1)
        short = [row for row in self._always() if points[row] < TWO]
        if len(question.loads) == 1:
            by_value = sorted(np.flatnonzero((points == 1) & table.usable), key=lambda row: -self.now.values[row])
            short = [*short, *(int(row) for row in by_value[:RACING])]
            if any(points[row] >= TWO for row in self.now.alive if row != question.baseline):
                short = [row for row in short if row in self._always()]
            cells = tuple(Cell(arm=question.names[row], workload=question.loads[0]) for row in dict.fromkeys(short))
        else:
            cells = self._cells(short, TWO)
        return Measure(round=0, cells=cells, why="a second point for who has only one") if cells else None

    def _warm(self) -> Iterable[int]:
        """What was found at a neighbouring concurrency, and one step to either side."""
        if (row := self.table.question.row(self.table.question.neighbour)) is None:
            return ()
        return (row, *self._beside(row))

    def _beside(self, row: int) -> Iterable[int]:
        """The next shallower and the next deeper tree with the same branching, the nearest in width."""
        question = self.table.question
        tree = question.options[row].tree
        assert tree
        same = {i: t for i in question.tree_rows if (t := question.options[i].tree) and t.top_k == tree.top_k}
        shallower = max((t.num_steps for t in same.values() if t.num_steps < tree.num_steps), default=None)
        deeper = min((t.num_steps for t in same.values() if t.num_steps > tree.num_steps), default=None)
        for depth in (shallower, deeper):
            level = [i for i, t in same.items() if t.num_steps == depth]
            if level:
                yield min(level, key=lambda i: abs(math.log(same[i].num_draft_tokens / tree.num_draft_tokens)))

    def enter(self, last: bool) -> Measure | None:
        """The most promising trees; in the last of these rounds the leader's neighbours first, unless they are behind
        for sure."""
        left = self._starts() - self.table.starts - RESERVED
        count = max(0, min(ENTRANTS, left))
        first: list[int] = []
        if last:
            speed, best = self.now.ranking.speed, self.now.best
            reach = speed.mean + 2 * speed.deviation
            few = self._few()
            first = [row for row in self._beside(self.now.leading_tree) if few[row] and reach[row] > best][:count]
        rows = [*first, *self._promising(count - len(first), first, worth=WORTH)]
        cells = self._cells(rows, ENTRY_POINTS)
        return Measure(round=0, cells=cells, why="who may be faster than the best so far") if cells else None

    def _starts(self) -> int:
        limit = self.table.question.limits.starts
        usual = max(FEWEST, int(SHARE * len(self.table.question.tree_rows)))
        return usual if limit is None else min(limit, usual)

    def _few(self) -> NDArray[np.bool_]:
        """Trees that were not measured often enough to race."""
        question = self.table.question
        few = np.zeros(len(question.options), dtype=bool)
        few[question.tree_rows] = True
        return np.asarray(few & self.table.usable & (self.table.counts.sum(axis=1) < TWO))

    def _promising(self, count: int, taken: Sequence[int], worth: float) -> list[int]:
        """Trees by the gain that is to be expected of a measurement, each given those before it."""
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

    def _cells(self, rows: Iterable[int], count: int) -> tuple[Cell, ...]:
        """Of each row so many workloads that it lacks, those with the least and the most acceptance first: what
        differs between trees differs most between these."""
        question, order = self.table.question, self.now.order
        cells = []
        for row in rows:
            missing = [column for column in order if not self.table.counts[row, column]]
            wanted = max(0, min(count, len(order)) - (len(order) - len(missing)))
            cells += [Cell(arm=question.names[row], workload=question.loads[c]) for c in missing[:wanted]]
        return tuple(cells)

    def race(self) -> Step:
        """Complete those who may still be best; repeat those that are too close; then decide."""
        now, table = self.now, self.table
        rows = now.alive[:RACING]
        left = max(1, self._starts() - table.starts)
        incomplete = [row for row in rows if (table.counts[row] == 0).any()][:left]
        if incomplete:
            every = len(table.question.loads)
            return Measure(
                round=0, cells=self._cells(incomplete, every), why="who may still be best, on every workload"
            )
        enough = max(REPEATS * len(table.question.loads), TWO)
        if len(rows) > 1 and left >= len(rows) and table.counts[rows].sum(axis=1).min() < enough:
            names, loads = table.question.names, table.question.loads
            again = tuple(Cell(arm=names[row], workload=workload) for row in rows for workload in loads)
            return Measure(round=0, cells=again, why="who is too close to call, once more")
        limits = table.question.limits
        points = limits.points is not None and table.points + len(table.question.loads) > limits.points
        if points or (limits.starts is not None and table.starts + RESERVED >= limits.starts):
            return found(table, now, complete=False, notes=(_spent(table),))
        return found(table, now)


def _gain(belief: Belief, best: float) -> Array:
    """How much above the best so far each is to be expected, counting only what is above."""
    from scipy.special import ndtr  # imported when needed, as in gate/interval.py

    deviation = np.maximum(belief.deviation, 1e-9)
    z = (belief.mean - best) / deviation
    return np.asarray(deviation * (z * ndtr(z) + np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)))
