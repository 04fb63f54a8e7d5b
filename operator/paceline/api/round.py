"""A BenchmarkRound: what one round of a BenchmarkRun has measured, written once, before it counts (decision 0102)."""

from collections.abc import Iterable
from dataclasses import field
from typing import Annotated, Any

from pydantic import Field

from paceline.api.status import CountMap, LongName, LongText, Names, Strings, Time
from paceline.core.manifest import Object
from paceline.core.names import RUN_LABEL
from paceline.core.numbers import Numbers, TimeParts
from paceline.core.record import ALWAYS, Count, Number, Number2, Number4, from_status, record


@record
class ReplicateParity:
    """Greedy answers of one server to the prompts that are compared."""

    unknown: LongText = ""
    """Why nothing was compared."""
    samples: Count | None = None
    """Prompts asked."""
    outputs: Annotated[str, Field(max_length=128)] = ""
    """Baseline only: four hex digits of the SHA-256 of each answer. If digests change between rounds, the baseline does
    not agree with itself."""
    identical: Count | None = None
    """Candidate only: answers equal to the baseline's, over the length that both have."""
    near_ties: Count | None = None
    """Answers that first differ from the baseline's at a token with a gap of at most 0.25 nats."""
    diverged: Count | None = None
    """Answers that first differ at a larger gap."""
    diverged_at: Annotated[tuple[int, ...], Field(max_length=32)] = ()
    """Prompts of the diverged answers, counted from 0."""
    first_divergence: Count | None = None
    """Earliest token (from 0) at which an answer differs from the baseline's, near ties included."""
    largest_gap: Number2 | None = None
    """Largest gap in nats by which the baseline preferred its own token there; a lower bound if the candidate's token
    was not among the baseline's likeliest."""


@record
class ReplicateThrottled:
    """Causes that held down the GPUs' clocks during one load."""

    workload: Annotated[LongName, ALWAYS] = ""
    """DATASET@CONCURRENCY, DATASET@FROM-TO (a ramp) or DATASET@RATE/s."""
    reasons: Annotated[tuple[LongName, ...], Field(max_length=8), ALWAYS] = ()
    """NVML's names: SwPowerCap, HwSlowdown, SyncBoost, SwThermalSlowdown, HwThermalSlowdown or HwPowerBrakeSlowdown."""
    percent: Count | None = None
    """Share of the load's time, for the GPU and reason with the largest share. Absent if the driver has no counters;
    the reasons are then those seen just before and after the load."""


@record
class ReplicateClocks:
    """State of the GPUs according to the driver, right before and right after each load."""

    sm_mhz: Count | None = None
    """Slowest SM clock of a GPU that was not idle."""
    most_sm_mhz: Count | None = None
    """Maximum SM clock of these GPUs."""
    power_limit_watts: Count | None = None
    """Lowest power limit of a GPU."""
    celsius: Count | None = None
    """Highest temperature of a GPU."""
    throttled: Annotated[tuple[ReplicateThrottled, ...], Field(max_length=24)] = ()
    """Loads with clocks held down."""


@record
class ReplicateTime(TimeParts):
    """What a server's time went into, in seconds; absent: not known. Imports, weights and graphs are from its log."""

    image: Number | None = None
    """From the end of the container before it to the start of its own, which includes the pull of its image."""


@record
class ReplicateRecord:
    """One server process of one arm."""

    arm: Annotated[LongName, ALWAYS] = ""
    """Which arm."""
    start_seconds: Number | None = None
    """Seconds from start to ready."""
    seconds: ReplicateTime | None = None
    """What its time went into."""
    exit_code: int | None = None
    """Exit code, if the server itself exited."""
    reason: LongName = ""
    """Why this server gave no evidence: a reason of a round, Retracted (it took requests back), RequestsFailed (some
    requests got no answer), Malformed (answers without the form of responseFormat), ClientBusy (the client did not
    keep up with it) or NotMeasured (it ran, but not as requested)."""
    error: LongText = ""
    """The last useful line of its log."""
    resolved: Annotated[Strings, ALWAYS] = field(default_factory=dict)
    """Resolved arguments that every server must report."""
    rest_sha256: Annotated[LongName, ALWAYS] = ""
    """First 8 hex digits of the SHA-256 of all resolved arguments except those that speculation changes; equal on all
    arms of a valid round."""
    differs: Annotated[tuple[LongText, ...], Field(max_length=8)] = ()
    """First of these arguments that differ from the baseline's, with both values; absent if all are equal."""
    differing: Count | None = None
    """How many of them differ; absent if none does."""
    version: LongName = ""
    """Version that the server reports, on an arm with an engine of its own."""
    image: LongText = ""
    """Image that ran, by digest, on an arm with an engine of its own."""
    kv_tokens: Count | None = None
    """Capacity of its KV cache in tokens."""
    clocks: ReplicateClocks | None = None
    """State of the GPUs, if a driver is available."""
    parity: ReplicateParity | None = None
    """Its answers, if gate.parity asks for them."""


@record
class PointRecord(Numbers):
    """One arm on one workload in one round. Times in seconds, throughputs in output tokens per second."""

    arm: Annotated[LongName, ALWAYS] = ""
    """Which arm."""
    workload: Annotated[LongName, ALWAYS] = ""
    """DATASET@CONCURRENCY, DATASET@FROM-TO (a ramp) or DATASET@RATE/s."""
    valid: Annotated[bool, ALWAYS] = False
    """Whether the gate may use it."""
    why: Annotated[LongText, ALWAYS] = ""
    """Why the gate may not use it."""
    mean_concurrency: Number | None = None
    """Mean requests under way in the steady window; absent at a rate and on a ramp."""
    offered_rate: Number | None = None
    """At a rate: requests that arrived, per second."""
    saturated: bool = False
    """Set if keptRate is less than 95 % of offeredRate: a speed-up then depends on the length of the measurement."""
    request_speed: Number | None = None
    """At a rate and on a ramp: output tokens per second of a request under way. The gate compares this value instead
    of throughput."""
    accept_rate: Number | None = None
    """Accepted draft tokens as a fraction of those proposed."""
    at_rest: bool = False
    """True if no draft token was accepted because the engine did not speculate under this load, although it did under
    another."""
    goodput: Number | None = None
    """`goodRequests` per second, over the whole duration."""
    good_throughput: Number | None = None
    """Output tokens per second of these."""


@record
class Inputs:
    """Tokens of a workload's prompts as the server counts them, with its template; and how busy the client was."""

    workload: Annotated[LongName, ALWAYS] = ""
    """DATASET@CONCURRENCY, DATASET@FROM-TO (a ramp) or DATASET@RATE/s."""
    mean: Number | None = None
    """Mean."""
    p50: Count | None = None
    """Median."""
    p99: Count | None = None
    """99th percentile."""
    client_cpu: Number2 | None = None
    """Share of a CPU that the client used, for the arm with the largest share; above 0.8 a point is invalid."""
    client_lag: Number4 | None = None
    """Mean seconds that an event waited for the client, for the arm with the longest wait; above 20 ms and 2 % of
    meanE2E a point is invalid."""


@record
class Raw:
    """Full data of a round on the cache volume: gzip of one JSON object per line."""

    path: Annotated[LongText, ALWAYS] = ""
    """Path in the pods of a round, where the volume is mounted at /models."""
    sha256: Annotated[LongName, ALWAYS] = ""
    """SHA-256 of the file."""
    bytes: Annotated[Count, ALWAYS] = 0
    """Size of the file."""


@record
class Round:
    """One Job: one replicate of every undecided arm, on the same accelerators."""

    fingerprint: Annotated[LongName, ALWAYS] = ""
    """Fingerprint of its run; it does not count for runs with another one."""
    round: Annotated[Count, ALWAYS] = 0
    """Counted from 0."""
    try_: Annotated[Count, ALWAYS] = 0
    """Counted from 0; a round without a result is tried again."""
    run: LongName = ""
    """The BenchmarkRun that measured it, if this run judges another run's round again."""
    job: Annotated[LongName, ALWAYS] = ""
    """The Job."""
    node: Annotated[LongName, ALWAYS] = ""
    """Node that it ran on."""
    start_time: Time = ""
    """When it started."""
    completion_time: Time = ""
    """When it ended."""
    gpus: Names | None = None
    """Ids of the accelerators."""
    gpu_model: LongName = ""
    """Name of the accelerators according to their driver."""
    image: LongText = ""
    """Image of the server that ran, by digest."""
    client_image: LongText = ""
    """Image of Paceline's client, by digest."""
    paceline: LongName = ""
    """Release of Paceline's client."""
    datasets: Strings = field(default_factory=dict)
    """Dataset → first 12 hex digits of the SHA-256 of its prompts; for a file, the digest that sha256sum prints."""
    prompts: CountMap = field(default_factory=dict)
    """Dataset → number of usable prompts. Each round sends different ones until all have been used."""
    inputs: Annotated[tuple[Inputs, ...], Field(max_length=24)] = ()
    """Length of the prompts of each workload, and its client."""
    neighbours: Names = ()
    """Other pods with accelerators on the node during the round, with their number of accelerators, as far as the
    operator may read pods."""
    driver: LongName = ""
    """Version of the accelerators' driver."""
    engine_version: LongName | None = None
    """Version that the server reports."""
    emulated: bool | None = None
    """True if an emulator served."""
    imported: bool = False
    """True if it was measured without a cluster and imported with its run."""
    replicates: Annotated[tuple[ReplicateRecord, ...], Field(max_length=64), ALWAYS] = ()
    """Replicates in the order in which they ran."""
    points: Annotated[tuple[PointRecord, ...], Field(max_length=256), ALWAYS] = ()
    """Measured points."""
    notes: Annotated[tuple[LongText, ...], Field(max_length=32)] = ()
    """Remarks: numbers that this engine does not report, lines that could not be saved."""
    raw: Raw | None = None
    """Location of the full lines, if they could be written."""
    held_seconds: Count | None = None
    """Seconds that its pod held accelerators, from the assignment of a node to the end of the last container."""
    idle_seconds: Count | None = None
    """Part of heldSeconds that was neither a server's start nor a measured workload: image pulls, warm-ups, the
    client's own work, stopping servers, and everything that failed. Equal to heldSeconds for a round without a
    result."""
    reason: LongName = ""
    """Why there is no result: ServerArguments, ImagePull, OutOfMemory, StartTimeout, TimedOut, ServerCrashed,
    ClientFailed, ImageMoved, Unreadable, Preempted, Evicted, JobDeleted, NodeLost, NodeRefused, NotStarted or
    VolumeInUse."""
    error: Annotated[LongText, ALWAYS] = ""
    """Why there is no result: the last useful line of the log."""


ROUND_KIND = "BenchmarkRound"


def belongs(round: Object, run: Object) -> bool:
    """Whether this BenchmarkRound belongs to this BenchmarkRun: by its label, and by its owner if it has one. A round
    restored from a backup has no owner; a round of a deleted run of the same name has another owner."""
    metadata, owner = round["metadata"], run["metadata"]
    if (metadata.get("labels") or {}).get(RUN_LABEL) != owner["name"]:
        return False
    if metadata.get("namespace", "") != owner.get("namespace", ""):
        return False
    owners = [one.get("uid") for one in metadata.get("ownerReferences") or ()]
    return not owners or owner.get("uid") in owners


def in_order(rounds: Iterable[Round]) -> tuple[Round, ...]:
    return tuple(sorted(rounds, key=lambda one: (one.round, one.try_)))


def with_rounds(run: Object, objects: Iterable[Object]) -> dict[str, Any]:
    """The run with its rounds under `rounds`, as commands pass it on; no object of the API has this form. Once a run's
    status has a fingerprint, rounds with another are left out, as in its verdict."""
    measured = (run.get("status") or {}).get("fingerprint")
    mine = [one["spec"] for one in objects if belongs(one, run)]
    specs = [spec for spec in mine if not measured or spec.get("fingerprint", measured) == measured]
    return {**run, "rounds": sorted(specs, key=lambda spec: (spec.get("round", 0), spec.get("try", 0)))}


def rounds_of(run: Object) -> tuple[Round, ...]:
    """The rounds of a run `with_rounds`, in order."""
    return in_order(from_status(Round, one) for one in run.get("rounds") or ())
