"""What a report says of two runs of one question."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from paceline.core import Bounds


class Moved(StrEnum):
    """What an interval shows of a change."""

    ROSE = "rose"
    FELL = "fell"
    OPEN = "no change shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs."""

    run: str
    namespace: str
    label: str
    """What tells it from the other in a table: the release, the image or the name."""
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """A candidate on one workload, or on all by weight: in either run, and the second over the first."""

    arm: str
    workload: str
    first: Bounds | None
    second: Bounds | None
    change: Bounds | None
    """None where one of the runs has fewer than two complete rounds of the arm."""
    moved: Moved
    rounds: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Output tokens per second in one run, over its valid rounds."""

    typical: float
    least: float
    most: float
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsoluteRow:
    """An arm on one workload in either run. There is no difference between the two: they were not measured together."""

    arm: str
    workload: str
    first: Speed | None
    second: Speed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs:
    """A fact that is not the same of both runs; empty where one does not have it."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    first: Side
    """The earlier one, that the other is held against."""
    second: Side
    emulated: bool
    confidence: float
    """That all rows of `speed_ups` and `acceptance` hold together."""
    arms: tuple[str, ...]
    moved: Mapping[str, Moved]
    """Candidate → whether its speed-up over all workloads changed."""
    heading: str
    """wide's speed-up fell from 1.29x to 1.10x."""
    sentence: str
    speed_ups: tuple[ChangeRow, ...]
    acceptance: tuple[ChangeRow, ...]
    absolute: tuple[AbsoluteRow, ...]
    differs: tuple[Differs, ...]
    """Of where and how they were measured."""
    resolved: tuple[Differs, ...]
    """Of what the servers said they run with, arm by arm."""
