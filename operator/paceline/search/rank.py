"""Estimates every tree's speed from a few measured ones. The ranking decides what to measure next, never what wins.

The throughput of a tree is its tokens per step divided by the time of a step. Both are smooth in the tree's shape, and
the time is nearly equal on all workloads (to 1.1 % in the median of SpecBundle's tables). So each has formulas,
weighted by their fit to the measurements, and a `Belief` that models their errors.
"""

from dataclasses import dataclass

import numpy as np

from paceline.search import formulas
from paceline.search.belief import Array, Belief, bent
from paceline.search.table import Table

TYPICAL = 3.0
"""Acceptance length of the reference if the engine does not report it."""
LENGTH_NOISE = 0.01
"""Standard deviation of a measured acceptance length."""
POINT_NOISE = 0.02
"""Standard deviation of a throughput, before any point was repeated."""
SURE = 1e-3


@dataclass(frozen=True, slots=True)
class Ranking:
    """Estimates for every option, relative to the reference, in ln. Options without a tree have variance 0."""

    lengths: Array
    """Tokens per step, measured or estimated: one row per option, one column per workload."""
    speed: Belief
    """Mean speed over the workloads."""


def rank(table: Table, home: int) -> Ranking:
    """`home` is the reference: the option measured on every workload."""
    question = table.question
    rows = question.tree_rows
    at_home = rows.index(home)
    lengths, tokens = _lengths(table, home)
    times = _times(table, home, lengths)
    mean = np.zeros(len(question.options))
    mean[rows] = tokens.mean - tokens.mean[at_home] - (times.mean - times.mean[at_home])
    covariance = np.zeros((len(mean), len(mean)))
    covariance[np.ix_(rows, rows)] = tokens.covariance + times.covariance
    doubt = np.where((table.counts > 0).any(axis=1), 0.0, question.doubt)
    return Ranking(lengths, Belief(mean + doubt, covariance))


def _lengths(table: Table, home: int) -> tuple[Array, Belief]:
    """Tokens per step by option and workload, relative to the reference, and the belief about their means. For an arm
    without a tree, a missing workload gets the mean difference of its measured ones."""
    question = table.question
    rows, trees = question.tree_rows, question.shapes
    at_home = rows.index(home)
    told = np.log(table.lengths)
    seen = ~np.isnan(told)
    of_home = tuple(
        float(length) if known else TYPICAL for length, known in zip(table.lengths[home], seen[home], strict=True)
    )
    lines = formulas.step_lengths(trees, at_home, of_home)
    means = np.tensordot(lines, question.weights, axes=([1], [0]))
    measured = [i for i, row in enumerate(rows) if seen[row].any() or i == at_home]
    gaps = [(told[rows[i]] - lines[:, :, i])[:, seen[rows[i]]].mean(axis=1) for i in measured if i != at_home]
    gaps.insert(measured.index(at_home), np.zeros(len(lines)))
    variances = np.array([SURE**2 if i == at_home else LENGTH_NOISE**2 for i in measured])
    belief, chance = bent(trees, means, np.zeros(len(lines)), measured, np.array(gaps).T, variances)
    formula = np.tensordot(chance, lines, axes=1)
    lengths = np.zeros(table.counts.shape)
    lengths[rows] = (formula + belief.mean - question.weights @ formula).T
    lengths[seen] = told[seen]
    relative = lengths - lengths[home]
    for row in set(range(len(question.options))) - {*rows, question.baseline}:
        known = seen[row]
        relative[row, ~known] = relative[row, known].mean() if known.any() else 0.0
    return relative, belief


def _times(table: Table, home: int, lengths: Array) -> Belief:
    """Time of a step, relative to the reference."""
    question = table.question
    rows, trees = question.tree_rows, question.shapes
    at_home = rows.index(home)
    both = (table.counts > 0) & (table.counts[home] > 0)
    times = lengths - (table.logs - table.logs[home])
    measured = [(i, row) for i, row in enumerate((*rows, question.baseline)) if both[row].any() and row != home]
    values = np.array([0.0, *(times[row][both[row]].mean() for _, row in measured)])
    variances = np.array([SURE**2, *(2 * POINT_NOISE**2 / both[row].sum() for _, row in measured)])
    every = (*trees, formulas.ROOT)
    lines, unusual = formulas.step_times(every)
    lines = lines - lines[:, [at_home]]
    at = [at_home, *(i for i, _ in measured)]
    belief, _ = bent(every, lines, unusual, at, values - lines[:, at], variances)
    return Belief(belief.mean[: len(trees)], belief.covariance[: len(trees), : len(trees)])
