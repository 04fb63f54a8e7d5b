"""Chains of a few depths, measured at every load of a pool. One server process serves all loads, so a depth costs one
start for any number of loads, and no estimate is needed."""

from collections.abc import Iterator, Sequence

from paceline.core import Tree
from paceline.engines.grid import CHAIN_DEPTHS
from paceline.search.question import ArmOnWorkload, Measure, Observation, Question
from paceline.search.table import Table


def sweep(question: Question, points: Sequence[Observation]) -> Measure | None:
    """The missing cells: the baseline and each depth, on every workload. None at the end."""
    table = Table.of(question, points)
    last = max((point.round for point in points), default=-1)
    rows = [question.baseline, *_chains(question)]
    cells = tuple(
        ArmOnWorkload(arm=question.names[row], workload=workload)
        for row in rows
        if not table.out(row)
        for workload, count in zip(question.loads, table.counts[row], strict=True)
        if not count
    )
    return Measure(round=last + 1, cells=cells, why="chains of each depth at every load") if cells else None


def _chains(question: Question) -> Iterator[int]:
    """Rows of the options that are such chains."""
    for steps in CHAIN_DEPTHS:
        if (row := question.row(Tree(num_steps=steps))) is not None:
            yield row
