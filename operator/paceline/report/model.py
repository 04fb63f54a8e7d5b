"""The report's content for runs: words and numbers, without their appearance."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from paceline.core import Bounds
from paceline.report.deployment_model import DeploymentView
from paceline.report.search_model import SearchView, Throughput
from paceline.report.time_model import TimeView

MEAN_OVER_WORKLOADS = "mean"
"""The workload name of the weighted mean in `status.results`."""
MEANS = (MEAN_OVER_WORKLOADS, "mean@rate")
"""Workload names of means. The second is the mean of workloads at a rate, in a run that has closed loops too."""

PROVISIONAL = "provisional"
"""Outcome of a candidate between two looks of the current run. Its bounds decide nothing."""


class Shown(StrEnum):
    """What an interval shows about its threshold."""

    KEPT = "kept"
    """The whole interval is on the right side."""
    BROKEN = "broken"
    """The whole interval is on the wrong side."""
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectView:
    """A candidate's ratio to the baseline on one workload, or the weighted mean over all (`MEAN`)."""

    workload: str
    bounds: Bounds
    threshold: float | None
    """None: nothing is required, and the comparison is with the baseline (a Sweep)."""
    shown: Shown
    tokens: Bounds | None = None
    """Ratio of the output tokens, if known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEffect:
    """Like EffectView, for a latency or a capacity that the gate limits. `bounds` is None if a round lacks it or there
    was no look; `workload` is empty for a metric of the server."""

    metric: str
    arm: str
    workload: str
    bounds: Bounds | None
    threshold: float
    shown: Shown
    at_least: bool = False
    """Whether the threshold is a minimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateView:
    name: str
    outcome: str
    """A `core.ArmOutcome`, or PROVISIONAL; empty before the first round."""
    reason: str
    effects: tuple[EffectView, ...]
    """The mean first, then every workload."""
    margin: float | None
    """The smallest difference from the baseline, as a fraction, that its rounds could have detected."""

    @property
    def mean(self) -> EffectView | None:
        return next((effect for effect in self.effects if effect.workload == MEAN_OVER_WORKLOADS), None)

    @property
    def worst(self) -> EffectView | None:
        """The workload with the worst ratio, if there are several."""
        workloads = [effect for effect in self.effects if effect.workload not in MEANS]
        return min(workloads, key=lambda effect: effect.bounds.ratio) if len(workloads) > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A metric of one arm on one workload, over the rounds in which it is valid. Times in seconds.

    `typical` is the geometric mean over rounds; `change` is that of the ratio to the baseline in the same rounds, less
    1, and None for the baseline.
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
    """For one arm's verify steps on one workload: the fraction that accepted each draft token, in order; the mean over
    the rounds in which the point is valid."""

    arm: str
    workload: str
    accepted: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Requests of one arm on one workload that met its slo, over all rounds. Rates are None if a round has no time."""

    arm: str
    workload: str
    slo: str
    """The slo in readable form."""
    good: int
    asked: int
    requests: float | None
    """Good requests per second."""
    tokens: float | None
    """Output tokens of good requests per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptsView:
    """A candidate's speed-ups by prompt on one workload: a tenth of the prompts has at most `worst`, half at most
    `median`, a tenth at least `best`; `slower` is the fraction slower than at the baseline."""

    arm: str
    workload: str
    worst: float
    median: float
    best: float
    slower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Tokens of one arm's prompts and answers on one workload: mean, median and 99th percentile."""

    arm: str
    workload: str
    prompt: tuple[float | None, float | None, float | None]
    answer: tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """Requests of one arm on one workload with prompts of at least `over` tokens: number over all rounds, output tokens
    per second of a request under way, its ratio to the baseline's in the same rounds, seconds to the first token, and
    output tokens per chunk; geometric means over rounds."""

    arm: str
    workload: str
    over: int
    requests: int
    speed: float | None
    ratio: float | None
    ttft: float | None
    tokens_per_chunk: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadView:
    """At one concurrency: output tokens per second of all requests per GPU of a server, and of one user after the first
    token (the inverse of the mean time per output token)."""

    concurrency: int
    per_gpu: float
    per_user: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TradeOff:
    """A dataset's loads by arm, in ascending order."""

    dataset: str
    lines: Mapping[str, tuple[LoadView, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsView:
    """One arm on one workload, summed over all rounds, used or not. None: no round reports it."""

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

    `speed` is output tokens per second: of all requests together, or of one running request at a rate or on a ramp.
    """

    round: int
    speed: float | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesView:
    """One arm on one workload over rounds; `typical` is the geometric mean of the valid ones."""

    arm: str
    workload: str
    typical: float | None
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicateView:
    """One server process: a row of the table of rounds. `arm` is empty if the whole round gave no result."""

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
    """One candidate on one dataset over concurrencies, in ascending order."""

    arm: str
    spots: tuple[CurvePoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossoverView:
    """The two concurrencies between which the baseline takes over, if it does."""

    sentence: str
    numbers: str
    """Open questions, and the best candidate at each concurrency."""
    between: tuple[int, int] | None
    curves: Mapping[str, tuple[Curve, ...]]
    """By dataset; with several datasets the weighted mean (`MEAN`) comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassView:
    """The fastest arm of a dataset beside the arm that it is least shown to be faster than."""

    dataset: str
    best: str
    """Empty if no arm is shown to be faster than every other one."""
    arm: str
    rival: str
    bounds: Bounds | None
    tree: Mapping[str, int]
    """The best arm's `numSteps`, `topK` and `numDraftTokens`; empty without a tree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOutputs:
    """A candidate's answers compared with the baseline's, over its rounds. `unknown`: why there is no comparison."""

    arm: str
    unknown: str
    rounds: int
    samples: int
    settled: int
    """Prompts for which the baseline's answer was the same in all rounds."""
    identical: int
    near_ties: int
    diverged: int
    first: int | None
    """The earliest token, counted from 0, at which an answer differed from the baseline's."""
    gap: float | None
    """Nats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsView:
    sentence: str
    """The comparison that was requested, or that none was."""
    arms: tuple[ArmOutputs, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceView:
    """One setting that differs between arms; `values` in the order of arms, empty if an arm has none."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationView:
    arms: tuple[str, ...]
    """The columns: the run's arms, or the best of a search."""
    asked: tuple[DifferenceView, ...]
    resolved: tuple[DifferenceView, ...]
    """Servers' own arguments that differ."""
    equal: tuple[tuple[str, str], ...]
    """Servers' own arguments that are equal."""
    unequal: tuple[str, ...]
    """Arguments that differ although the engine's table requires equal ones."""
    commands: tuple[tuple[str, tuple[str, ...]], ...]
    """Arm → argv as this release renders it; empty if it cannot read the spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostView:
    """`starting` and `measuring` are seconds of all replicates, from the servers' starts and the clients' loads."""

    gpu_seconds: int | None
    idle_gpu_seconds: int | None
    """GPU-seconds that were neither a server's start nor a measurement."""
    server_starts: int | None
    rounds: int
    starting: float
    measuring: float
    held: float
    """Seconds from start to end of all rounds, summed."""
    price: float | None = None
    """Of an accelerator per hour."""

    @property
    def floor_seconds(self) -> int | None:
        """GPU-seconds of the servers' starts and the clients' loads alone: the minimum cost of a run with these rounds
        and requests. None if either is not known."""
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
    """A `core.Outcome`; Found for a search with a result; Measuring or Ended without an outcome."""
    winner: str
    decision: str
    """The page's heading: Promote wide, Keep the baseline, Keep what serves, No decision, Error, No decision yet."""
    found: str
    """The basis of the decision, or why there is none."""
    advice: str
    """Further advice about the pool; empty if none."""
    speed_up: Bounds | None
    """The winner's speed-up over all workloads; without a winner, that of the only candidate."""
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
    """For workloads on which the engine reports positions."""
    deepest: Mapping[str, int]
    """Arm → the most tokens that one verify step can yield."""
    goodput: tuple[Goodput, ...]
    """For workloads with an slo."""
    prompts: tuple[PromptsView, ...]
    lengths: tuple[Lengths, ...]
    contexts: tuple[ContextView, ...]
    """For datasets with turns."""
    trade_offs: tuple[TradeOff, ...]
    """For datasets that were measured at several concurrencies."""
    over_loads: tuple[Throughput, ...]
    """For the same datasets: throughput over concurrency."""
    crossover: CrossoverView | None
    classes: tuple[ClassView, ...]
    search: SearchView | None
    """Set for a run with a search. Its arms are then the measured ones, best first."""
    speeds: Mapping[str, float]
    """Arm → output tokens per second as in the gate: the weighted geometric mean over workloads."""
    series: tuple[SeriesView, ...]
    replicates: tuple[ReplicateView, ...]
    unused: tuple[str, ...]
    """One sentence per measurement that the gate did not use."""
    notes: tuple[str, ...]
    noise: float | None
    """Noise of a point between rounds, as a fraction."""
    configuration: ConfigurationView
    cost: CostView
    time: TimeView | None
    """None if no round knows what its time went into."""
    provenance: tuple[tuple[str, str], ...]

    @property
    def sentence(self) -> str:
        """The decision and its basis."""
        return f"{'Emulated: ' if self.emulated else ''}{self.decision}: {self.found}"

    @property
    def asks(self) -> bool:
        """Whether intervals are compared with a gate's thresholds, not only with the baseline."""
        return all(effect.threshold is not None for candidate in self.candidates for effect in candidate.effects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    title: str
    paceline: str
    """Version of Paceline that wrote it."""
    runs: tuple[RunView, ...]
    deployments: tuple[DeploymentView, ...] = ()
    """The deployments, and the runs that are their evidence."""

    @property
    def emulated(self) -> bool:
        return any(run.emulated for run in self.runs) or any(one.emulated for one in self.deployments)
