"""The search on a table of measurements: what it would have measured, and how far from the best it would have ended.

A replay drives the state machine that the operator will drive, and answers each cell with the table's throughput times
log-normal noise.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.core import BASELINE, Tree
from paceline.engines.grid import distinct
from paceline.search.question import ArmOnWorkload, Found, Limits, Observation, Option, Question
from paceline.search.steps import proceed

UNLIMITED = Limits()
FIELDS = ("numSteps", "topK", "numDraftTokens")
MOST = {"numSteps": 64, "topK": 64, "numDraftTokens": 512}
"""As in the API."""
SLOWEST, FASTEST = 1e-6, 1e9
"""Tokens per second, as in `paceline gate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table: what each arm gives on each workload."""

    trees: Mapping[str, Tree]
    """By name, in the order of the table."""
    searched: tuple[str, ...]
    """Those that are worth a measurement."""
    throughput: Mapping[ArmOnWorkload, float | None]
    """None: the server failed there."""
    lengths: Mapping[ArmOnWorkload, float | None]
    workloads: tuple[str, ...]
    notes: tuple[str, ...]
    """What was left out before anything was measured."""

    @property
    def speed_ups(self) -> dict[str, float]:
        """ln of the geometric mean over the workloads, of every arm that has them all."""
        found = {BASELINE: 0.0}
        for name in self.trees:
            speeds = [self.throughput[ArmOnWorkload(arm=name, workload=w)] for w in self.workloads]
            if all(speeds):
                logs = [
                    math.log(speed or 1) - math.log(self.throughput[ArmOnWorkload(arm=BASELINE, workload=w)] or 1)
                    for w, speed in zip(self.workloads, speeds, strict=True)
                ]
                found[name] = math.fsum(logs) / len(logs)
        return found

    def question(self, limits: Limits = UNLIMITED, doubts: Mapping[str, float] | None = None) -> Question:
        options = [
            Option(name=name, tree=self.trees[name], draft_tokens=self.trees[name].num_draft_tokens)
            for name in self.searched
        ]
        return Question(
            options=(Option(name=BASELINE), *options),
            workloads=dict.fromkeys(self.workloads, 1.0),
            limits=limits,
            doubts=doubts or {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One search on a table."""

    found: Found
    points: tuple[Observation, ...]
    regret: float
    starts: int = field(default=0)


def replay(
    grid: Grid, cv: float, seed: int, limits: Limits = UNLIMITED, doubts: Mapping[str, float] | None = None
) -> Replayed:
    """`cv`: coefficient of variation of the noise; its median is 1. The same seed gives the same points."""
    question, points = grid.question(limits, doubts), list[Observation]()
    while not isinstance(step := proceed(question, points), Found):
        points += (measured(grid, cell, step.round, cv, seed) for cell in step.cells)
    return Replayed(
        found=step,
        points=tuple(points),
        regret=regret(grid.speed_ups, step.winner or BASELINE),
        starts=len({(point.round, point.cell.arm) for point in points}),
    )


def regret(speed_ups: Mapping[str, float], winner: str) -> float:
    """1 − the winner's mean speed-up over the best; an arm that has none is worth the baseline."""
    return 1 - math.exp(speed_ups.get(winner, 0.0) - max(speed_ups.values()))


def measured(grid: Grid, cell: ArmOnWorkload, number: int, cv: float, seed: int) -> Observation:
    """Each cell of each round has noise of its own, whatever else is measured."""
    throughput = grid.throughput[cell]
    if throughput is None:
        return Observation(round=number, cell=cell, error="the table has no throughput")
    deviation = math.sqrt(math.log1p(cv * cv))
    noise = random.Random(f"{seed}/{number}/{cell.arm}/{cell.workload}").gauss(0.0, deviation)
    return Observation(
        round=number, cell=cell, throughput=throughput * math.exp(noise), accept_length=grid.lengths.get(cell)
    )


def grid(table: Any) -> Grid:
    """Of a parsed JSON document. ValueError names the field that is wrong, and the way out."""
    if not isinstance(table, dict):
        raise ValueError('an object is expected: {"baseline": {...}, "trees": [...]}')
    if unknown := sorted(table.keys() - {"baseline", "trees"}):
        raise ValueError(f"{unknown[0]}: unknown field; there are baseline and trees")
    baseline, rows = table.get("baseline"), table.get("trees")
    if not isinstance(baseline, dict) or not baseline:
        raise ValueError("baseline: tokens per second of at least one workload are expected: {WORKLOAD: 171.3}")
    if not isinstance(rows, list) or not rows:
        raise ValueError("trees: a list of at least one tree is expected")
    throughput: dict[ArmOnWorkload, float | None] = {
        ArmOnWorkload(arm=BASELINE, workload=w): _speed(value, f"baseline.{w}") for w, value in baseline.items()
    }
    shapes = [_tree(row, f"trees[{i}]") for i, row in enumerate(rows)]
    names = [f"({tree.num_steps}, {tree.top_k}, {tree.num_draft_tokens})" for tree in shapes]
    for i, name in enumerate(names):
        if (first := names.index(name)) < i:
            raise ValueError(f"trees[{i}]: the same tree as trees[{first}], {name}; keep one")
    lengths: dict[ArmOnWorkload, float | None] = {}
    notes: list[str] = []
    for i, (name, tree, row) in enumerate(zip(names, shapes, rows, strict=True)):
        for workload, point in _points(row, tuple(baseline), f"trees[{i}].points"):
            cell, where = ArmOnWorkload(arm=name, workload=workload), f"trees[{i}].points.{workload}"
            throughput[cell] = (
                None if point["throughput"] is None else _speed(point["throughput"], f"{where}.throughput")
            )
            lengths[cell] = _length(point.get("acceptLength"), tree, f"{where}.acceptLength", notes)
    kept, left_out = distinct(shapes)
    notes += [f"trees[{i}]: {names[i]} {reason}; it is not measured" for i, reason in left_out.items()]
    return Grid(
        trees=dict(zip(names, shapes, strict=True)),
        searched=tuple(names[i] for i in kept),
        throughput=throughput,
        lengths=lengths,
        workloads=tuple(baseline),
        notes=tuple(notes),
    )


def _tree(row: Any, where: str) -> Tree:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: an object is expected")
    if unknown := sorted(row.keys() - {*FIELDS, "points"}):
        raise ValueError(f"{where}.{unknown[0]}: unknown field; there are {', '.join(FIELDS)} and points")
    for name in FIELDS:
        value = row.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST[name]:
            raise ValueError(f"{where}.{name}: a whole number from 1 to {MOST[name]} is expected; found {value!r:.80}")
    return Tree(num_steps=row["numSteps"], top_k=row["topK"], num_draft_tokens=row["numDraftTokens"])


def _points(row: Mapping[str, Any], workloads: Sequence[str], where: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    points = row.get("points")
    if not isinstance(points, dict):
        raise ValueError(f"{where}: an object is expected: {{WORKLOAD: {{...}}}}")
    if unknown := [name for name in points if name not in workloads]:
        raise ValueError(f"{where}.{unknown[0]}: no such workload in baseline; there are {', '.join(workloads)}")
    for workload in workloads:
        point = points.get(workload)
        if not isinstance(point, dict) or "throughput" not in point:
            raise ValueError(
                f"{where}.{workload}.throughput: missing; write null if the server failed there, or leave the workload "
                "out of every tree"
            )
        yield workload, point


def _speed(value: Any, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and SLOWEST <= value <= FASTEST:
        return float(value)
    expected = f"tokens per second from {SLOWEST:g} to {FASTEST:g} are expected"
    raise ValueError(f"{where:.200}: {expected}; found {value!r:.80}")


def _length(value: Any, tree: Tree, where: str, notes: list[str]) -> float | None:
    """A length that no server can have is not believed, and said."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= FASTEST:
        raise ValueError(f"{where}: tokens per step are expected, or null if they are not known; found {value!r:.80}")
    most = min(tree.num_steps + 1, tree.num_draft_tokens)
    if 1 <= value <= most * 1.001:
        return float(value)
    notes.append(f"{where}: a step of this tree gives 1 to {most} tokens, not {value:g}; the length is not used")
    return None
