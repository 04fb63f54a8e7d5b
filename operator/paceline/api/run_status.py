"""The status of a BenchmarkRun: what each round measured, and what came of them."""

from dataclasses import field
from typing import Annotated

from pydantic import Field

from paceline.api.record import ALWAYS, Number, Number2, Number3, Number4, Number5, record
from paceline.api.status import Conditions, Count, Counts, Name, Names, Strings, Text, Time
from paceline.api.words import Arguments


@record
class ReplicateParity:
    """What one server answered, greedily, to the prompts that are compared."""

    unknown: Text = ""
    """Why nothing was compared."""
    samples: Count | None = None
    """Prompts asked."""
    outputs: Annotated[str, Field(max_length=128)] = ""
    """Of the baseline: four hex digits of the SHA-256 of each answer. Other ones in another round: it does not agree
    with itself."""
    identical: Count | None = None
    """Of a candidate: answers that are the baseline's, as far as both were let go on."""
    near_ties: Count | None = None
    """Answers that leave the baseline's where the baseline itself was within `nearTie` of going on so."""
    diverged: Count | None = None
    """Answers that leave it further off."""
    diverged_at: Annotated[tuple[int, ...], Field(max_length=32)] = ()
    """Which prompts those are of, counted from 0."""
    first_divergence: Count | None = None
    """The earliest token, counted from 0, at which an answer was left, near ties included."""
    largest_gap: Number2 | None = None
    """By how many nats at most the baseline's token was likelier there; at least so many where the candidate's was not
    among its likeliest."""


@record
class ReplicateThrottled:
    """What held the GPUs' clocks down during one load."""

    workload: Annotated[Name, ALWAYS] = ""
    """DATASET@CONCURRENCY."""
    reasons: Annotated[tuple[Name, ...], Field(max_length=8), ALWAYS] = ()
    """As NVML calls them: SwPowerCap, HwSlowdown, SyncBoost, SwThermalSlowdown, HwThermalSlowdown or
    HwPowerBrakeSlowdown."""
    percent: Count | None = None
    """Of the load's time, of the GPU and the reason with the most; absent where the driver does not count: then reasons
    are only those of the moments before and after."""


@record
class ReplicateClocks:
    """What the driver said of the GPUs right before and right after each load."""

    sm_mhz: Count | None = None
    """Slowest clock of the SMs that was seen on a GPU that was not idle."""
    most_sm_mhz: Count | None = None
    """The fastest that there is on these GPUs."""
    power_limit_watts: Count | None = None
    """Lowest power limit of a GPU."""
    celsius: Count | None = None
    """Highest temperature of a GPU."""
    throttled: Annotated[tuple[ReplicateThrottled, ...], Field(max_length=24)] = ()
    """Loads during which something held the clocks down."""


@record
class Replicate:
    """One server process of one arm."""

    arm: Annotated[Name, ALWAYS] = ""
    """Which arm."""
    start_seconds: Number | None = None
    """From start to ready."""
    exit_code: int | None = None
    """Set if the server ended by itself."""
    reason: Name = ""
    """What went wrong with it: one of those of a round, Retracted where it took requests back, RequestsFailed where
    some of them were not answered, or NotMeasured where it lived and was not as asked."""
    error: Text = ""
    """The last useful line of its log."""
    resolved: Annotated[Strings, ALWAYS] = field(default_factory=dict)
    """Some of the server's own arguments: those that every server must say."""
    rest_sha256: Annotated[Name, ALWAYS] = ""
    """Hash of all of them but those that speculation moves: equal on all arms of a round."""
    differs: Annotated[tuple[Text, ...], Field(max_length=8)] = ()
    """The first of these that are not the baseline's, with both values; absent if none is."""
    kv_tokens: Count | None = None
    """Tokens that its KV cache holds."""
    clocks: ReplicateClocks | None = None
    """Of the GPUs, where a driver can be asked and the round's message had room."""
    parity: ReplicateParity | None = None
    """What it answered, where spec.parity asks for that."""


@record
class Point:
    """One arm on one workload in one round. Times in seconds, throughputs in output tokens per second."""

    arm: Annotated[Name, ALWAYS] = ""
    """Which arm."""
    workload: Annotated[Name, ALWAYS] = ""
    """DATASET@CONCURRENCY."""
    valid: Annotated[bool, ALWAYS] = False
    """Whether the gate may use it."""
    why: Annotated[Text, ALWAYS] = ""
    """Why not."""
    asked: Count | None = None
    """Requests sent."""
    completed: Count | None = None
    """Requests answered."""
    errors: Count | None = None
    """Requests that failed."""
    output_tokens: Count | None = None
    """Tokens in the answers."""
    output_throughput: Number | None = None
    """All output tokens over the client's duration, ramp and tail included; only where there was room for it."""
    steady_throughput: Number | None = None
    """As fast as in the longest time with at least 90 % of the concurrency under way, in tokens of all answers: what is
    judged. Absent at a rate."""
    mean_concurrency: Number | None = None
    """Requests under way in that time, sent and not yet answered, as an average over it; absent at a rate."""
    offered_rate: Number | None = None
    """Of a workload at a rate: requests a second that came."""
    kept_rate: Number | None = None
    """Requests a second that were answered in the second half of them."""
    saturated: bool = False
    """Set where that is less than 95 % of those that came: how much faster another arm is depends then on how long one
    measures."""
    request_speed: Number | None = None
    """Of a workload at a rate: output tokens per second of a request under way. It is judged in throughput's place."""
    mean_ttft: Number | None = None
    """Mean time to the first token."""
    p95_ttft: Number | None = None
    """Its 95th percentile."""
    p50_ttft: Number | None = None
    """Its median; this and 99th percentiles only where there was room for them."""
    p99_ttft: Number | None = None
    """Its 99th percentile."""
    mean_tpot: Number | None = None
    """Mean time per further token."""
    p95_tpot: Number | None = None
    """Its 95th percentile."""
    p50_tpot: Number | None = None
    """Its median."""
    p99_tpot: Number | None = None
    """Its 99th percentile."""
    p99_itl: Number | None = None
    """99th percentile of the time between two pieces of an answer as they come, of as many tokens as a step has."""
    mean_e2e: Number | None = None
    """Mean time of a whole request."""
    p95_e2e: Number | None = None
    """95th percentile of the time of a whole request."""
    accept_length: Number | None = None
    """Tokens per verify step; 1 means that nothing was accepted."""
    accept_rate: Number | None = None
    """Accepted draft tokens as a fraction of those proposed."""
    accepted_at: Annotated[tuple[Number, ...], Field(max_length=64)] = ()
    """Of verify steps, the fraction that accepted the draft token of a position, the first one first; they add up to
    `acceptLength` - 1. Only where the engine counts it and the round's message had room."""
    draft_tokens: Number | None = None
    """Mean number of draft tokens that were proposed in a verify step, where the engine counts them or chooses how
    many. VLLM's adaptive verification leaves some of them out afterwards, which it does not tell."""
    at_rest: bool = False
    """True where nothing was accepted because the engine chose so under this load: under another it did speculate."""
    verify_calls: Count | None = None
    """Verify steps."""
    retractions: Count | None = None
    """Requests that the server took back for want of memory."""


@record
class Raw:
    """All that was seen of a round, on the cache volume: gzip of one JSON object a line."""

    path: Annotated[Text, ALWAYS] = ""
    """As the pods of a round see it: the volume is mounted at /models."""
    sha256: Annotated[Name, ALWAYS] = ""
    """Of the file; its first 16 digits where the round's message had no room for more."""
    bytes: Annotated[Count, ALWAYS] = 0
    """Its length."""


@record
class Round:
    """One Job: one replicate of every arm in question, on the same accelerators."""

    round: Annotated[Count, ALWAYS] = 0
    """Counted from 0."""
    try_: Annotated[Count, ALWAYS] = 0
    """Counted from 0; a round is tried again if it gave no result."""
    run: Name = ""
    """The BenchmarkRun that measured it, where that is another one: its rounds are judged again."""
    job: Annotated[Name, ALWAYS] = ""
    """The Job."""
    node: Annotated[Name, ALWAYS] = ""
    """Where it ran."""
    started_at: Time = ""
    """When it started."""
    finished_at: Time = ""
    """When it ended."""
    gpus: Names | None = None
    """Ids of the accelerators."""
    gpu_model: Name = ""
    """What their driver calls them."""
    image: Text = ""
    """The server's image that ran, by its digest."""
    client_image: Text = ""
    """Paceline's image that measured, by its digest."""
    paceline: Name = ""
    """Paceline's release that measured."""
    datasets: Strings = field(default_factory=dict)
    """Dataset → first 12 hex digits of the SHA-256 of its prompts: of a file, as sha256sum shows it."""
    prompts: Counts = field(default_factory=dict)
    """Dataset → how many usable prompts it has. Every round is sent others of them, for as long as there are any."""
    neighbours: Names = ()
    """Other pods that had accelerators on the node meanwhile, and how many, as far as the operator may look."""
    driver: Name = ""
    """Version of their driver."""
    engine_version: Name | None = None
    """As the server says."""
    emulated: bool | None = None
    """True if an emulator served."""
    replicates: Annotated[tuple[Replicate, ...], Field(max_length=64), ALWAYS] = ()
    """In the order run."""
    points: Annotated[tuple[Point, ...], Field(max_length=256), ALWAYS] = ()
    """What was measured."""
    notes: Annotated[tuple[Text, ...], Field(max_length=32)] = ()
    """What should be known of it: numbers that this engine does not tell, lines that could not be kept."""
    raw: Raw | None = None
    """Where the full lines are, if they could be written."""
    held_seconds: Count | None = None
    """How long its pod held accelerators: from getting its node to the end of its last container."""
    idle_seconds: Count | None = None
    """How much of that was neither a server's start nor a measured workload: images, warm-ups, our client's own work,
    ending servers, and whatever failed. Of a round without a result, all."""
    reason: Name = ""
    """Set where there is no result: ServerArguments, ImagePull, OutOfMemory, StartTimeout, TimedOut, ServerCrashed,
    ClientFailed, ImageMoved, Unreadable, Preempted, Evicted, NodeLost, NodeRefused, NotStarted or VolumeInUse."""
    error: Annotated[Text, ALWAYS] = ""
    """Why there is no result: the last useful line."""


@record
class Result:
    """One candidate on one workload, over all rounds."""

    arm: Annotated[Name, ALWAYS] = ""
    """Which candidate."""
    workload: Annotated[Name, ALWAYS] = ""
    """DATASET@CONCURRENCY or DATASET@RATE/s; `mean` for the weighted mean, over closed loops where there are any,
    and then `mean@rate` for the mean over what arrives at a rate."""
    ratio: Number4 | None = None
    """Its throughput over the baseline's: geometric mean over rounds."""
    lower: Number4 | None = None
    """Lower confidence bound of that."""
    upper: Number4 | None = None
    """Upper confidence bound of that."""
    accept_length: Number3 | None = None
    """Mean acceptance length."""
    tokens: Number4 | None = None
    """Its output tokens over the baseline's: geometric mean over rounds."""
    tokens_lower: Number4 | None = None
    """Lower confidence bound of that."""
    tokens_upper: Number4 | None = None
    """Upper confidence bound of that."""


@record
class CrossoverSpot:
    """What was measured at one concurrency, over its datasets by weight."""

    concurrency: Annotated[Count, ALWAYS] = 0
    """Requests at a time."""
    fastest: Name = ""
    """The arm shown to be faster: the best candidate, or `baseline` if all of them are slower; absent if neither is
    shown."""
    arm: Name = ""
    """The best candidate, which the numbers are of; absent if none could be measured here."""
    ratio: Number4 | None = None
    """Its throughput over the baseline's: geometric mean over rounds."""
    lower: Number4 | None = None
    """Lower confidence bound of that; the confidence is of the whole table."""
    upper: Number4 | None = None
    """Upper confidence bound of that."""
    rounds: Count | None = None
    """Rounds that it is from."""


@record
class RunVerdict:
    """What the run came to."""

    outcome: Name = ""
    """Promote, Reject, Inconclusive or Error; none for a Sweep that was measured: it decides nothing."""
    winner: Name | None = None
    """The candidate that was shown to be faster; empty without one."""
    speedup: Number3 | None = None
    """The winner's ratio over all workloads, as in `results`."""
    rounds: Count | None = None
    """Rounds used at the look that decided."""
    reason: Annotated[Text, ALWAYS] = ""
    """Why, in one word."""
    message: Annotated[Text, ALWAYS] = ""
    """Why, for a person."""
    crossing: Text = ""
    """Set where the pool's concurrencies are not for one server: at some a candidate is faster, at others the
    baseline."""


@record
class ArmParity:
    """A candidate's answers against the baseline's, over the rounds in which they were compared."""

    unknown: Text = ""
    """Why they were compared in none."""
    rounds: Count | None = None
    """In how many."""
    samples: Count | None = None
    """Prompts in each."""
    settled: Count | None = None
    """Prompts that the baseline answered alike on all of its fresh servers, two at least: a divergence counts there
    alone."""
    identical: Count | None = None
    """Answers, of all rounds together, that are the baseline's."""
    near_ties: Count | None = None
    """Answers that leave it within `nearTie`."""
    diverged: Count | None = None
    """Answers that leave it further off."""
    first_divergence: Count | None = None
    """The earliest token, counted from 0, at which an answer was left, near ties included."""
    largest_gap: Number2 | None = None
    """The widest gap in nats at such a place."""


@record
class ArmVerdict:
    """What the run came to for one candidate."""

    arm: Annotated[Name, ALWAYS] = ""
    """Which candidate."""
    outcome: Annotated[Name, ALWAYS] = ""
    """promotable, rejected, undecided or error."""
    reason: Annotated[Text, ALWAYS] = ""
    """Why."""
    margin: Number5 | None = None
    """Half of the interval of its mean over workloads (in `results`), as a fraction: a difference of that size these
    rounds could just not have told from none."""
    args: Arguments = ()
    """Arguments of its own, which the baseline had not."""
    parity: ArmParity | None = None
    """What it answers, where spec.parity asks for that."""


@record
class Cost:
    """What the run took."""

    gpu_seconds: Count | None = None
    """Accelerators times seconds."""
    idle_gpu_seconds: Count | None = None
    """Of these, idle as the rounds say: neither a server's start nor a measured workload."""
    server_starts: Count | None = None
    """Server processes started."""


@record
class RunProgress:
    """Where the run is."""

    step: Name = ""
    """The step under way."""
    round: Count | None = None
    """The round under way, counted from 0."""
    job: Name = ""
    """Its Job."""
    seconds_per_round: Count | None = None
    """Mean of the rounds so far."""
    unplaced_since: Time = ""
    """Since when it waits for a node, or for its pod to be made."""
    seen: bool = False
    """True once the Job was there: if it is gone without an end, somebody has deleted it, and that counts as a try."""
    message: Text = ""
    """For a person."""


@record
class BenchmarkRunStatus:
    """What was measured and what it means."""

    observed_generation: Count | None = None
    """The generation this status is about."""
    conditions: Conditions = ()
    """Complete and Failed."""
    fingerprint: Name = ""
    """Of what is measured: server, arms and workloads, not by which gate it is judged."""
    node: Name = ""
    """Where the round under way runs, or the latest ran. The next one goes there too if there is room."""
    started_at: Time = ""
    """When the first round started."""
    finished_at: Time = ""
    """When the run ended."""
    engine_version: Name | None = None
    """As the server says."""
    paceline: Text = ""
    """Paceline's release that measured; of several, all, the first one first."""
    image_digests: Strings = field(default_factory=dict)
    """Container → the image that ran in the latest round, by its digest: `server` and our `client`."""
    gpu_model: Name = ""
    """What the accelerators' driver calls them, where it can be asked."""
    driver: Name = ""
    """Version of the accelerators' driver, likewise."""
    gpus: Names | None = None
    """Ids of the accelerators."""
    rounds: Annotated[tuple[Round, ...], Field(max_length=512)] | None = None
    """Every round, every measured point, valid or not."""
    results: Annotated[tuple[Result, ...], Field(max_length=1024)] | None = None
    """Every candidate against the baseline."""
    crossover: Annotated[tuple[CrossoverSpot, ...], Field(max_length=24)] = ()
    """Of a run over several concurrencies: which arm is faster at each, rising."""
    verdict: RunVerdict | None = None
    """What the run came to."""
    arm_verdicts: Annotated[tuple[ArmVerdict, ...], Field(max_length=64)] | None = None
    """What it came to for each candidate."""
    cost: Cost | None = None
    """What it took."""
    emulated: bool | None = None
    """True if an emulator served in any round."""
    noise: Number5 | None = None
    """Coefficient of variation of a point between rounds, as a fraction."""
    progress: RunProgress | None = None
    """Where it is."""
