"""The draft heads of a search: the reference of each, and which of them still runs."""

from collections.abc import Mapping

import numpy as np

from paceline.search.question import Cell, Measure
from paceline.search.table import Table

DEEP = 8
"""The reference is the deepest chain up to this: beyond, most steps are lost, and one cannot tell where."""
LOST_ARMS, LOST_ROUNDS = 2, 3
"""Trees of a head, and rounds, that fail before the head is given up where it has no valid point and there are others:
its first reference twice, and its second once."""


def references(table: Table) -> dict[str, int]:
    """Head → the tree that its others are ranked by. Heads that are given up, or have no tree left, are not there."""
    heads = table.question.heads
    running = [head for head in heads if len(heads) == 1 or not _lost(table, head)]
    rows = {head: reference(table, table.question.rows_of(head)) for head in running}
    return {head: row for head, row in rows.items() if row is not None}


def reference(table: Table, rows: list[int]) -> int | None:
    """The deepest chain that runs; where there is none, the tree that branches least."""

    def preference(row: int) -> tuple[bool, int, int]:
        tree = table.question.options[row].tree
        assert tree
        return tree.top_k > 1, -tree.num_steps if tree.num_steps <= DEEP else tree.num_steps, tree.num_draft_tokens

    return min((row for row in rows if not table.out(row)), key=preference, default=None)


def unknown(table: Table, homes: Mapping[str, int]) -> Measure | None:
    """What is missing of the references; None at the end."""
    names, loads = table.question.names, table.question.loads
    rows = [home for home in homes.values() if (table.counts[home] == 0).any()]
    cells = [Cell(arm=names[row], workload=loads[w]) for row in rows for w in np.flatnonzero(table.counts[row] == 0)]
    why = f"{', '.join(names[row] for row in rows)} on every workload, for what is accepted there"
    return Measure(round=0, cells=tuple(cells), why=why) if cells else None


def stage(table: Table, homes: Mapping[str, int]) -> int:
    """Rounds after the one from which each head has a reference or is given up; another search's are one."""
    settled = max(table.first_valid(row) for row in homes.values())
    names = table.question.names
    lost = {names[row] for row in table.question.tree_rows if table.question.options[row].head not in homes}
    settled = max([settled, *(number for number, arms in table.started.items() if arms & lost)])
    return sum(number > settled for number in table.started if number >= 0) + (settled < 0)


def _lost(table: Table, head: str) -> bool:
    rows = table.question.rows_of(head)
    if table.counts[rows].any():
        return False
    failed = [rounds for row in rows if (rounds := table.failed.get(table.question.names[row]))]
    return len(failed) >= LOST_ARMS and len(set().union(*failed)) >= LOST_ROUNDS
