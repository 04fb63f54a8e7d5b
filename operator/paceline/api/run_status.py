"""The status of a BenchmarkRun: what each round measured, and what came of them."""

from typing import Annotated

from pydantic import Field

from paceline.api.model import Model
from paceline.api.status import Conditions, Count, Counts, Name, Names, Number, Strings, Text, Time
from paceline.api.words import Arguments


class ReplicateParity(Model):
    """What one server answered, greedily, to the prompts that are compared."""

    unknown: Text | None = None
    """Why nothing was compared."""
    samples: Count | None = None
    """Prompts asked."""
    outputs: Annotated[str, Field(max_length=128)] | None = None
    """Of the baseline: four hex digits of the SHA-256 of each answer. Other ones in another round: it does not agree
    with itself."""
    identical: Count | None = None
    """Of a candidate: answers that are the baseline's, as far as both were let go on."""
    near_ties: Count | None = None
    """Answers that leave the baseline's where the baseline itself was within `nearTie` of going on so."""
    diverged: Count | None = None
    """Answers that leave it further off."""
    diverged_at: Annotated[tuple[int, ...], Field(max_length=32)] | None = None
    """Which prompts those are of, counted from 0."""
    first_divergence: Count | None = None
    """The earliest token, counted from 0, at which an answer was left, near ties included."""
    largest_gap: Number | None = None
    """By how many nats at most the baseline's token was likelier there; at least so many where the candidate's was not
    among its likeliest."""


class ReplicateThrottled(Model):
    """What held the GPUs' clocks down during one load."""

    workload: Name | None = None
    """DATASET@CONCURRENCY."""
    reasons: Annotated[tuple[Name, ...], Field(max_length=8)] | None = None
    """As NVML calls them: SwPowerCap, HwSlowdown, SyncBoost, SwThermalSlowdown, HwThermalSlowdown or
    HwPowerBrakeSlowdown."""
    percent: Count | None = None
    """Of the load's time, of the GPU and the reason with the most; absent where the driver does not count: then reasons
    are only those of the moments before and after."""


class ReplicateClocks(Model):
    """What the driver said of the GPUs right before and right after each load."""

    sm_mhz: Count | None = Field(default=None, alias="smMHz")
    """Slowest clock of the SMs that was seen on a GPU that was not idle."""
    most_sm_mhz: Count | None = Field(default=None, alias="mostSMMHz")
    """The fastest that there is on these GPUs."""
    power_limit_watts: Count | None = None
    """Lowest power limit of a GPU."""
    celsius: Count | None = None
    """Highest temperature of a GPU."""
    throttled: Annotated[tuple[ReplicateThrottled, ...], Field(max_length=24)] | None = None
    """Loads during which something held the clocks down."""


class Replicate(Model):
    """One server process of one arm."""

    arm: Name | None = None
    """Which arm."""
    start_seconds: Number | None = None
    """From start to ready."""
    exit_code: int | None = None
    """Set if the server ended by itself."""
    reason: Name | None = None
    """What went wrong with it: one of those of a round, Retracted where it took requests back, RequestsFailed where
    some of them were not answered, or NotMeasured where it lived and was not as asked."""
    error: Text | None = None
    """The last useful line of its log."""
    resolved: Strings | None = None
    """Some of the server's own arguments: those that every server must say."""
    rest_sha256: Name | None = Field(default=None, alias="restSHA256")
    """Hash of all of them but those that speculation moves: equal on all arms of a round."""
    differs: Annotated[tuple[Text, ...], Field(max_length=8)] | None = None
    """The first of these that are not the baseline's, with both values; absent if none is."""
    kv_tokens: Count | None = None
    """Tokens that its KV cache holds."""
    clocks: ReplicateClocks | None = None
    """Of the GPUs, where a driver can be asked and the round's message had room."""
    parity: ReplicateParity | None = None
    """What it answered, where spec.parity asks for that."""


class Point(Model):
    """One arm on one workload in one round. Times in seconds, throughputs in output tokens per second."""

    arm: Name | None = None
    """Which arm."""
    workload: Name | None = None
    """DATASET@CONCURRENCY."""
    valid: bool | None = None
    """Whether the gate may use it."""
    why: Text | None = None
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
    saturated: bool | None = None
    """Set where that is less than 95 % of those that came: how much faster another arm is depends then on how long one
    measures."""
    request_speed: Number | None = None
    """Of a workload at a rate: output tokens per second of a request under way. It is judged in throughput's place."""
    mean_ttft: Number | None = Field(default=None, alias="meanTTFT")
    """Mean time to the first token."""
    p95_ttft: Number | None = Field(default=None, alias="p95TTFT")
    """Its 95th percentile."""
    p50_ttft: Number | None = Field(default=None, alias="p50TTFT")
    """Its median; this and 99th percentiles only where there was room for them."""
    p99_ttft: Number | None = Field(default=None, alias="p99TTFT")
    """Its 99th percentile."""
    mean_tpot: Number | None = Field(default=None, alias="meanTPOT")
    """Mean time per further token."""
    p95_tpot: Number | None = Field(default=None, alias="p95TPOT")
    """Its 95th percentile."""
    p50_tpot: Number | None = Field(default=None, alias="p50TPOT")
    """Its median."""
    p99_tpot: Number | None = Field(default=None, alias="p99TPOT")
    """Its 99th percentile."""
    p99_itl: Number | None = Field(default=None, alias="p99ITL")
    """99th percentile of the time between two pieces of an answer as they come, of as many tokens as a step has."""
    mean_e2e: Number | None = Field(default=None, alias="meanE2E")
    """Mean time of a whole request."""
    p95_e2e: Number | None = Field(default=None, alias="p95E2E")
    """95th percentile of the time of a whole request."""
    accept_length: Number | None = None
    """Tokens per verify step; 1 means that nothing was accepted."""
    accept_rate: Number | None = None
    """Accepted draft tokens as a fraction of those proposed."""
    accepted_at: Annotated[tuple[Number, ...], Field(max_length=64)] | None = None
    """Of verify steps, the fraction that accepted the draft token of a position, the first one first; they add up to
    `acceptLength` - 1. Only where the engine counts it and the round's message had room."""
    draft_tokens: Number | None = None
    """Mean number of draft tokens that were proposed in a verify step, where the engine counts them or chooses how
    many. VLLM's adaptive verification leaves some of them out afterwards, which it does not tell."""
    at_rest: bool | None = None
    """True where nothing was accepted because the engine chose so under this load: under another it did speculate."""
    verify_calls: Count | None = None
    """Verify steps."""
    retractions: Count | None = None
    """Requests that the server took back for want of memory."""


class Raw(Model):
    """All that was seen of a round, on the cache volume: gzip of one JSON object a line."""

    path: Text | None = None
    """As the pods of a round see it: the volume is mounted at /models."""
    sha256: Name | None = None
    """Of the file; its first 16 digits where the round's message had no room for more."""
    bytes: Count | None = None
    """Its length."""


class Round(Model):
    """One Job: one replicate of every arm in question, on the same accelerators."""

    round: Count | None = None
    """Counted from 0."""
    try_: Count | None = Field(default=None, alias="try")
    """Counted from 0; a round is tried again if it gave no result."""
    run: Name | None = None
    """The BenchmarkRun that measured it, where that is another one: its rounds are judged again."""
    job: Name | None = None
    """The Job."""
    node: Name | None = None
    """Where it ran."""
    started_at: Time | None = None
    """When it started."""
    finished_at: Time | None = None
    """When it ended."""
    gpus: Names | None = None
    """Ids of the accelerators."""
    gpu_model: Name | None = None
    """What their driver calls them."""
    image: Text | None = None
    """The server's image that ran, by its digest."""
    client_image: Text | None = None
    """Paceline's image that measured, by its digest."""
    paceline: Name | None = None
    """Paceline's release that measured."""
    datasets: Strings | None = None
    """Dataset → first 12 hex digits of the SHA-256 of its prompts: of a file, as sha256sum shows it."""
    prompts: Counts | None = None
    """Dataset → how many usable prompts it has. Every round is sent others of them, for as long as there are any."""
    neighbours: Names | None = None
    """Other pods that had accelerators on the node meanwhile, and how many, as far as the operator may look."""
    driver: Name | None = None
    """Version of their driver."""
    engine_version: Name | None = None
    """As the server says."""
    emulated: bool | None = None
    """True if an emulator served."""
    replicates: Annotated[tuple[Replicate, ...], Field(max_length=64)] | None = None
    """In the order run."""
    points: Annotated[tuple[Point, ...], Field(max_length=256)] | None = None
    """What was measured."""
    notes: Annotated[tuple[Text, ...], Field(max_length=32)] | None = None
    """What should be known of it: numbers that this engine does not tell, lines that could not be kept."""
    raw: Raw | None = None
    """Where the full lines are, if they could be written."""
    held_seconds: Count | None = None
    """How long its pod held accelerators: from getting its node to the end of its last container."""
    idle_seconds: Count | None = None
    """How much of that was neither a server's start nor a measured workload: images, warm-ups, our client's own work,
    ending servers, and whatever failed. Of a round without a result, all."""
    reason: Name | None = None
    """Set where there is no result: ServerArguments, ImagePull, OutOfMemory, StartTimeout, TimedOut, ServerCrashed,
    ClientFailed, ImageMoved, Unreadable, Preempted, Evicted, NodeLost, NodeRefused, NotStarted or VolumeInUse."""
    error: Text | None = None
    """Why there is no result: the last useful line."""


class Result(Model):
    """One candidate on one workload, over all rounds."""

    arm: Name | None = None
    """Which candidate."""
    workload: Name | None = None
    """DATASET@CONCURRENCY or DATASET@RATE/s; `mean` for the weighted mean, over closed loops where there are any,
    and then `mean@rate` for the mean over what arrives at a rate."""
    ratio: Number | None = None
    """Its throughput over the baseline's: geometric mean over rounds."""
    lower: Number | None = None
    """Lower confidence bound of that."""
    upper: Number | None = None
    """Upper confidence bound of that."""
    accept_length: Number | None = None
    """Mean acceptance length."""
    tokens: Number | None = None
    """Its output tokens over the baseline's: geometric mean over rounds."""
    tokens_lower: Number | None = None
    """Lower confidence bound of that."""
    tokens_upper: Number | None = None
    """Upper confidence bound of that."""


class CrossoverSpot(Model):
    """What was measured at one concurrency, over its datasets by weight."""

    concurrency: Count | None = None
    """Requests at a time."""
    fastest: Name | None = None
    """The arm shown to be faster: the best candidate, or `baseline` if all of them are slower; absent if neither is
    shown."""
    arm: Name | None = None
    """The best candidate, which the numbers are of; absent if none could be measured here."""
    ratio: Number | None = None
    """Its throughput over the baseline's: geometric mean over rounds."""
    lower: Number | None = None
    """Lower confidence bound of that; the confidence is of the whole table."""
    upper: Number | None = None
    """Upper confidence bound of that."""
    rounds: Count | None = None
    """Rounds that it is from."""


class RunVerdict(Model):
    """What the run came to."""

    outcome: Name | None = None
    """Promote, Reject, Inconclusive or Error; none for a Sweep that was measured: it decides nothing."""
    winner: Name | None = None
    """The candidate that was shown to be faster; empty without one."""
    speedup: Number | None = None
    """The winner's ratio over all workloads, as in `results`."""
    rounds: Count | None = None
    """Rounds used at the look that decided."""
    reason: Text | None = None
    """Why, in one word."""
    message: Text | None = None
    """Why, for a person."""
    crossing: Text | None = None
    """Set where the pool's concurrencies are not for one server: at some a candidate is faster, at others the
    baseline."""


class ArmParity(Model):
    """A candidate's answers against the baseline's, over the rounds in which they were compared."""

    unknown: Text | None = None
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
    largest_gap: Number | None = None
    """The widest gap in nats at such a place."""


class ArmVerdict(Model):
    """What the run came to for one candidate."""

    arm: Name | None = None
    """Which candidate."""
    outcome: Name | None = None
    """promotable, rejected, undecided or error."""
    reason: Text | None = None
    """Why."""
    margin: Number | None = None
    """Half of the interval of its mean over workloads (in `results`), as a fraction: a difference of that size these
    rounds could just not have told from none."""
    args: Arguments | None = None
    """Arguments of its own, which the baseline had not."""
    parity: ArmParity | None = None
    """What it answers, where spec.parity asks for that."""


class Cost(Model):
    """What the run took."""

    gpu_seconds: Count | None = None
    """Accelerators times seconds."""
    idle_gpu_seconds: Count | None = None
    """Of these, idle as the rounds say: neither a server's start nor a measured workload."""
    server_starts: Count | None = None
    """Server processes started."""


class RunProgress(Model):
    """Where the run is."""

    step: Name | None = None
    """The step under way."""
    round: Count | None = None
    """The round under way, counted from 0."""
    job: Name | None = None
    """Its Job."""
    seconds_per_round: Count | None = None
    """Mean of the rounds so far."""
    unplaced_since: Time | None = None
    """Since when it waits for a node, or for its pod to be made."""
    seen: bool | None = None
    """True once the Job was there: if it is gone without an end, somebody has deleted it, and that counts as a try."""
    message: Text | None = None
    """For a person."""


class BenchmarkRunStatus(Model):
    """What was measured and what it means."""

    observed_generation: Count | None = None
    """The generation this status is about."""
    conditions: Conditions | None = None
    """Complete and Failed."""
    fingerprint: Name | None = None
    """Of what is measured: server, arms and workloads, not by which gate it is judged."""
    node: Name | None = None
    """Where the round under way runs, or the latest ran. The next one goes there too if there is room."""
    started_at: Time | None = None
    """When the first round started."""
    finished_at: Time | None = None
    """When the run ended."""
    engine_version: Name | None = None
    """As the server says."""
    paceline: Text | None = None
    """Paceline's release that measured; of several, all, the first one first."""
    image_digests: Strings | None = None
    """Container → the image that ran in the latest round, by its digest: `server` and our `client`."""
    gpu_model: Name | None = None
    """What the accelerators' driver calls them, where it can be asked."""
    driver: Name | None = None
    """Version of the accelerators' driver, likewise."""
    gpus: Names | None = None
    """Ids of the accelerators."""
    rounds: Annotated[tuple[Round, ...], Field(max_length=512)] | None = None
    """Every round, every measured point, valid or not."""
    results: Annotated[tuple[Result, ...], Field(max_length=1024)] | None = None
    """Every candidate against the baseline."""
    crossover: Annotated[tuple[CrossoverSpot, ...], Field(max_length=24)] | None = None
    """Of a run over several concurrencies: which arm is faster at each, rising."""
    verdict: RunVerdict | None = None
    """What the run came to."""
    arm_verdicts: Annotated[tuple[ArmVerdict, ...], Field(max_length=64)] | None = None
    """What it came to for each candidate."""
    cost: Cost | None = None
    """What it took."""
    emulated: bool | None = None
    """True if an emulator served in any round."""
    noise: Number | None = None
    """Coefficient of variation of a point between rounds, as a fraction."""
    progress: RunProgress | None = None
    """Where it is."""
