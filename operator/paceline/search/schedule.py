"""The depth of a chain by load: measured at every concurrency, and written as the table that engines read.

A server process is measured at all loads, so a depth costs one start however many loads there are: all of a few depths
are measured everywhere, and no guess is needed.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from paceline.core import Depth, Tree
from paceline.engines.grid import CHAIN_DEPTHS
from paceline.search.heads import references, unknown
from paceline.search.question import Cell, Measure, Point, Question
from paceline.search.table import Table

NOISE = 0.02
"""Of a point, in ln, where a difference of two decides whether there is a table at all."""
DEPTHS = CHAIN_DEPTHS


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A load at which all of its workloads were measured. `num_steps` is 0 where the baseline is fastest."""

    concurrency: int
    num_steps: int
    ratio: float
    """Of that depth over the baseline, geometric over the workloads."""


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


def levels(question: Question, points: Sequence[Point], loads: Mapping[str, int]) -> tuple[Level, ...]:
    """The fastest depth at each load, by rising load. `loads`: workload → its concurrency. Of depths within the floor
    of each other the smaller one."""
    return tuple(_levels(question, Table.of(question, points), loads))


def _levels(question: Question, table: Table, loads: Mapping[str, int]) -> Iterator[Level]:
    """One depth for all loads, if none is behind at any by more than noise: then nothing speaks for a table."""
    every = dict(_gains(question, table, loads))
    common = set.intersection(*map(set, every.values())) if every else set()
    sets = len(loads) // max(1, len(every))
    tie = max(question.floor, NOISE * math.sqrt(2 / sets)) if sets else question.floor
    alike = [steps for steps in common if all(gains[steps] >= max(gains.values()) - tie for gains in every.values())]
    for concurrency, gains in every.items():
        best = max(gains.values())
        own = min(steps for steps, gain in gains.items() if gain >= best - question.floor)
        one = max(alike, key=lambda steps: sum(gains[steps] for gains in every.values()), default=own)
        yield Level(concurrency=concurrency, num_steps=one, ratio=math.exp(gains[one]))


def _gains(question: Question, table: Table, loads: Mapping[str, int]) -> Iterator[tuple[int, Mapping[int, float]]]:
    """Concurrency and, by depth, ln of the speed over the baseline's."""
    rows = {0: question.baseline, **_chains(question)}
    for concurrency in sorted(set(loads.values())):
        columns = [i for i, name in enumerate(question.loads) if loads[name] == concurrency]
        measured = {steps: row for steps, row in rows.items() if (table.counts[row, columns] > 0).all()}
        if 0 not in measured:
            continue
        weights = question.weights[columns] / question.weights[columns].sum()
        base = table.logs[question.baseline, columns]
        yield (
            concurrency,
            {steps: float(weights @ (table.logs[row, columns] - base)) for steps, row in measured.items()},
        )


def written(found: Sequence[Level], threshold: Callable[[int], int]) -> tuple[Depth, ...]:
    """The table: a depth holds from half way, in doublings, between its load and the one before, or from the next
    `threshold` of the engine. Empty where one depth is fastest at every load: a chain or the baseline serves as
    well."""
    if not found:
        return ()
    depths = [Depth(from_batch_size=1, num_steps=found[0].num_steps)]
    for before, level in pairwise(found):
        if level.num_steps != depths[-1].num_steps:
            half_way = math.ceil(math.sqrt(before.concurrency * level.concurrency))
            start = min(threshold(max(half_way, before.concurrency + 1)), level.concurrency)
            depths.append(Depth(from_batch_size=start, num_steps=level.num_steps))
    return tuple(depths) if len(depths) > 1 else ()


def _chains(question: Question, head: str = "") -> dict[int, int]:
    """Depth → place, of the chains of this head that are among the options."""
    rows = {steps: question.row(Tree(num_steps=steps, top_k=1, num_draft_tokens=steps + 1), head) for steps in DEPTHS}
    return {steps: row for steps, row in rows.items() if row is not None}
