"""A guess at a smooth function of trees: formulas, each bent by a Gaussian process through what was measured.

The kernel says how alike two trees are: by depth, branching and verify width, each counted in doublings. How much the
formulas miss, and how far that reaches, nobody knows beforehand: each of `MISFITS` is tried, and those count by which
what was measured is likely.
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
"""Standard deviation, in ln, of what formulas miss; and doublings of depth, branching or width after which that says
little of another tree."""
OWN = 0.01
"""Standard deviation of what a tree has to itself."""
_ENOUGH = 1e-4
"""Formulas that count less than this share of the best are left out."""


@dataclass(slots=True)
class Belief:
    """Means and covariances of every tree, in ln."""

    mean: Array
    covariance: Array

    def observe(self, index: int, value: float, deviation: float) -> None:
        """The value of a tree was seen to be so much, with this standard deviation."""
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
    """The belief, and how much each formula counts in it, of 1 in all.

    `lines` are what each formula says of each tree, `unusual` how unlikely each is beforehand (minus twice the ln).
    `gaps` is how far each formula is below what was measured of the trees `at`, with these variances.
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
    """1 for the same tree, towards 0 for two that have nothing to do with each other."""
    apart = places(trees)[:, None, :] - places(trees)[None, :, :]
    return np.asarray(np.exp(-np.square(apart).sum(axis=2) / (2 * reach**2)))


@lru_cache(maxsize=256)
def places(trees: tuple[Tree, ...]) -> Array:
    """Depth, branching and verify width, in doublings."""
    return np.asarray(np.log2([(tree.num_steps + 0.5, tree.top_k, tree.num_draft_tokens) for tree in trees]))
