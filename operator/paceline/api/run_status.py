"""The status of a BenchmarkRun: its progress, what its rounds show, and its verdict."""

from dataclasses import field
from typing import Annotated

from pydantic import Field

from paceline.api.status import Conditions, CountMap, LongName, LongText, Strings, Time
from paceline.core.record import ALWAYS, INTERNAL, Count, Number, Number2, Number3, Number4, Number5, record
from paceline.core.types import Arguments

__all__ = [
    "ArmParity",
    "BenchmarkRunStatus",
    "BesideIncumbent",
    "CandidateVerdict",
    "ClassSpot",
    "CrossoverSpot",
    "Result",
    "RunCost",
    "RunProgress",
    "RunVerdict",
    "SearchProgress",
    "SearchedArm",
]


@record
class Result:
    """One candidate on one workload, over all rounds."""

    arm: Annotated[LongName, ALWAYS] = ""
    """Name of the candidate."""
    workload: Annotated[LongName, ALWAYS] = ""
    """DATASET@CONCURRENCY, DATASET@FROM-TO (a ramp) or DATASET@RATE/s; `mean` for the weighted mean over closed loops,
    `mean@rate` for the weighted mean over workloads at a rate, if a run has both kinds."""
    ratio: Number4 | None = None
    """The arm's throughput over the baseline's: geometric mean over rounds."""
    lower: Number4 | None = None
    """Lower bound of `ratio`."""
    upper: Number4 | None = None
    """Upper bound of `ratio`, at the confidence of the whole table."""
    accept_length: Number3 | None = None
    """Mean acceptance length."""
    energy: Number4 | None = None
    """Candidate's joules per output token divided by the baseline's: geometric mean over rounds. Absent if no round
    knows both."""
    concurrency: Annotated[Number3 | None, INTERNAL] = None
    """Candidate's mean number of requests under way."""
    mean_ttft: Annotated[Number | None, INTERNAL] = None
    """Candidate's mean seconds to the first token."""
    mean_tpot: Annotated[Number | None, INTERNAL] = None
    """Candidate's mean seconds per further token."""
    tokens: Number4 | None = None
    """Candidate's output tokens divided by the baseline's: geometric mean over rounds."""
    tokens_lower: Number4 | None = None
    """Lower bound of `tokens`."""
    tokens_upper: Number4 | None = None
    """Upper bound of `tokens`, at the confidence of the whole table."""


@record
class CrossoverSpot:
    """Results at one concurrency: the weighted mean over its datasets."""

    concurrency: Annotated[Count, ALWAYS] = 0
    """Simultaneous requests."""
    fastest: LongName = ""
    """Arm shown to be fastest: the best candidate, or `baseline` if all candidates are slower; absent if neither is
    shown."""
    arm: LongName = ""
    """Best candidate, which the numbers belong to; absent if no candidate could be measured."""
    ratio: Number4 | None = None
    """The arm's throughput over the baseline's: geometric mean over rounds."""
    lower: Number4 | None = None
    """Lower bound of `ratio`, at the confidence of the whole table."""
    upper: Number4 | None = None
    """Upper bound of `ratio`, at the confidence of the whole table."""
    rounds: Annotated[Count | None, INTERNAL] = None
    """Rounds used."""


@record
class ClassSpot:
    """The fastest arm on one dataset, over all its closed loops."""

    dataset: Annotated[LongName, ALWAYS] = ""
    """Name of the dataset."""
    best: LongName = ""
    """Arm shown to be faster than every other one; absent if none is."""
    arm: LongName = ""
    """Arm that is fastest by its estimates, which the numbers belong to."""
    rival: LongName = ""
    """Arm that it is least shown to be faster than."""
    ratio: Number4 | None = None
    """The arm's throughput over the rival's: geometric mean over rounds."""
    lower: Number4 | None = None
    """Lower bound of `ratio`, at the confidence of the whole table."""
    upper: Number4 | None = None
    """Upper bound of `ratio`, at the confidence of the whole table."""


@record
class SearchedArm:
    """State of one arm of a search. Ratios are estimates for the search's ranking; they promote nothing."""

    arm: Annotated[LongName, ALWAYS] = ""
    """Name of the arm."""
    state: Annotated[LongName, ALWAYS] = ""
    """`best`, `may be best`, `behind` (by more than the noise of its points), `too few points` or `failed`."""
    points: Annotated[Count, ALWAYS] = 0
    """Its valid points."""
    ratio: Number4 | None = None
    """The search's estimate of its throughput over the baseline's, on all workloads."""
    lower: Number4 | None = None
    """Lower 95 % bound of `ratio`, with the noise of its points."""
    upper: Number4 | None = None
    """Upper 95 % ratio bound."""
    why: LongText = ""
    """Why it failed."""


@record
class SearchProgress:
    """State of a search."""

    candidates: Annotated[Count, ALWAYS] = 0
    """Candidates that it chooses from."""
    points: Annotated[Count, ALWAYS] = 0
    """Points measured, failed ones included."""
    server_starts: Annotated[Count, ALWAYS] = 0
    """Servers started."""
    next: LongText = ""
    """What the next round is for."""
    arms: Annotated[tuple[SearchedArm, ...], Field(max_length=48), INTERNAL] = ()
    """Arms measured so far, the best first, failed arms last."""


@record
class RunVerdict:
    """Result of the run."""

    outcome: LongName = ""
    """Promote, Reject, Inconclusive or Error; absent for a measured sweep and for a search that has found a candidate:
    both decide nothing."""
    winner: LongName | None = None
    """Candidate shown to be faster, or found by a search; `baseline` if that may replace the incumbent and no candidate
    may; empty if there is none."""
    speedup: Number3 | None = None
    """The winner's ratio over all workloads, as in `results`."""
    rounds: Count | None = None
    """Rounds used at the deciding look."""
    reason: Annotated[LongText, ALWAYS] = ""
    """Reason, in one word."""
    message: Annotated[LongText, ALWAYS] = ""
    """Reason, in a sentence."""
    crossing: Annotated[LongText, INTERNAL] = ""
    """Set if no single server suits all concurrencies of the pool: at some a candidate is faster, at others the
    baseline."""


@record
class ArmParity:
    """An arm's answers compared with the baseline's, over the rounds in which they were compared; at the baseline of a
    run about a changed spec, those of the incumbent."""

    unknown: LongText = ""
    """Why no round compared them."""
    rounds: Annotated[Count | None, INTERNAL] = None
    """Rounds that compared them."""
    samples: Annotated[Count | None, INTERNAL] = None
    """Prompts per round."""
    settled: Annotated[Count | None, INTERNAL] = None
    """Prompts that the baseline answered identically on all of its servers, at least two; only these count for
    divergence."""
    differ: Count | None = None
    """Settled prompts whose answer diverged in every round."""
    identical: Count | None = None
    """Answers equal to the baseline's, over all rounds."""
    near_ties: Count | None = None
    """Answers that first differ at a gap of 0.25 nats."""
    diverged: Count | None = None
    """Answers that first differ at a larger gap."""
    first_divergence: Annotated[Count | None, INTERNAL] = None
    """Earliest token (from 0) at which an answer differs from the baseline's, near ties included."""
    largest_gap: Annotated[Number2 | None, INTERNAL] = None
    """Largest gap in nats at such a token."""


@record
class BesideIncumbent:
    """An arm's mean throughput over the incumbent's, which is what the pool served: geometric mean over rounds."""

    ratio: Number4 | None = None
    """The arm's throughput over the incumbent's."""
    lower: Number4 | None = None
    """Lower bound of `ratio`."""
    upper: Number4 | None = None
    """Upper bound of `ratio`, at the confidence of the whole run."""


@record
class CandidateVerdict:
    """Result of the run for one candidate; in a run with an incumbent also for the baseline, and for an incumbent that
    is shown to be unreliable."""

    arm: Annotated[LongName, ALWAYS] = ""
    """Name of the arm."""
    outcome: Annotated[LongName, ALWAYS] = ""
    """promotable, rejected, undecided or error."""
    reason: Annotated[LongText, ALWAYS] = ""
    """Reason."""
    margin: Number5 | None = None
    """Half-width of the confidence interval of its mean, as a fraction: the smallest difference from 1x that these
    rounds could have detected at their observed noise."""
    incumbent: BesideIncumbent | None = None
    """Comparison with the incumbent, in a run with one."""
    args: Annotated[Arguments, INTERNAL] = ()
    """Arguments that it has in addition to the baseline's."""
    differs: Annotated[tuple[LongText, ...], Field(max_length=80)] = ()
    """In what its own engine differs from the baseline's: engine, image, variables, and what the servers resolved."""
    parity: ArmParity | None = None
    """Comparison of its answers, if gate.parity asks for it, or the run is about a changed spec."""


@record
class RunCost:
    """What the run used."""

    gpu_seconds: Count | None = None
    """Accelerators times seconds."""
    idle_gpu_seconds: Count | None = None
    """Idle part of gpuSeconds: neither a server's start nor a measured workload."""
    starting_gpu_seconds: Count | None = None
    """Part of gpuSeconds in which servers started that became ready."""
    load_gpu_seconds: Count | None = None
    """Part of gpuSeconds in which workloads were measured."""
    server_starts: Count | None = None
    """Server processes started."""


@record
class RunProgress:
    """State of the run."""

    step: LongName = ""
    """Current step."""
    round: Count | None = None
    """Current round, counted from 0."""
    job: LongName = ""
    """Job of the round."""
    seconds_per_round: Count | None = None
    """Mean seconds per round so far."""
    unplaced_since: Annotated[Time, INTERNAL] = ""
    """Since when it waits for a node, or for its pod to be created."""
    waits_for_accelerators: Annotated[Count | None, INTERNAL] = None
    """Accelerators of one node that its round waits for; absent unless a node has too few."""
    seen: Annotated[bool, INTERNAL] = False
    """True once the Job has existed. If the Job then disappears unfinished, it was deleted; that counts as a try."""
    message: LongText = ""
    """Explanation."""


@record
class BenchmarkRunStatus:
    """What was measured, and the verdict."""

    observed_generation: Count | None = None
    """Generation that this status describes."""
    conditions: Conditions = ()
    """Complete and Failed."""
    fingerprint: LongName = ""
    """Hash of what is measured: server, arms and workloads, without the gate."""
    node: LongName = ""
    """Node of the current or latest round. The next round prefers it."""
    start_time: Time = ""
    """When the first round started."""
    completion_time: Time = ""
    """When the run ended."""
    engine_version: LongName | None = None
    """Version that the server reports."""
    image_digests: Annotated[Strings, INTERNAL] = field(default_factory=dict)
    """Container → digest of its image in the latest round: `server` and `client`."""
    arm_rounds: Annotated[CountMap, INTERNAL] = field(default_factory=dict)
    """Arm → its rounds with a valid point. The rounds are BenchmarkRounds, found by the label paceline.dev/run."""
    recorded: Annotated[Count | None, INTERNAL] = None
    """BenchmarkRounds that this status has counted, including tries without a result."""
    first_measured_time: Annotated[Time, INTERNAL] = ""
    """When the oldest round with a result ended."""
    last_measured_time: Time = ""
    """When the latest round with a result ended."""
    results: Annotated[tuple[Result, ...], Field(max_length=1024)] | None = None
    """Every candidate compared with the baseline."""
    search: SearchProgress | None = None
    """State of a search."""
    crossover: Annotated[tuple[CrossoverSpot, ...], Field(max_length=24)] = ()
    """Fastest arm at each concurrency, ascending, for a run over several concurrencies."""
    classes: Annotated[tuple[ClassSpot, ...], Field(max_length=24)] = ()
    """Fastest arm on each dataset, for a gate with several datasets. It decides nothing."""
    verdict: RunVerdict | None = None
    """Result of the run."""
    arm_verdicts: Annotated[tuple[CandidateVerdict, ...], Field(max_length=64)] | None = None
    """Result of the run for each candidate."""
    cost: RunCost | None = None
    """What the run used."""
    emulated: bool | None = None
    """True if an emulator served in any round."""
    imported: bool = False
    """True if any round was measured without a cluster."""
    signer: LongName = ""
    """SHA-256 of the listed public key that has signed them, if the chart's `evidence.signers` lists any."""
    noise: Number5 | None = None
    """Coefficient of variation of a point between rounds, as a fraction."""
    progress: RunProgress | None = None
    """State of the run."""
