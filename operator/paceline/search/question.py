"""What is searched, what was measured, and what the search answers."""

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
    """Of a verify step, at most: of equals the one with fewer wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be measured in all; None is no limit."""

    points: int | None = None
    starts: int | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """One pool at one load: which option has the highest mean speed, weighted over the workloads?

    Raises ValueError, naming the argument, if it has no baseline, a name twice, or no weight.
    """

    options: tuple[Option, ...]
    workloads: Mapping[str, float]
    """Name → weight."""
    limits: Limits = Limits()
    floor: float = 0.005
    """Smaller differences of the mean, in ln, are ties; no deviation of a point is believed to be smaller."""
    mixed: bool = False
    """The workloads are of several concurrencies: step times differ from one to the next."""
    doubts: Mapping[str, float] = field(default_factory=dict)
    """Option → what is added to the guess at it until it is measured, in ln: how a ranking that is wrong is tried."""

    def __post_init__(self) -> None:
        names = [option.name for option in self.options]
        if BASELINE not in names:
            raise ValueError(f"options: needs the {BASELINE}")
        if twice := next((name for i, name in enumerate(names) if name in names[:i]), None):
            raise ValueError(f"options: {twice} is there twice; keep one")
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
        """Of the workloads; their sum is 1."""
        weights = np.array(list(self.workloads.values()), dtype=np.float64)
        return np.asarray(weights / weights.sum())

    @cached_property
    def tree_rows(self) -> list[int]:
        """Options that have a tree, by their place."""
        return [i for i, option in enumerate(self.options) if option.tree]

    @cached_property
    def shapes(self) -> tuple[Tree, ...]:
        """Their trees."""
        return tuple(option.tree for option in self.options if option.tree)

    @cached_property
    def baseline(self) -> int:
        return self.names.index(BASELINE)

    @cached_property
    def doubt(self) -> Array:
        return np.array([self.doubts.get(name, 0.0) for name in self.names])

    def row(self, tree: Tree) -> int | None:
        """Place of the option with this tree."""
        return next((i for i in self.tree_rows if self.options[i].tree == tree), None)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ArmOnWorkload:
    """An arm on a workload."""

    arm: str
    workload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One measured cell of a round, counted from 0. Without a throughput it is an error: the server ended, or the point
    was not valid. Rounds below 0 are of another pool's search, which has measured this one's workloads too."""

    round: int
    cell: ArmOnWorkload
    throughput: float | None = None
    """Output tokens per second."""
    accept_length: float | None = None
    """None where the engine does not tell."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Measure these cells next: one server start for each arm among them."""

    round: int
    cells: tuple[ArmOnWorkload, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The search has ended. Search scores are optimistic: the winner goes to a gate, on fresh prompts."""

    winner: str | None
    """None if nothing could be measured."""
    speed_up: Bounds | None = None
    """Of a tree over the baseline, on `measured_on`; None for the baseline itself."""
    measured_on: tuple[str, ...] = ()
    """Workloads on which both were measured: two where the baseline was slower on every one of those."""
    complete: bool = True
    """False if the budget ended it."""
    notes: tuple[str, ...] = ()
    """What a reader must know: budget, failures, points that do not fit each other."""


NextStep = Measure | Found
