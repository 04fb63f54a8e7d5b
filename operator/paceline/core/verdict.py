"""From numbers to an outcome: the words the gate reads and writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """What a run came to. Never mixed up: Error says nothing about the candidate."""

    PROMOTE = "Promote"
    REJECT = "Reject"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A metric other than throughput that may rise by at most this fraction."""

    metric: str
    maximum_increase: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The rule from rounds to a verdict; all but `confidence` are fractions of the baseline."""

    minimum_improvement: float = 0.05
    regression_tolerance: float = 0.03
    confidence: float = 0.95
    variance_floor: float = 0.002
    limits: tuple[Limit, ...] = ()
    decide_after_rounds: tuple[int, ...] = (3, 5, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One arm on one workload in one round. `output_throughput` is output tokens per second, of a closed loop in its
    steady window (0025), at a rate of a request under way (0014)."""

    round: int
    arm: str
    workload: str
    output_throughput: float | None
    valid: bool = True
    nothing_accepted: bool = False
    """A candidate of acceptance length ≤ 1.005 over at least 100 verify calls."""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Candidate over baseline: the geometric mean ratio and its one-sided confidence bounds."""

    ratio: float
    lower: float
    upper: float


class ArmOutcome(StrEnum):
    PROMOTABLE = "promotable"
    REJECTED = "rejected"
    UNDECIDED = "undecided"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmVerdict:
    """Bounds are of the look that decided, or of the last one; None where no look was possible."""

    outcome: ArmOutcome
    reason: str
    message: str = ""
    """The reason in a sentence, with its numbers."""
    mean: Bounds | None = None
    workloads: Mapping[str, Bounds] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, Bounds]] = field(default_factory=dict)
    """Metric → workload → bounds of its ratio."""
    aa_floor: float | None = None
    """The A/A floor of these rounds, a fraction: the difference of the mean from 1x that they could just not have told
    from none, at their own noise. An arm against itself would show one this large as often as a bound may fail."""
    rounds: int = 0
    last: bool = False
    """Of the last look there is: more rounds change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`rounds` is the number used at the deciding look, 0 if there was none; `arms` has every candidate."""

    outcome: Outcome
    winner: str | None
    rounds: int
    arms: Mapping[str, ArmVerdict]
    final: bool = True
    """False while more rounds could still change the outcome."""
