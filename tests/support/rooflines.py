"""Synthetic tables for the search: acceptance and step time of made-up servers, whose parameters are drawn from ranges.

A step costs what the target needs for its tokens and the head for its passes: memory bandwidth as long as there are few
tokens, arithmetic beyond (a roofline). What a tree gains is its acceptance: each level finds the next token among its
branches with some probability, which differs by workload and falls with the depth. `paceline.search` imports
nothing of this; yet both take the most probable nodes of a tree, so these servers are friendlier to it than a
stranger's. `other_table` has other formulas.
"""

import heapq
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

Shape = tuple[int, int, int]
"""(numSteps, topK, numDraftTokens)"""
Range = tuple[float, float]


def grid(depths: tuple[int, ...], branchings: tuple[int, ...], widths: tuple[int, ...]) -> tuple[Shape, ...]:
    """Every chain of these depths, and every tree that fills its tokens and verifies what it drafts."""
    chains = [(depth, 1, depth + 1) for depth in depths]
    trees = [
        (depth, branching, width)
        for depth, branching, width in product(depths, branchings, widths)
        if branching > 1 and depth + 1 <= width <= 1 + branching + (depth - 1) * branching**2
    ]
    return tuple(chains + trees)


GRID_47 = grid((1, 2, 3, 4, 5, 7), (1, 2, 3, 4), (4, 8, 16, 32, 64))
OTHER_47 = grid((1, 3, 5, 7, 9), (1, 2, 4, 8), (4, 8, 16, 32, 64))
GRID_136 = grid((1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 4, 6, 8, 10), (4, 8, 16, 32, 64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """From which each parameter of a server is drawn, evenly; `log` ones evenly in their logarithm."""

    hit: Range = (0.55, 0.88)
    """Probability that the head's first choice is right, mean over workloads."""
    spread: Range = (0.02, 0.12)
    """By how much that differs between workloads."""
    decay: Range = (0.93, 1.01)
    """From one level to the next, of that probability."""
    siblings: Range = (0.25, 0.7)
    """A level with k branches misses with (1 - hit) ** k ** siblings."""
    waste: Range = (0.0, 0.35)
    """Share of a tree's tokens that it places where they are no use, when it branches."""
    verify: Range = (0.0015, 0.06)
    """Log. Step time of one more token for each request in the compute-bound part, of the baseline's step."""
    knee: Range = (0.2, 1.0)
    """The arithmetic of the baseline's step over its memory time."""
    draft: Range = (0.02, 0.12)
    """One pass of the head, of the baseline's step."""
    branch: Range = (0.0, 0.25)
    """How much longer a pass is for every doubling of the branches."""
    kernel: Range = (0.0, 0.15)
    """Log of how much longer a step takes as soon as the draft branches: other kernels, a mask."""
    interaction: Range = (0.0, 0.015)
    """Standard deviation of what one tree on one workload has to itself, in ln."""


LATENCY = Ranges(verify=(0.001, 0.006), knee=(0.05, 0.4))
MODERATE = Ranges(verify=(0.006, 0.025), knee=(0.3, 0.9))
BUSY = Ranges(verify=(0.025, 0.12), knee=(0.7, 1.0), hit=(0.5, 0.8))
WIDE = Ranges(verify=(0.001, 0.004), siblings=(0.6, 0.9), waste=(0.0, 0.1), kernel=(0.0, 0.03), hit=(0.45, 0.65))
DEEP = Ranges(hit=(0.82, 0.93), decay=(0.98, 1.01), draft=(0.01, 0.05), kernel=(0.05, 0.2), waste=(0.2, 0.4))
MIXED = Ranges(spread=(0.12, 0.22), hit=(0.6, 0.75), interaction=(0.01, 0.02))
REGIMES: Mapping[str, Ranges] = {
    "any": Ranges(), "latency": LATENCY, "moderate": MODERATE, "busy": BUSY, "wide": WIDE, "deep": DEEP, "mixed": MIXED,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Server:
    hits: tuple[float, ...]
    decay: float
    siblings: float
    waste: float
    verify: float
    knee: float
    draft: float
    branch: float
    kernel: float
    interaction: float
    memo: dict[Any, float] = field(default_factory=dict)

    @staticmethod
    def drawn(ranges: Ranges, workloads: int, seed: int) -> "Server":
        chance = random.Random(seed)

        def log(bounds: Range) -> float:
            return math.exp(chance.uniform(*map(math.log, bounds)))

        mean, spread = chance.uniform(*ranges.hit), chance.uniform(*ranges.spread)
        return Server(
            hits=tuple(min(0.97, max(0.15, mean + chance.gauss(0, spread))) for _ in range(workloads)),
            decay=chance.uniform(*ranges.decay),
            siblings=chance.uniform(*ranges.siblings),
            waste=chance.uniform(*ranges.waste),
            verify=log(ranges.verify),
            knee=chance.uniform(*ranges.knee),
            draft=chance.uniform(*ranges.draft),
            branch=chance.uniform(*ranges.branch),
            kernel=chance.uniform(*ranges.kernel),
            interaction=chance.uniform(*ranges.interaction),
        )

    def accepted(self, shape: Shape, workload: int) -> float:
        """Tokens of a step, on average: the root's, and the most probable nodes that the tree has room for."""
        depth, branching, width = shape
        nodes = width - 1
        if branching > 1:
            nodes = max(1, round(nodes * (1 - self.waste)))
        hit = self.hits[workload]

        def ranks(level: int) -> list[float]:
            miss = 1 - min(0.985, hit * self.decay**level)
            found = [1 - miss ** (k**self.siblings) for k in range(branching + 1)]
            return [after - before for before, after in pairwise(found)]

        levels = [ranks(level) for level in range(depth)]
        open_nodes = [(-probability, 1) for probability in levels[0]]
        heapq.heapify(open_nodes)
        total = 1.0
        for _ in range(nodes):
            if not open_nodes:
                break
            probability, level = heapq.heappop(open_nodes)
            total -= probability
            if level < depth:
                for share in levels[level]:
                    heapq.heappush(open_nodes, (probability * share, level + 1))
        return total

    def step(self, shape: Shape) -> float:
        """Seconds of a step, the baseline's being 1."""
        depth, branching, width = shape
        return self._target(width) * math.exp(self.kernel if branching > 1 else 0) + depth * self.draft * (
            1 + self.branch * math.log2(branching)
        )

    def _target(self, width: int) -> float:
        """A smooth maximum of memory and arithmetic: one at a width of 1."""

        def at(tokens: int) -> float:
            arithmetic = self.knee + self.verify * (tokens - 1)
            return float((1.0 + arithmetic**4) ** 0.25)

        return at(width) / at(1)


def table(
    shapes: tuple[Shape, ...], ranges: Ranges = REGIMES["any"], workloads: int = 4, seed: int = 0
) -> dict[str, Any]:
    """In the format of tests/support/replay.py."""
    server = Server.drawn(ranges, workloads, seed)
    chance = random.Random(f"{seed} of cells")
    names = [f"w{i}" for i in range(workloads)]
    baseline = {name: chance.uniform(100, 2000) for name in names}
    trees = []
    for shape in shapes:
        points = {}
        for i, name in enumerate(names):
            length = server.accepted(shape, i)
            own = math.exp(chance.gauss(0, server.interaction))
            points[name] = {"throughput": baseline[name] * length / server.step(shape) * own, "acceptLength": length}
        trees.append({"numSteps": shape[0], "topK": shape[1], "numDraftTokens": shape[2], "points": points})
    return {"baseline": baseline, "trees": trees}


def other_table(shapes: tuple[Shape, ...], workloads: int = 4, seed: int = 0, own: float = 0.01) -> dict[str, Any]:
    """Servers of another make, which no formula above describes: acceptance that saturates in the share of the branches
    that are verified, arithmetic in tiles, a hard roofline, and passes of the head that cost more from a branching on.
    """
    chance = random.Random(f"{seed} of others")
    mean, spread = chance.uniform(0.5, 0.9), chance.uniform(0.02, 0.15)
    hits = [min(0.96, max(0.2, chance.gauss(mean, spread))) for _ in range(workloads)]
    gain, share = chance.uniform(0.1, 0.75), chance.uniform(0.3, 1.2)
    falls = chance.uniform(0.0, 0.04)
    tile = chance.choice((1, 4, 8, 16))
    slope = math.exp(chance.uniform(math.log(0.001), math.log(0.08)))
    room = chance.uniform(0, 24)
    draft, costly = chance.uniform(0.015, 0.13), chance.uniform(0, 0.06)
    mask = chance.uniform(0, 0.1)

    def accepted(shape: Shape, hit: float) -> float:
        depth, branching, width = shape
        filled = min(1.0, (width - 1 - depth) / (depth * branching - depth)) if branching > 1 else 0.0
        total, path = 1.0, 1.0
        for level in range(depth):
            single = max(0.05, hit - falls * level)
            path *= single + (1 - single) * gain * (branching - 1) / (branching + 1) * filled**share
            total += path
        return total

    def step(shape: Shape) -> float:
        depth, branching, width = shape
        tiles = math.ceil(width / tile) * tile
        target = max(1.0, 1.0 + slope * (tiles - room)) + (mask if branching > 1 else 0)
        return target + depth * (draft + (costly if branching > 2 else 0))

    names = [f"w{i}" for i in range(workloads)]
    baseline = {name: chance.uniform(100, 2000) for name in names}
    trees = []
    for shape in shapes:
        points = {}
        for name, hit in zip(names, hits, strict=True):
            length = accepted(shape, hit)
            speed = baseline[name] * length / step(shape) * math.exp(chance.gauss(0, own))
            points[name] = {"throughput": speed, "acceptLength": length}
        trees.append({"numSteps": shape[0], "topK": shape[1], "numDraftTokens": shape[2], "points": points})
    return {"baseline": baseline, "trees": trees}
