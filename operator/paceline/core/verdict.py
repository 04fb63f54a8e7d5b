"""The gate's input and output types."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from paceline.core.model import model
from paceline.core.types import Percentage, PercentageBelow100


class Outcome(StrEnum):
    """The outcome of a run. Error is a failure to measure and says nothing about the candidates."""

    PROMOTE = "Promote"
    REJECT = "Reject"
    INCONCLUSIVE = "Inconclusive"
    ERROR = "Error"


@model
class Limit:
    """A bound on a metric other than throughput."""

    metric: Literal[
        "meanTTFT", "p95TTFT", "meanTPOT", "p95TPOT", "p99ITL", "meanE2E", "p95E2E", "kvTokens", "retractions"
    ]
    """Metric: a latency, kvTokens (capacity of the KV cache in tokens), or retractions (requests of a workload that a
    server takes back when memory runs out)."""
    max_increase: Percentage | None = None
    """How far a latency may exceed the baseline's. Where requests arrive at a rate and neither meanTTFT nor p95TTFT is
    listed, meanTTFT may rise by 25%."""
    max_decrease: PercentageBelow100 | None = None
    """How far kvTokens may fall below the baseline's."""
    max: Annotated[int, Field(ge=0, le=100000)] | None = None
    """Retractions allowed on any arm; 0 if retractions is not listed. A server with more fails its round; a second such
    round makes a candidate Unreliable."""


def default_looks(arms: int) -> tuple[int, ...]:
    """The default numbers of rounds after which the gate decides, for this number of arms, including the baseline.

    Every round starts with another arm, so after a multiple of the number of arms each was first equally often: with
    two, three, four or eight arms no look is biased by the first place (0024). With other numbers a full cycle would
    cost too much; each arm is first once or twice in eight rounds.
    """
    return {2: (4, 6, 8), 3: (3, 6, 9)}.get(arms, (4, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The rule from rounds to a verdict; improvement and tolerance are fractions of the baseline."""

    min_improvement: float = 0.05
    max_regression: float = 0.03
    confidence: float = 0.95
    variance_floor: float = 0.002
    limits: tuple[Limit, ...] = ()
    decide_after_rounds: tuple[int, ...] = default_looks(2)

    @property
    def retractions(self) -> int:
        """The number allowed on any arm."""
        return next((limit.max or 0 for limit in self.limits if limit.metric == "retractions"), 0)


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
    rounds: int = 0
    last: bool = False
    """Whether this was the last look: more rounds change nothing."""
    lost: str = field(default="", compare=False)
    """How many rounds were lost and why, as a sentence; "" if none was. It is not part of the verdict: lost rounds
    decide `Unreliable` only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`rounds` is the number of rounds at the deciding look (0 if none); `arms` has every candidate."""

    outcome: Outcome
    winner: str | None
    rounds: int
    arms: Mapping[str, ArmVerdict]
    final: bool = True
    """False while more rounds could change the outcome."""
