"""A search's question, its measured points, and its result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from paceline.core import BASELINE, Bounds, Tree
from paceline.search.belief import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An arm that may be measured. `tree` is None for the baseline and for arms whose depth the engine chooses: no
    model ranks them, so they are always measured."""

    name: str
    tree: Tree | None = None
    draft_tokens: int = 0
    """Maximum draft tokens per verify step; of equally fast options, the one with fewer wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Maximum measurements in total; None: no limit."""

    points: int | None = None
    starts: int | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """One pool at one load: which option has the highest mean speed, weighted over the workloads?

    Raises ValueError, naming the argument, without a baseline, for a duplicate name, or without weights.
    """

    options: tuple[Option, ...]
    workloads: Mapping[str, float]
    """Name → weight."""
    limits: Limits = Limits()
    floor: float = 0.005
    """Smaller differences of the mean, in ln, are ties; the noise of a point is taken to be at least this."""
    mixed: bool = False
    """The workloads have several concurrencies, so step times differ between them."""
    doubts: Mapping[str, float] = field(default_factory=dict)
    """Option → bonus in ln on its estimate until it is measured, so that a wrong ranking is found out."""

    def __post_init__(self) -> None:
        names = [option.name for option in self.options]
        if BASELINE not in names:
            raise ValueError(f"options: needs the {BASELINE}")
        if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
            raise ValueError(f"options: {twice} is given twice; keep one")
        if not self.workloads or not all(weight > 0 for weight in self.workloads.values()):
            raise ValueError("workloads: needs at least one, each with a weight above 0")

    @cached_property
    def names(self) -> list[str]:
        return [option.name for option in self.options]

    @cached_property
    def loads(self) -> list[str]:
        return list(self.workloads)

    @cached_property
    def weights(self) -> Array:
        """Weights of the workloads; their sum is 1."""
        weights = np.array(list(self.workloads.values()), dtype=np.float64)
        return np.asarray(weights / weights.sum())

    @cached_property
    def tree_rows(self) -> list[int]:
        """Rows of the options that have a tree."""
        return [i for i, option in enumerate(self.options) if option.tree]

    @cached_property
    def shapes(self) -> tuple[Tree, ...]:
        """The trees of `tree_rows`."""
        return tuple(option.tree for option in self.options if option.tree)

    @cached_property
    def baseline(self) -> int:
        return self.names.index(BASELINE)

    @cached_property
    def doubt(self) -> Array:
        return np.array([self.doubts.get(name, 0.0) for name in self.names])

    def row(self, tree: Tree) -> int | None:
        """Row of the option with this tree."""
        return next((i for i in self.tree_rows if self.options[i].tree == tree), None)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ArmOnWorkload:
    """An arm on a workload."""

    arm: str
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One measured cell of a round, counted from 0. Without a throughput it is an error: the server ended, or the point
    was invalid. Rounds below 0 come from another pool's search that measured the same workloads."""

    round: int
    cell: ArmOnWorkload
    throughput: float | None = None
    """Output tokens per second."""
    accept_length: float | None = None
    """None if the engine does not report it."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Measure these cells next: one server start for each of their arms."""

    round: int
    cells: tuple[ArmOnWorkload, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The search has ended. Search scores are optimistic, so the winner goes to a gate with new prompts."""

    winner: str | None
    """None if nothing could be measured."""
    speed_up: Bounds | None = None
    """Speed-up of a tree over the baseline, on `measured_on`; None for the baseline itself."""
    measured_on: tuple[str, ...] = ()
    """Workloads on which both were measured: only two if the baseline was slower on both."""
    complete: bool = True
    """False if the budget ended the search."""
    notes: tuple[str, ...] = ()
    """For readers: budget, failures, contradictory points."""


NextStep = Measure | Found
