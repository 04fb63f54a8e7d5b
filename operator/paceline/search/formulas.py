"""Tokens per step and time of a step as functions of a tree's shape, for a range of parameters.

The parameters are unknown: each function returns values for every combination, and `rank` weighs them by their fit to
the measurements.
"""

import math
from functools import lru_cache
from itertools import product

import numpy as np

from paceline.core import Tree
from paceline.search.belief import Array

ROOT = Tree(num_steps=0, top_k=1, num_draft_tokens=1)
"""The baseline as a tree: one token, no pass of the head."""

SIBLINGS = (0.2, 0.4, 0.6, 0.8)
"""Exponent of siblings: k guesses at a level all miss with the probability of one miss to the power of k ** this."""
DECAY = (0.93, 0.97, 1.01)
"""Factor of a guess's probability of being right, from one level to the next."""
EVEN_SIBLINGS, EVEN_DECAY = (0.15, 0.3, 0.5, 0.75), (0.94, 1.0)
"""The same as SIBLINGS and DECAY, if every level tries equally many guesses."""
FILL = (0.0, 0.5, 1.0)
"""Exponent of the share of a level's branches for which there are tokens."""
WASTE = (0.0, 0.2, 0.4)
"""Share of useless tokens in a branching tree. SpecBundle's (5,3,6) accepts up to 16 % less than its (5,1,6)."""
SUREST = 0.985
"""Maximum probability of a guess."""
MOST_NODES = 512
"""Maximum draft tokens in the API."""

DRAFT = tuple(0.0125 * 2 ** (i / 1.5) for i in range(7))
"""Time of one pass of the head, in steps of the baseline."""
VERIFY = tuple(0.0005 * 2**i for i in range(9))
"""Time of one more token to verify, in steps of the baseline."""
FREE = (0, 8, 24)
"""Tokens that cost a seventh of VERIFY, because memory bandwidth hides their arithmetic."""
_FULL = (6, 24)
"""Alternative to FREE: tokens after which the next one costs a third of VERIFY, because most experts of a mixture were
already read."""
_HIDDEN = 0.15
BRANCH = (0.0, 0.2)
"""Relative increase of a pass's time per doubling of the branches."""
KERNEL = (0.0, 0.1)
"""Increase of a step's time if the draft branches (masks, other kernels), in steps of the baseline."""
USUAL_DRAFT, USUAL_VERIFY = (0.05, 0.8), (0.008, 1.5)
"""Centre, and standard deviation in ln, of the usual DRAFT and VERIFY."""


@lru_cache(maxsize=64)
def step_times(trees: tuple[Tree, ...]) -> tuple[Array, Array]:
    """ln of the step time, in steps of the baseline: a row per combination of parameters, a column per tree. And per
    row, how unusual DRAFT and VERIFY are: the sum of both squared distances from the usual, in standard deviations."""
    steps = np.array([tree.num_steps for tree in trees], dtype=np.float64)
    tokens = np.array([tree.num_draft_tokens - 1 for tree in trees], dtype=np.float64)
    doublings = np.log2([tree.top_k for tree in trees])
    widths = [np.maximum(tokens - free, _HIDDEN * tokens) for free in FREE]
    widths += [full * -np.expm1(-tokens / full) for full in _FULL]
    lines, unusual = [], []
    for draft, verify, width, branch, kernel in product(DRAFT, VERIFY, widths, BRANCH, KERNEL):
        passes = draft * steps * (1 + branch * doublings)
        lines.append(np.log(1 + passes + verify * width + kernel * (doublings > 0)))
        unusual.append(_apart(draft, USUAL_DRAFT) ** 2 + _apart(verify, USUAL_VERIFY) ** 2)
    return np.array(lines), np.array(unusual)


def _apart(value: float, usual: tuple[float, float]) -> float:
    centre, deviation = usual
    return math.log(value / centre) / deviation


@lru_cache(maxsize=64)
def step_lengths(trees: tuple[Tree, ...], home: int, lengths: tuple[float, ...]) -> Array:
    """ln of the tokens per step, parameters by workloads by trees. `lengths`: acceptance lengths of tree `home` by
    workload, which every combination reproduces."""
    every = []
    for siblings, decay in product(SIBLINGS, DECAY):
        hits = [_hit(trees[home], siblings, decay, length) for length in lengths]
        gains = [[_gains(tree.top_k, tree.num_steps, hit, siblings, decay) for tree in trees] for hit in hits]
        for waste in WASTE:
            nodes = [(tree.num_draft_tokens - 1) * (1 - waste * (tree.top_k > 1)) for tree in trees]
            every.append([[math.log(1 + _upto(*pair)) for pair in zip(line, nodes, strict=True)] for line in gains])
    return np.concatenate([np.array(every), _even_lengths(trees, home, lengths)])


def _even_lengths(trees: tuple[Tree, ...], home: int, lengths: tuple[float, ...]) -> Array:
    """As `step_lengths`, if every level has one token that may be right and tries equally many guesses at it."""
    depth = np.array([tree.num_steps for tree in trees], dtype=np.float64)
    branches = np.array([tree.top_k for tree in trees], dtype=np.float64)
    room = np.array([(tree.num_draft_tokens - 1) / tree.num_steps for tree in trees])
    widest = np.maximum(branches - 1, 1)
    full = np.where(branches > 1, np.clip((room - 1) / widest, 0.0, 1.0), 0.0)
    every = []
    for siblings, decay, fill in product(EVEN_SIBLINGS, EVEN_DECAY, FILL):
        tries = 1 + (branches - 1) * full**fill
        lines = []
        for length in lengths:
            low, high = 0.01, 0.999
            for _ in range(16):
                middle = (low + high) / 2
                tokens = _chained(depth[[home]], tries[[home]], middle, siblings, decay)[0]
                low, high = (middle, high) if tokens < length else (low, middle)
            lines.append(np.log(_chained(depth, tries, low, siblings, decay)))
        every.append(lines)
    return np.array(every)


def _chained(depth: Array, tries: Array, hit: float, siblings: float, decay: float) -> Array:
    """Tokens per step if all levels have the same probability of being right, apart from `decay`."""
    levels = np.arange(depth.max())
    right = np.minimum(SUREST, hit * decay**levels)
    path = np.cumprod(1 - (1 - right) ** (tries**siblings)[:, None], axis=1)
    return np.asarray(1 + np.where(levels < depth[:, None], path, 0.0).sum(axis=1))


@lru_cache(maxsize=2**14)
def _gains(top_k: int, depth: int, hit: float, siblings: float, decay: float) -> tuple[float, ...]:
    """Tokens gained by the n most probable nodes, for n from 0. As SGLang drafts: each level extends topK nodes by topK
    guesses each; the most probable nodes of all levels are verified."""
    levels: list[Array] = []
    continued = np.ones(1)
    for level in range(depth):
        miss = 1 - min(SUREST, hit * decay**level)
        ranks = np.diff(1 - miss ** (np.arange(top_k + 1) ** siblings))
        levels.append(np.outer(continued, ranks).ravel())
        continued = -np.sort(-levels[-1])[:top_k]
    likeliest = -np.sort(-np.concatenate(levels))[:MOST_NODES]
    return (0.0, *np.cumsum(likeliest).tolist())


def _upto(gains: tuple[float, ...], nodes: float) -> float:
    """Interpolated linearly between whole numbers of nodes."""
    if nodes >= len(gains) - 1:
        return gains[-1]
    whole = int(nodes)
    return gains[whole] + (nodes - whole) * (gains[whole + 1] - gains[whole])


@lru_cache(maxsize=2**12)
def _hit(tree: Tree, siblings: float, decay: float, length: float) -> float:
    """The probability of a first guess that gives this tree this length, accurate to 0.01."""
    low, high = 0.01, 0.999
    for _ in range(14):
        middle = (low + high) / 2
        gains = _gains(tree.top_k, tree.num_steps, round(middle, 3), siblings, decay)
        low, high = (middle, high) if 1 + _upto(gains, tree.num_draft_tokens - 1) < length else (low, middle)
    return round(low, 2)
