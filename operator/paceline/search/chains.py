"""Chains of a few depths, measured at every load of a pool: a server process is measured at all loads, so a depth costs
one start however many there are, and no guess is needed."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.core import Tree
from paceline.engines.grid import CHAIN_DEPTHS
from paceline.search.heads import references, unknown
from paceline.search.question import Cell, Measure, Point, Question
from paceline.search.table import Table

DEPTHS = CHAIN_DEPTHS


def sweep(question: Question, points: Sequence[Point]) -> Measure | None:
    """The cells that are missing: the baseline and each depth of each head, on every workload; of several heads first
    their references, by which a head that does not run is given up. None at the end."""
    table = Table.of(question, points)
    homes = references(table)
    first = unknown(table, homes) if len(question.heads) > 1 else None
    last = max((point.round for point in points), default=-1)
    if first:
        return replace(first, round=last + 1)
    rows = [question.baseline, *(row for head in homes for row in _chains(question, head).values())]
    cells = tuple(
        Cell(arm=question.names[row], workload=workload)
        for row in rows
        if not table.out(row)
        for workload, count in zip(question.loads, table.counts[row], strict=True)
        if not count
    )
    return Measure(round=last + 1, cells=cells, why="chains of each depth at every load") if cells else None


def _chains(question: Question, head: str = "") -> dict[int, int]:
    """Depth → place, of the chains of this head that are among the options."""
    rows = {steps: question.row(Tree(num_steps=steps, top_k=1, num_draft_tokens=steps + 1), head) for steps in DEPTHS}
    return {steps: row for steps, row in rows.items() if row is not None}
