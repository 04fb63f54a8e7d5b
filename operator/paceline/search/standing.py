"""The state of the measured arms: paired differences with the reference, and which arms may still be best."""

import math
from dataclasses import dataclass

import numpy as np

from paceline.search.belief import Array
from paceline.search.rank import Ranking
from paceline.search.table import Table

Z_OF_A_BOUND = 1.8
"""Standard errors by which an arm must trail the leader to be dropped."""
PRIOR_NOISE, PRIOR_COUNT = 0.015, 4
"""Prior standard deviation of a point, in ln, and its weight as a number of differences."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Rows of the table, relative to the reference, in ln."""

    ranking: Ranking
    values: Array
    """Mean over the workloads. A missing workload's difference is estimated: from its tokens per step, plus the mean
    unexplained difference on the measured workloads."""
    rests: Array
    """Per workload: the part not explained by tokens per step; NaN if not measured."""
    noise: float
    """Standard deviation of a point around its estimate, pooled over all trees."""
    alive: list[int]
    """Arms that may be best, best first."""
    order: list[int]
    """Workloads: the one with least acceptance, then the others from most acceptance downwards."""
    best: float
    """The highest estimated value of any measured tree."""
    leading_tree: int


def standing_rows(table: Table, ranking: Ranking, home: int) -> Standing:
    """`home`: see `rank`."""
    question, counts = table.question, table.counts
    measured = counts > 0
    rests = np.where(measured, table.logs - table.logs[home] - ranking.lengths, np.nan)
    weights = measured * question.weights
    with np.errstate(invalid="ignore"):
        beyond = np.nansum(np.nan_to_num(rests) * weights, axis=1) / weights.sum(axis=1)
    values = ranking.lengths @ question.weights + beyond
    noise = _noise(table, rests - beyond[:, None], home)
    trees = [row for row in question.tree_rows if measured[row].any() and not table.out(row)]
    leading_tree = max(trees, key=lambda row: float(ranking.speed.mean[row]))
    acceptance = np.nan_to_num(table.lengths[home])
    rising = [int(column) for column in np.argsort(acceptance, kind="stable")]
    return Standing(
        ranking=ranking,
        values=values,
        rests=rests,
        noise=noise,
        alive=_alive(table, values, noise),
        order=[*rising[:1], *reversed(rising[1:])],
        best=float(ranking.speed.mean[leading_tree]),
        leading_tree=leading_tree,
    )


def _noise(table: Table, off: Array, home: int) -> float:
    """`off`: each cell's deviation from its arm's mean. A difference has the noise of two points."""
    rows = [row for row in table.question.tree_rows if row != home and (table.counts[row] > 0).sum() > 1]
    squares = float(np.nansum(np.square(off[rows]))) / 2 if rows else 0.0
    freedom = sum(int((table.counts[row] > 0).sum()) - 1 for row in rows)
    pooled = math.sqrt((PRIOR_COUNT * PRIOR_NOISE**2 + squares) / (PRIOR_COUNT + freedom))
    return max(table.question.floor, pooled)


def _alive(table: Table, values: Array, noise: float) -> list[int]:
    """Arms with at least two points that do not trail the leader by more than noise."""
    points = table.counts.sum(axis=1)
    entered = [row for row in range(len(values)) if points[row] >= 2 and not table.out(row)]
    if not entered:
        return []
    leader = max(entered, key=lambda row: float(values[row]))

    def behind(row: int) -> bool:
        error = Z_OF_A_BOUND * noise * math.sqrt(1 / points[row] + 1 / points[leader])
        return float(values[leader] - values[row]) >= error

    alive = [row for row in entered if row == leader or not behind(row)]
    baseline = table.question.baseline
    if baseline in alive and baseline != leader and slower_everywhere(table, baseline, leader, noise):
        alive.remove(baseline)
    return sorted(alive, key=lambda row: -float(values[row]))


def slower_everywhere(table: Table, row: int, leader: int, noise: float) -> bool:
    """Whether `row` is slower than `leader` on all workloads on which both were measured, at least two. A baseline must
    thus be slower on the workload with least acceptance, too."""
    common = (table.counts[row] > 0) & (table.counts[leader] > 0)
    ahead = (table.logs[leader] - table.logs[row])[common]
    return len(ahead) >= 2 and float(ahead.min()) > Z_OF_A_BOUND * noise * math.sqrt(2)
