"""The result of a search, with notes for its readers."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.core import BASELINE, Bounds
from paceline.gate.interval import ratio
from paceline.search.question import Found
from paceline.search.standing import Standing
from paceline.search.table import Table

Z_OF_95_PERCENT = 1.96
"""Standard errors of a two-sided 95 % interval, if the noise is as the points show."""
UNSTEADY = 0.10
"""Standard deviation, in ln, of an arm's points about the speed expected from its acceptance, above which its points
contradict each other: nine of ten SpecBundle trees are within 4.5 %."""


def nothing(table: Table) -> Found:
    """Result if no tree runs: the baseline, whether it was measured or not."""
    notes = ("no tree could be measured", *_failures(table))
    return Found(winner=None if table.out(table.question.baseline) else BASELINE, notes=notes)


def best_found(table: Table, now: Standing | None, complete: bool = True, notes: Sequence[str] = ()) -> Found:
    """The best arm that was measured on every workload; if the budget ended before, the best of all remaining. Of
    equally fast arms, the one with fewer draft tokens."""
    if now is None or not now.alive:
        return Found(winner=None, complete=complete, notes=(*notes, *_failures(table)))
    every = [row for row in now.alive if (table.counts[row] > 0).all()]
    rows = every if complete and every else now.alive
    options, floor = table.question.options, table.question.floor
    best = max(float(now.values[row]) for row in rows)
    tied = [row for row in rows if now.values[row] >= best - floor]
    winner = min(tied, key=lambda row: (options[row].draft_tokens, -float(now.values[row])))
    common = (table.counts[winner] > 0) & (table.counts[table.question.baseline] > 0)
    return Found(
        winner=options[winner].name,
        speed_up=_speed_up(table, now, winner, common) if options[winner].name != BASELINE and common.any() else None,
        measured_on=tuple(w for w, both in zip(table.question.loads, common, strict=True) if both),
        complete=complete,
        notes=(*notes, *_failures(table), *_unsteady(table, now, winner), *_unfinished(table, now, winner)),
    )


def _speed_up(table: Table, now: Standing, row: int, common: NDArray[np.bool_]) -> Bounds:
    baseline, weights = table.question.baseline, table.question.weights[common]
    weights = weights / weights.sum()
    mean = float(weights @ (table.logs[row] - table.logs[baseline])[common])
    points = 1 / table.counts[row][common] + 1 / table.counts[baseline][common]
    error = Z_OF_95_PERCENT * now.noise * math.sqrt(float(np.square(weights) @ points))
    return Bounds(ratio=ratio(mean), lower=ratio(mean - error), upper=ratio(mean + error))


def _failures(table: Table) -> Iterator[str]:
    for arm, rounds in table.failed.items():
        times = "once" if len(rounds) == 1 else f"in {len(rounds)} rounds, and is out"
        yield f"{arm} failed {times}: {table.errors[arm]}"


def _unsteady(table: Table, now: Standing, row: int) -> Iterator[str]:
    """Notes on an arm whose points contradict each other: a server with two speeds wins or loses by chance."""
    name, rests = table.question.names[row], now.rests[row][~np.isnan(now.rests[row])]
    spread = float(np.std(rests, ddof=1)) if len(rests) > 1 else 0.0
    if spread > UNSTEADY and not table.question.mixed:
        yield (
            f"{name} is unsteady: its points differ by {spread:.0%} from one workload to the next beyond what its "
            "acceptance says; measure it again before trusting it"
        )
    if (apart := float(table.apart[row].max())) > 2 * UNSTEADY:
        yield f"{name} is unsteady: the same workload was {math.expm1(apart):.0%} faster in one round than in another"


def _unfinished(table: Table, now: Standing, winner: int) -> Iterator[str]:
    missing = [w for w, count in zip(table.question.loads, table.counts[winner], strict=True) if not count]
    if missing:
        yield f"{table.question.names[winner]} was not measured on {', '.join(missing)}"
    rivals = [table.question.names[row] for row in now.alive if row != winner and (table.counts[row] == 0).any()]
    if rivals:
        yield f"not measured on every workload, and not shown to be slower: {', '.join(rivals)}"
