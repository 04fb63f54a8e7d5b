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
    """A metric other than throughput that may not get much worse. One of the three bounds is given.

    `maximum_increase` and `maximum_decrease` are fractions of the baseline's; `maximum` is a count that no point may
    exceed, the baseline's included: one that does is no measurement, and its server one that ended (`Measurement`).
    """

    metric: str
    maximum_increase: float | None = None
    maximum_decrease: float | None = None
    maximum: int | None = None
    at_a_rate: bool = False
    """On workloads at a rate alone."""


def default_looks(arms: int) -> tuple[int, ...]:
    """After how many rounds the gate is asked where nobody says, of so many arms, the baseline included.

    Every round begins with another arm, so each has been first equally often after a multiple of their number: an
    effect of the first place is in no look of two, three, four or eight arms (0024). A whole turn of more is not to be
    afforded; each of those is first once or twice in eight rounds.
    """
    return {2: (4, 6, 8), 3: (3, 6, 9)}.get(arms, (4, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The rule from rounds to a verdict; all but `confidence` are fractions of the baseline."""

    minimum_improvement: float = 0.05
    regression_tolerance: float = 0.03
    confidence: float = 0.95
    variance_floor: float = 0.002
    limits: tuple[Limit, ...] = ()
    decide_after_rounds: tuple[int, ...] = default_looks(2)


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
    ended: str = ""
    """Why this arm's own server did not get through the round (`ServerCrashed`); "": it did, or nobody knows. Of a
    candidate only what blames its server; such a round is no evidence of speed, but of that server."""
    saturated: bool = False
    """At a rate: this arm did not keep it. Of the baseline, how much faster another one is depends then on how long one
    measures; a candidate that does not keep what the baseline keeps is out for that."""
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
    """Over workloads, by weight; over closed loops alone where there are some."""
    rated: Bounds | None = None
    """The mean over workloads at a rate, where there are closed loops besides: the two are never averaged (0014)."""
    workloads: Mapping[str, Bounds] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, Bounds]] = field(default_factory=dict)
    """Metric → workload → bounds of its ratio; the workload is "" where the metric is of the server."""
    lengths: Mapping[str, Bounds] = field(default_factory=dict)
    """Workload → bounds of its output tokens over the baseline's; without a workload of which some round knows none."""
    margin: float | None = None
    """Half of the mean's interval, a fraction: the difference from 1x that these rounds, at their own noise, could just
    not have told from none. Reckoned, not measured: no round compares the baseline with itself."""
    rounds: int = 0
    last: bool = False
    """Of the last look there is: more rounds change nothing."""
    lost: str = field(default="", compare=False)
    """How many of its rounds were no evidence and for what, in a sentence; "" if none was lost. No part of the verdict:
    what was lost decides nothing but `Unreliable`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`rounds` is the number used at the deciding look, 0 if there was none; `arms` has every candidate."""

    outcome: Outcome
    winner: str | None
    rounds: int
    arms: Mapping[str, ArmVerdict]
    final: bool = True
    """False while more rounds could still change the outcome."""
