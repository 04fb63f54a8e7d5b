"""A guess at a smooth function of trees, from its values at a few of them: a Gaussian process, point by point.

The kernel says how alike two trees are: by depth, branching and verify width, each counted in doublings.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from paceline.core import Tree

Array = NDArray[np.float64]
REACH = 1.5
"""Doublings of depth, branching or width after which two trees tell little of each other."""


@dataclass(slots=True)
class Belief:
    """Means and covariances of every tree, in ln: what formulas say at first, then bent to what was observed."""

    mean: Array
    covariance: Array

    @classmethod
    def about(cls, trees: tuple[Tree, ...], mean: Array, unsure: Array, misfit: float) -> "Belief":
        """`unsure` is the covariance of what the formulas leave open, `misfit` the standard deviation of what they
        miss."""
        return cls(mean, unsure + misfit**2 * alike(trees))

    def observe(self, index: int, value: float, deviation: float) -> None:
        """The value of a tree was seen to be so much, with this standard deviation."""
        spread = math.sqrt(self.covariance[index, index] + deviation**2)
        gain = self.covariance[index] / spread
        self.mean = self.mean + gain * ((value - self.mean[index]) / spread)
        self.covariance = self.covariance - np.outer(gain, gain)

    @property
    def deviation(self) -> Array:
        return np.asarray(np.sqrt(np.maximum(self.covariance.diagonal(), 0.0)))


@lru_cache(maxsize=64)
def alike(trees: tuple[Tree, ...]) -> Array:
    """1 for the same tree, towards 0 for two that have nothing to do with each other."""
    features = np.log2([(tree.num_steps + 0.5, tree.top_k, tree.num_draft_tokens) for tree in trees])
    apart = features[:, None, :] - features[None, :, :]
    return np.asarray(np.exp(-np.square(apart).sum(axis=2) / (2 * REACH**2)))
