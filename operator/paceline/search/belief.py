"""Estimates a smooth function of trees: formulas, each corrected by a Gaussian process through the measurements.

The kernel is the similarity of two trees by depth, branching and verify width, each counted in doublings. The size and
reach of the formulas' errors are unknown: each of `MISFITS` is tried and weighted by the likelihood of the
measurements.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from paceline.core import Tree

Array = NDArray[np.float64]

MISFITS = tuple(product((0.02, 0.06, 0.18), (0.7, 1.5, 3.0)))
"""Standard deviation, in ln, of the formulas' errors; and their reach: doublings of depth, branching or width beyond
which an error says little about another tree."""
OWN = 0.01
"""Standard deviation of the part that is specific to one tree."""
_ENOUGH = 1e-4
"""Formulas with less than this fraction of the best weight are dropped."""


@dataclass(slots=True)
class Belief:
    """Means and covariances of every tree, in ln."""

    mean: Array
    covariance: Array

    def observe(self, index: int, value: float, deviation: float) -> None:
        """Condition on one measured value of a tree, with this standard deviation."""
        spread = math.sqrt(self.covariance[index, index] + deviation**2)
        gain = self.covariance[index] / spread
        self.mean = self.mean + gain * ((value - self.mean[index]) / spread)
        self.covariance = self.covariance - np.outer(gain, gain)

    @property
    def deviation(self) -> Array:
        return np.asarray(np.sqrt(np.maximum(self.covariance.diagonal(), 0.0)))


def bent(
    trees: tuple[Tree, ...], lines: Array, unusual: Array, at: Sequence[int], gaps: Array, variances: Array
) -> tuple[Belief, Array]:
    """The belief, and the weight of each formula in it; weights sum to 1.

    `lines`: each formula's value for each tree; `unusual`: minus twice the ln of each formula's prior. `gaps`: measured
    value minus each formula's, for the trees `at`, with these variances.
    """
    ways, likely = [], []
    for deviation, reach in MISFITS:
        kernel = deviation**2 * alike(trees, reach) + OWN**2 * np.eye(len(trees))
        seen = kernel[np.ix_(at, at)] + np.diag(variances)
        gain = np.linalg.solve(seen, kernel[at]).T
        ways.append((gain, kernel - gain @ kernel[at]))
        unlikely = (gaps.T * np.linalg.solve(seen, gaps.T)).sum(axis=0) + np.linalg.slogdet(seen)[1] + unusual
        likely.append(-0.5 * unlikely)
    chance = np.exp(np.array(likely) - np.max(likely))
    chance[chance < _ENOUGH * chance.max()] = 0.0
    chance /= chance.sum()
    guesses = [lines[some > 0] + gaps[some > 0] @ gain.T for (gain, _), some in zip(ways, chance, strict=True)]
    counts = [some[some > 0] for some in chance]
    mean = np.sum([count @ guess for count, guess in zip(counts, guesses, strict=True)], axis=0)
    covariance = np.zeros((len(trees), len(trees)))
    for (_, left), count, guess in zip(ways, counts, guesses, strict=True):
        covariance += count.sum() * left + ((guess - mean) * count[:, None]).T @ (guess - mean)
    return Belief(mean, covariance), np.asarray(chance.sum(axis=0))


@lru_cache(maxsize=256)
def alike(trees: tuple[Tree, ...], reach: float) -> Array:
    """Similarity of trees: 1 for the same tree, towards 0 for unrelated ones."""
    apart = places(trees)[:, None, :] - places(trees)[None, :, :]
    return np.asarray(np.exp(-np.square(apart).sum(axis=2) / (2 * reach**2)))


@lru_cache(maxsize=256)
def places(trees: tuple[Tree, ...]) -> Array:
    """Depth, branching and verify width, in doublings."""
    return np.asarray(np.log2([(tree.num_steps + 0.5, tree.top_k, tree.num_draft_tokens) for tree in trees]))
