"""A guess at every tree's speed, from a few measured ones. It ranks: it says whom to measure next, never who wins.

The throughput of a tree is its tokens per step over the time of a step. Both are smooth in the tree's shape, and the
time is nearly the same on all workloads (to 1.1 % in the median of SpecBundle's tables): so each has formulas, weighted
by how well they fit what was measured, and a `Belief` that takes up what they miss. Trees of several heads are ranked
each by its own head's reference; how far the references are apart was measured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paceline.search import formulas
from paceline.search.belief import Array, Belief, bent
from paceline.search.table import Table

TYPICAL = 3.0
"""Acceptance length of the reference where the engine does not tell it."""
LENGTH_NOISE = 0.01
"""Standard deviation of a measured acceptance length."""
POINT_NOISE = 0.02
"""Standard deviation of a throughput, before any was repeated."""
SURE = 1e-3
HOPELESS = -10.0
"""ln of the speed of trees whose head does not run, or was not measured yet."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """Of every option, relative to the reference, in ln. Options without a tree have a variance of 0."""

    lengths: Array
    """Tokens per step, options by workloads: measured, or else guessed. Of another head than the reference's: how far
    they are from that head's reference, and what was measured between the two references."""
    speed: Belief
    """Mean over the workloads."""


def rank(table: Table, homes: Mapping[str, int]) -> Ranking:
    """`homes`: head → its reference, an option that is measured on every workload. All is relative to the first."""
    question, home = table.question, next(iter(homes.values()))
    lengths, mean = np.zeros(table.counts.shape), np.zeros(len(question.options))
    mean[question.tree_rows] = HOPELESS
    covariance = np.zeros((len(mean), len(mean)))
    for head, reference in homes.items():
        rows = question.rows_of(head)
        at_home = rows.index(reference)
        own, tokens = _lengths(table, rows, reference)
        times = _times(table, rows, reference, own)
        ahead = _ahead(table, reference, home)
        between = 0.0 if reference == home else 2 * POINT_NOISE**2 / len(question.loads)
        mean[rows] = tokens.mean - tokens.mean[at_home] - (times.mean - times.mean[at_home])
        mean[rows] += question.weights @ ahead
        covariance[np.ix_(rows, rows)] = tokens.covariance + times.covariance + between
        every = [row for row, option in enumerate(question.options) if reference == home or option.head == head]
        lengths[every] = own[every] + ahead
    doubt = np.where((table.counts > 0).any(axis=1), 0.0, question.doubt)
    return Ranking(lengths, Belief(mean + doubt, covariance))


def _ahead(table: Table, reference: int, home: int) -> Array:
    """How much faster one reference is than the other, in ln, by workload; where one of them is missing, as much as on
    the others."""
    both = (table.counts[reference] > 0) & (table.counts[home] > 0)
    apart = table.logs[reference] - table.logs[home]
    return np.where(both, apart, apart[both].mean() if both.any() else 0.0)


def _lengths(table: Table, rows: Sequence[int], home: int) -> tuple[Array, Belief]:
    """Tokens per step by option and workload, over the reference's, and the belief about their means, of the trees in
    these rows. An arm without a tree is as far from the reference on a workload that is missing as on those that it
    has."""
    question = table.question
    trees = question.shapes(rows)
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


def _times(table: Table, rows: Sequence[int], home: int, lengths: Array) -> Belief:
    """Time of a step, over the reference's."""
    question = table.question
    trees = question.shapes(rows)
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
