"""Tables of two heads on one server, for the tests and the bench of a search over both.

The server verifies as many tokens in the same time whatever head drafts; what is accepted, and what a pass of the head
costs, is each head's own.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from tests.support import rooflines, strangers
from tests.unit.engines.sglang.servers import server

from paceline.core import BASELINE, Draft, Head, Model, Range, Search, Tree
from paceline.engines.grid import OF_A_HEAD, name_of, searched
from paceline.search import Cell, Limits, Option, Question
from paceline.search.question import Found, Point
from paceline.search.replay import UNLIMITED, Grid, Replayed, measured, regret
from paceline.search.steps import proceed

OWN, OTHER = "", "b"
"""The spec's head, and the one beside it."""
WORKLOADS = ("w0", "w1", "w2", "w3")


def ranges(*heads: str) -> Search:
    """As in examples/search.yaml; some 45 trees of one head, 22 of each of two."""
    drafts = {head: Draft(algorithm="EAGLE3", model=Model(source=f"hf://owner/head{head}")) for head in (OWN, *heads)}
    return Search(
        draft=drafts[OWN],
        num_steps=Range(min=1, max=7),
        top_k=Range(min=1, max=8),
        num_draft_tokens=Range(min=2, max=32),
        heads=tuple(Head(name=head, draft=drafts[head]) for head in heads),
    )


def trees(*heads: str) -> tuple[Tree, ...]:
    """That a search over the spec's head and these tries of each."""
    arms = searched(server("--attention-backend=triton"), ranges(*heads), ())
    return tuple(arm.tree for arm in arms if arm.tree and not OF_A_HEAD.fullmatch(arm.name))


@dataclass(frozen=True, slots=True)
class Heads:
    """What two heads give on each workload, for every tree that either search may try."""

    throughput: dict[Cell, float | None]
    lengths: dict[Cell, float | None]

    def grid(self, shapes: Sequence[Tree], heads: Sequence[str]) -> Grid:
        """Of these trees of these heads, as `replay` reads it."""
        named = {name_of(tree, head): tree for head, tree in product(heads, shapes)}
        return Grid(
            trees=named,
            searched=tuple(named),
            throughput=self.throughput,
            lengths=self.lengths,
            workloads=WORKLOADS,
            notes=(),
        )


def made(make: str, seed: int) -> Heads:
    """A server of a regime of `rooflines` or of a family of `strangers`, and two heads for it."""
    chance = random.Random(f"two heads {make} {seed}")
    speeds = [chance.uniform(100, 2000) for _ in WORKLOADS]
    shapes = dict.fromkeys((*trees(), *trees(OTHER)))
    throughput: dict[Cell, float | None] = {
        Cell(arm=BASELINE, workload=w): speed for w, speed in zip(WORKLOADS, speeds, strict=True)
    }
    lengths: dict[Cell, float | None] = {}
    for head, of in zip((OWN, OTHER), _two(make, seed, chance), strict=True):
        for tree, (i, workload) in product(shapes, enumerate(WORKLOADS)):
            shape, cell = (
                (tree.num_steps, tree.top_k, tree.num_draft_tokens),
                Cell(arm=name_of(tree, head), workload=workload),
            )
            lengths[cell] = of.accepted(shape, i)
            speed = speeds[i] * of.accepted(shape, i) * of.takes(strangers.NONE, i) / of.takes(shape, i)
            throughput[cell] = speed * math.exp(chance.gauss(0, of.own))
    return Heads(throughput, lengths)


def _two(make: str, seed: int, chance: random.Random) -> tuple[strangers.Server, strangers.Server]:
    if make in rooflines.REGIMES:
        first = rooflines.Server.drawn(rooflines.REGIMES[make], len(WORKLOADS), seed)
        draw = rooflines.Server.drawn(rooflines.REGIMES[make], len(WORKLOADS), seed + 10**6)
        second = replace(draw, verify=first.verify, knee=first.knee, kernel=first.kernel, memo={})
        return _as_strangers(first), _as_strangers(second)
    family = strangers.EVERY[make]
    first_one = family(random.Random(f"{make} {seed}"), len(WORKLOADS))
    other = family(random.Random(f"{make} {seed} other"), len(WORKLOADS))
    costlier = chance.uniform(-0.5, 1.0)

    def takes(shape: rooflines.Shape, workload: int) -> float:
        """A pass of the other head costs half to twice as much."""
        one, two = (first_one.takes((depth, 1, depth + 1), workload) for depth in (1, 2))
        return first_one.takes(shape, workload) + shape[0] * costlier * min(two - one, 0.1 * one)

    return first_one, strangers.Server(other.accepted, takes, first_one.own)


def _as_strangers(of: rooflines.Server) -> strangers.Server:
    return strangers.Server(
        of.accepted, lambda shape, _: 1.0 if shape == strangers.NONE else of.step(shape), of.interaction
    )


def together(heads: Heads, cv: float, seed: int, limits: Limits = UNLIMITED) -> Replayed:
    """One search over the trees of both heads."""
    grid = heads.grid(trees(OTHER), (OWN, OTHER))
    options = [
        Option(name=name, tree=tree, draft_tokens=tree.num_draft_tokens, head=OTHER if name.endswith(OTHER) else OWN)
        for name, tree in grid.trees.items()
    ]
    question = Question(
        options=(Option(name=BASELINE), *options), workloads=dict.fromkeys(WORKLOADS, 1.0), limits=limits
    )
    points = list[Point]()
    while not isinstance(step := proceed(question, points), Found):
        points += (measured(grid, cell, step.round, cv, seed) for cell in step.cells)
    return Replayed(
        found=step,
        points=tuple(points),
        regret=regret(best_of(heads), step.winner or BASELINE),
        starts=len({(point.round, point.cell.arm) for point in points}),
    )


def best_of(heads: Heads) -> dict[str, float]:
    """ln of the speed-up of each tree of both heads that a search over one of them may try."""
    return {**heads.grid(trees(), (OWN, OTHER)).speed_ups, **heads.grid(trees(OTHER), (OWN, OTHER)).speed_ups}
