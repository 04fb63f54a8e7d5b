"""What a report says of runs: words and numbers, nothing yet of how they look."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from paceline.core import Bounds
from paceline.report.deployment_model import DeploymentView
from paceline.report.search_model import SearchView, Throughput

MEAN_OVER_WORKLOADS = "mean"
"""The workload that `status.results` calls the weighted mean by."""
MEANS = (MEAN_OVER_WORKLOADS, "mean@rate")
"""And, second, that of what arrives at a rate, where there are closed loops besides."""

PROVISIONAL = "provisional"
"""Outcome of a candidate between two looks of a run under way. Its bounds decide nothing."""


class Shown(StrEnum):
    """What an interval shows of the threshold that it is held against."""

    KEPT = "kept"
    """The whole interval is on the right side."""
    BROKEN = "broken"
    """The whole interval is on the wrong side."""
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectView:
    """A candidate over the baseline on one workload, or on all by weight (`MEAN`)."""

    workload: str
    bounds: Bounds
    threshold: float | None
    """None: nothing is asked, and it is held against the baseline (a Sweep)."""
    shown: Shown
    tokens: Bounds | None = None
    """Of the output tokens, where they are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEffect:
    """As Effect, of a latency or a capacity that the gate limits. `bounds` is None where a round lacks it or there was
    no look; `workload` is empty where it is of the server."""

    metric: str
    arm: str
    workload: str
    bounds: Bounds | None
    threshold: float
    shown: Shown
    at_least: bool = False
    """The threshold is not to be gone below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    name: str
    outcome: str
    """As `core.ArmOutcome`, or PROVISIONAL; empty before the first round."""
    reason: str
    effects: tuple[EffectView, ...]
    """The mean first, then every workload."""
    margin: float | None
    """The difference from the baseline, as a fraction, that its rounds could just not have told from none."""

    @property
    def mean(self) -> EffectView | None:
        return next((effect for effect in self.effects if effect.workload == MEAN_OVER_WORKLOADS), None)

    @property
    def worst(self) -> EffectView | None:
        """Of its workloads, where there are several."""
        workloads = [effect for effect in self.effects if effect.workload not in MEANS]
        return min(workloads, key=lambda effect: effect.bounds.ratio) if len(workloads) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A metric of one arm on one workload, over the rounds in which it is valid. Times in seconds.

    `typical` is the geometric mean over rounds; `change` is that of the ratio to the baseline in the same rounds,
    less 1, and None for the baseline.
    """

    metric: str
    arm: str
    workload: str
    typical: float
    least: float
    most: float
    rounds: int
    change: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """Of one arm's verify steps on one workload: the fraction that accepted each draft token, the first one first; the
    mean over the rounds in which the point is valid."""

    arm: str
    workload: str
    accepted: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Requests of one arm on one workload that met its slo, over all rounds. Per second: None where a round has
    no time."""

    arm: str
    workload: str
    slo: str
    """As people read it."""
    good: int
    asked: int
    requests: float | None
    """Per second."""
    tokens: float | None
    """Output tokens of good requests per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptsView:
    """A candidate's speed-ups prompt by prompt on one workload: a tenth of the prompts has at most `worst`, half at
    most `median`, a tenth at least `best`; `slower` is the fraction that was slower than at the baseline."""

    arm: str
    workload: str
    worst: float
    median: float
    best: float
    slower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of what one arm was sent and answered on one workload: mean, median and 99th percentile."""

    arm: str
    workload: str
    prompt: tuple[float | None, float | None, float | None]
    answer: tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadView:
    """At one concurrency: output tokens per second of all requests over the GPUs of a server, and of one user after the
    first token (the inverse of the mean time per output token)."""

    concurrency: int
    per_gpu: float
    per_user: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """A dataset's loads by arm, rising."""

    dataset: str
    lines: Mapping[str, tuple[LoadView, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsView:
    """One arm on one workload, added up over all rounds, used or not. None: no round tells it."""

    arm: str
    workload: str
    rounds: int
    asked: int | None
    completed: int | None
    errors: int | None
    retractions: int | None
    output_tokens: int | None
    verify_calls: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """One point of one round. `why` is empty if and only if the gate may use it.

    `speed` is output tokens per second: of all requests together, or of one under way where they arrive at a rate
    or are on a ramp.
    """

    round: int
    speed: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """One arm on one workload over rounds; `typical` is the geometric mean of what is valid."""

    arm: str
    workload: str
    typical: float | None
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateView:
    """One server process: a row of the table of rounds. `arm` is empty where the whole round gave no result."""

    round: int
    attempt: int
    arm: str
    start_seconds: float | None
    dots: tuple[Dot, ...]
    """In the order of the run's workloads."""
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    concurrency: int
    bounds: Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One candidate on one dataset over concurrencies, rising."""

    arm: str
    spots: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossoverView:
    """Between which two concurrencies the baseline takes over, if it does."""

    sentence: str
    numbers: str
    """What is open, and the best candidate at each concurrency."""
    between: tuple[int, int] | None
    curves: Mapping[str, tuple[Curve, ...]]
    """By dataset; of several datasets the weighted mean (`MEAN`) comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutputs:
    """A candidate's answers against the baseline's, over its rounds. `unknown`: why there is nothing to say."""

    arm: str
    unknown: str
    rounds: int
    samples: int
    settled: int
    """Prompts that the baseline answered alike in all rounds."""
    identical: int
    near_ties: int
    diverged: int
    first: int | None
    """The earliest token, counted from 0, at which an answer left the baseline's."""
    gap: float | None
    """Nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsView:
    sentence: str
    """What was asked, or that nothing was."""
    arms: tuple[ArmOutputs, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceView:
    """One line of what is not the same on all arms; `values` in the order of arms, empty where an arm has none."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationView:
    arms: tuple[str, ...]
    """The columns: the arms of the run, or of a search the best of them."""
    asked: tuple[DifferenceView, ...]
    resolved: tuple[DifferenceView, ...]
    """Of the servers' own arguments, those that differ."""
    equal: tuple[tuple[str, str], ...]
    """Those that do not."""
    unequal: tuple[str, ...]
    """Those that differ although the engine's table asks for equal ones."""
    commands: tuple[tuple[str, tuple[str, ...]], ...]
    """Arm → argv as this release renders it; empty if it cannot read the spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostView:
    """`starting` and `measuring` are seconds of all replicates, from the servers' starts and the clients' loads."""

    gpu_seconds: int | None
    idle_gpu_seconds: int | None
    """Of these, neither a server's start nor a measurement."""
    server_starts: int | None
    rounds: int
    starting: float
    measuring: float
    held: float
    """Seconds from start to end of all rounds."""

    @property
    def floor_seconds(self) -> int | None:
        """GPU-seconds of the servers' starts and of the clients' loads alone: with the same rounds and requests no run
        costs less. None if one of the two above is not known."""
        if self.gpu_seconds is None or self.idle_gpu_seconds is None:
            return None
        return self.gpu_seconds - self.idle_gpu_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    name: str
    namespace: str
    pool: str
    served_name: str
    outcome: str
    """As `core.Outcome`; Found for a search that has found something; Measuring or Ended where there is none."""
    winner: str
    decision: str
    """The page's heading: Promote wide, Keep the baseline, No decision, Error, No decision yet."""
    found: str
    """What the decision rests on, or why there is none."""
    advice: str
    """What to do about the pool besides; empty if nothing."""
    speed_up: Bounds | None
    """The winner's, else the only candidate's, over all workloads."""
    emulated: bool
    asked: str
    """The gate's rule in a sentence."""
    arms: tuple[str, ...]
    workloads: tuple[str, ...]
    candidates: tuple[CandidateView, ...]
    limits: tuple[LimitEffect, ...]
    outputs: OutputsView
    values: tuple[Value, ...]
    counts: tuple[CountsView, ...]
    positions: tuple[Positions, ...]
    """Of what the engine tells it of."""
    deepest: Mapping[str, int]
    """Arm → the most tokens that one verify step of it can give."""
    goodput: tuple[Goodput, ...]
    """Of workloads with an slo."""
    prompts: tuple[PromptsView, ...]
    lengths: tuple[Lengths, ...]
    trade_offs: tuple[TradeOff, ...]
    """Of datasets that were measured at several concurrencies."""
    over_loads: tuple[Throughput, ...]
    """Of the same."""
    crossover: CrossoverView | None
    search: SearchView | None
    """Set for a run that searches. Its arms are then those that were measured, the best first."""
    speeds: Mapping[str, float]
    """Arm → output tokens per second, as the gate compares them: the geometric mean over workloads, by weight."""
    series: tuple[SeriesView, ...]
    replicates: tuple[ReplicateView, ...]
    unused: tuple[str, ...]
    """A sentence for each measurement that the gate did not use."""
    notes: tuple[str, ...]
    noise: float | None
    """Of a point between rounds, as a fraction."""
    configuration: ConfigurationView
    cost: CostView
    provenance: tuple[tuple[str, str], ...]

    @property
    def sentence(self) -> str:
        """The decision and what it rests on."""
        return f"{'Emulated: ' if self.emulated else ''}{self.decision}: {self.found}"

    @property
    def asks(self) -> bool:
        """Intervals are held against what a gate asks for, not against the baseline alone."""
        return all(effect.threshold is not None for candidate in self.candidates for effect in candidate.effects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    title: str
    paceline: str
    """Version of what wrote it."""
    runs: tuple[RunView, ...]
    deployments: tuple[DeploymentView, ...] = ()
    """What is served, on the evidence of which of the runs."""

    @property
    def emulated(self) -> bool:
        return any(run.emulated for run in self.runs) or any(one.emulated for one in self.deployments)
