"""What the gate judges, and its verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a run. Error is a failure to measure and says nothing about the candidates."""

    PROMOTE = "Promote"
    REJECT = "Reject"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One arm on one workload in one round. `output_throughput` is in output tokens per second: over the steady window
    in a closed loop (0025), per running request at a request rate (0014)."""

    round: int
    arm: str
    workload: str
    output_throughput: float | None
    valid: bool = True
    nothing_accepted: bool = False
    """The candidate's acceptance length is at most 1.005 over at least 100 verify calls."""
    ended: str = ""
    """Why this arm's own server failed in the round (`ServerCrashed`); "" if it did not, or if the reason is unknown.
    For a candidate only reasons that blame its server; such a round is evidence about the server, not about speed."""
    saturated: bool = False
    """At a request rate: this arm did not sustain it. If the baseline did not, a speed-up depends on the length of the
    measurement; a candidate that misses a rate that the baseline sustains is rejected."""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Ratio of candidate to baseline: the geometric mean and its one-sided confidence bounds."""

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
    """Bounds are from the deciding look, or else from the last one; None if there was no look."""

    outcome: ArmOutcome
    reason: str
    message: str = ""
    """The reason as a sentence with its numbers."""
    mean: Bounds | None = None
    """Weighted over workloads; if there are closed loops, over these only."""
    rated: Bounds | None = None
    """Weighted over workloads at a rate, if there are closed loops too: the two are never averaged (0014)."""
    workloads: Mapping[str, Bounds] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, Bounds]] = field(default_factory=dict)
    """Metric → workload ("" for a metric of the server) → bounds of its ratio to the baseline."""
    lengths: Mapping[str, Bounds] = field(default_factory=dict)
    """Workload → bounds of its output tokens as a ratio to the baseline; absent if a round did not count them."""
    margin: float | None = None
    """Half-width of the mean's interval, as a fraction: the smallest difference from 1x that these rounds could have
    detected at their noise. It is computed, not measured: no round compares the baseline with itself."""
    incumbent: Bounds | None = None
    """The mean's ratio to the incumbent, of the look that compared them last; None without an incumbent."""
    rounds: int = 0
    last: bool = False
    """Whether this was the last look: more rounds change nothing."""
    lost: str = field(default="", compare=False)
    """How many rounds were lost and why, as a sentence; "" if none was. It is not part of the verdict: lost rounds
    decide `Unreliable` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`rounds` is the number of rounds at the deciding look (0 if none); `arms` has every candidate, and in a run with
    an incumbent the baseline: whether it may replace that; `winner` may then be the baseline. It has the incumbent only
    if that is rejected as unreliable."""

    outcome: Outcome
    winner: str | None
    rounds: int
    arms: Mapping[str, ArmVerdict]
    final: bool = True
    """False while more rounds could change the outcome."""
