"""A guess at every tree's speed, from a few measured ones. It ranks: it says whom to measure next, never who wins.

The throughput of a tree is its tokens per step over the time of a step. Both are smooth in the tree's shape, and the
time is nearly the same on all workloads (to 1.1 % in the median of SpecBundle's tables): so each has formulas, weighted
by how well they fit what was measured, and a `Belief` that takes up what they miss.
"""

from dataclasses import dataclass

import numpy as np

from paceline.search import formulas
from paceline.search.belief import Array, Belief
from paceline.search.table import Table

TYPICAL = 3.0
"""Acceptance length of the reference where the engine does not tell it."""
MISFIT = 0.1
"""Standard deviation, in ln, of what the formulas miss of tokens per step, and of step times."""
FIT = 0.03
"""How near a line of a formula must come to what was measured to count in full."""
LENGTH_NOISE = 0.01
"""Standard deviation of a measured acceptance length."""
POINT_NOISE = 0.02
"""Standard deviation of a throughput, before any was repeated."""
SURE = 1e-3


@dataclass(frozen=True, slots=True)
class Ranking:
    """Of every option, relative to the reference, in ln. Options without a tree have a variance of 0."""

    lengths: Array
    """Tokens per step, options by workloads: measured, or else guessed."""
    speed: Belief
    """Mean over the workloads."""


def rank(table: Table, home: int) -> Ranking:
    """`home` is the reference: the option that is measured on every workload."""
    question = table.question
    rows = question.tree_rows
    at_home = rows.index(home)
    lengths, tokens = _lengths(table, home)
    times = _times(table, home, lengths)
    mean = np.zeros(len(question.options))
    mean[rows] = lengths[rows] @ question.weights - (times.mean - times.mean[at_home])
    covariance = np.zeros((len(mean), len(mean)))
    covariance[np.ix_(rows, rows)] = tokens.covariance + times.covariance
    doubt = np.where((table.counts > 0).any(axis=1), 0.0, question.doubt)
    return Ranking(lengths, Belief(mean + doubt, covariance))


def _lengths(table: Table, home: int) -> tuple[Array, Belief]:
    """Tokens per step by option and workload, over the reference's, and the belief about their means, as far as the
    formulas miss them. An arm without a tree is as far from the reference on a workload that is missing as on those
    that it has."""
    question = table.question
    rows, trees = question.tree_rows, question.shapes
    at_home = rows.index(home)
    told = np.log(table.lengths)
    seen = ~np.isnan(told)
    of_home = tuple(
        float(length) if known else TYPICAL for length, known in zip(table.lengths[home], seen[home], strict=True)
    )
    lines = formulas.step_lengths(trees, at_home, of_home)
    measured = [i for i, row in enumerate(rows) if seen[row].any() and i != at_home]
    gaps = [(told[rows[i]] - lines[:, :, i])[:, seen[rows[i]]].mean(axis=1) for i in measured]
    chance = _likely(np.array(gaps).reshape(len(measured), len(lines)).T, FIT**2)
    formula = np.tensordot(chance, lines, axes=1)
    apart = np.tensordot(lines, question.weights, axes=([1], [0])) - question.weights @ formula
    belief = Belief.about(trees, np.zeros(len(trees)), (apart * chance[:, None]).T @ apart, MISFIT)
    belief.observe(at_home, 0.0, SURE)
    for i in measured:
        row = rows[i]
        belief.observe(i, float((told[row] - formula[:, i])[seen[row]].mean()), LENGTH_NOISE)
    lengths = np.zeros(table.counts.shape)
    lengths[rows] = (formula + belief.mean).T
    lengths[seen] = told[seen]
    relative = lengths - lengths[home]
    for row in set(range(len(question.options))) - {*rows, question.baseline}:
        known = seen[row]
        relative[row, ~known] = relative[row, known].mean() if known.any() else 0.0
    return relative, belief


def _times(table: Table, home: int, lengths: Array) -> Belief:
    """Time of a step, over the reference's."""
    question = table.question
    rows, trees = question.tree_rows, question.shapes
    at_home = rows.index(home)
    both = (table.counts > 0) & (table.counts[home] > 0)
    times = lengths - (table.logs - table.logs[home])
    measured = [(i, row) for i, row in enumerate((*rows, question.baseline)) if both[row].any() and row != home]
    values = np.array([times[row][both[row]].mean() for _, row in measured])
    variances = np.array([2 * POINT_NOISE**2 / both[row].sum() for _, row in measured])
    lines, unusual = formulas.step_times((*trees, formulas.ROOT))
    lines = lines - lines[:, [at_home]]
    chance = _likely(lines[:, [i for i, _ in measured]] - values, FIT**2 + variances, unusual)
    lines = lines[:, : len(trees)]
    mean = chance @ lines
    apart = lines - mean
    belief = Belief.about(trees, mean, (apart * chance[:, None]).T @ apart, MISFIT)
    belief.observe(at_home, 0.0, SURE)
    for (i, row), value, variance in zip(measured, values, variances, strict=True):
        if row != question.baseline:
            belief.observe(i, float(value), float(variance) ** 0.5)
    return belief


def _likely(gaps: Array, variance: float | Array, unusual: float | Array = 0.0) -> Array:
    """How much each line counts, of 1 in all, by its gaps to what was measured."""
    cost = (np.square(gaps) / variance).sum(axis=1) + unusual
    chance = np.exp(-0.5 * (cost - cost.min()))
    return np.asarray(chance / chance.sum())
