"""The status of both kinds. Bounds are wide and little is required: a status that is refused is a status lost.

Numbers with a fraction are decimal strings, and absent where nothing was measured.
"""

from typing import Annotated, Literal

from pydantic import Field

from paceline.api.model import Model, Unique

Name = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=32768)]
Number = Annotated[str, Field(max_length=32)]
Count = Annotated[int, Field(ge=0)]
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
Names = Annotated[tuple[Name, ...], Field(max_length=64)]
Strings = Annotated[dict[str, Text], Field(max_length=1024)]


class Condition(Model):
    """A metav1.Condition."""

    type: Annotated[str, Field(max_length=316)]
    """What it says something about."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    observed_generation: Count | None = None
    """The generation it was said of."""
    last_transition_time: Time
    """When `status` changed last."""
    reason: Annotated[str, Field(max_length=1024)]
    """Why, in one word of a closed list."""
    message: Text
    """Why, for a person."""


Conditions = Annotated[tuple[Condition, ...], Field(max_length=32), Unique(("type",))]


class ModelStatus(Model):
    """A repository as the prefetch found it."""

    source: Name
    """As in spec."""
    revision: Name
    """As in spec."""
    commit: Name | None = None
    """The commit it was at."""
    bytes: Count | None = None
    """Its size."""
    path: Name | None = None
    """Where it is in the servers."""
    facts: Text | None = None
    """What preflight knows of it, as JSON: from config.json and the heads of its files."""


class Serving(Model):
    """What a pool serves."""

    revision: Name | None = None
    """Hash of the inputs that shape the server process."""
    arm: Name | None = None
    """`baseline` or a candidate."""
    evidence: Name | None = None
    """The BenchmarkRun that showed it to be faster."""
    since: Time | None = None
    """Since when."""


class Target(Serving):
    """What a pool is to serve; written before anything is done about it."""

    fingerprint: Name | None = None
    """Of the question that its evidence answers."""
    why: Text | None = None
    """What chose it."""


class PoolProgress(Model):
    """What is being done for a pool."""

    step: Name | None = None
    """The step under way."""
    benchmark_run: Name | None = None
    """The run under way."""
    round: Count | None = None
    """Its round, counted from 0."""
    rounds: Count | None = None
    """The most it can take."""
    arms: Names | None = None
    """What is still in question."""
    message: Text | None = None
    """For a person."""
    remaining: Name | None = None
    """About how long it will take."""


class PoolVerdict(Model):
    """What the pool's last run came to."""

    outcome: Name | None = None
    """Promote, Reject, Inconclusive or Error."""
    winner: Name | None = None
    """The arm to be served."""
    speedup: Number | None = None
    """Its throughput over the baseline's: geometric mean over workloads."""
    lower: Number | None = None
    """Lower confidence bound of that."""
    upper: Number | None = None
    """Upper confidence bound of that."""
    reason: Text | None = None
    """Why, in one word."""
    message: Text | None = None
    """Why, for a person."""
    crossing: Text | None = None
    """As in the run's verdict: the pool is to be split by concurrency."""
    benchmark_run: Name | None = None
    """The run."""
    fingerprint: Name | None = None
    """Of the question it answers."""


class Hold(Model):
    """What keeps the same evidence from promoting again."""

    reason: Literal["Fallback", "NotReady", "RolledBack", "Aborted"] | None = None
    """What set it."""
    since: Time | None = None
    """When."""
    revision: Name | None = None
    """The revision that is held back."""


class Handled(Model):
    """Requests by annotation that were carried out: the token of each."""

    promote: Name | None = None
    """Last `promote`."""
    abort: Name | None = None
    """Last `abort`."""
    retry: Name | None = None
    """Last `retry`."""
    rollback: Name | None = None
    """Last `rollback`."""


class Past(Serving):
    """A revision that was served."""

    why: Text | None = None
    """What chose it."""


class PoolStatus(Model):
    """One pool."""

    name: Annotated[str, Field(max_length=20)]
    """As in spec."""
    serving: Serving | None = None
    """What it serves."""
    target: Target | None = None
    """What it is to serve."""
    progress: PoolProgress | None = None
    """What is being done."""
    verdict: PoolVerdict | None = None
    """What its last run came to."""
    hold: Hold | None = None
    """What keeps a verdict from being served."""
    handled: Handled | None = None
    """Requests that were carried out."""
    attempts: Count | None = None
    """Runs that were started for the present question."""
    ready_replicas: Count | None = None
    """Servers that are ready."""
    endpoint: Name | None = None
    """Where the pool is reached in the cluster."""
    history: Annotated[tuple[Past, ...], Field(max_length=100)] | None = None
    """What was served before, the latest first."""


class SpeculativeDeploymentStatus(Model):
    """What is served, why, and by how much it is faster."""

    observed_generation: Count | None = None
    """The generation this status is about."""
    summary: Text | None = None
    """One line: what each pool serves and how much faster that is than the baseline."""
    conditions: Conditions | None = None
    """Ready, Reconciling, Stalled, CacheReady, Measuring, Decided, Promoted, SpeculationDegraded."""
    models: Annotated[tuple[ModelStatus, ...], Field(max_length=64), Unique(("source", "revision"))] | None = None
    """What the prefetch brought."""
    models_hash: Name | None = None
    """Names the inputs that `models` was resolved from."""
    pools: Annotated[tuple[PoolStatus, ...], Field(max_length=16), Unique(("name",))] | None = None
    """Each pool."""


class Replicate(Model):
    """One server process of one arm."""

    arm: Name | None = None
    """Which arm."""
    start_seconds: Number | None = None
    """From start to ready."""
    exit_code: int | None = None
    """Set if the server ended by itself."""
    reason: Name | None = None
    """What went wrong with it: one of those of a round, or NotMeasured where it lived and was not as asked."""
    error: Text | None = None
    """The last useful line of its log."""
    resolved: Strings | None = None
    """The server's own arguments that are compared."""
    rest_sha256: Name | None = Field(default=None, alias="restSHA256")
    """Hash of its other arguments."""
    kv_tokens: Count | None = None
    """Tokens that its KV cache holds."""


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
    """All output tokens over the client's duration: what is judged."""
    steady_throughput: Number | None = None
    """The same while all requests of the concurrency were under way; absent at a rate."""
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
    mean_e2e: Number | None = Field(default=None, alias="meanE2E")
    """Mean time of a whole request."""
    p95_e2e: Number | None = Field(default=None, alias="p95E2E")
    """95th percentile of the time of a whole request."""
    accept_length: Number | None = None
    """Tokens per verify step; 1 means that nothing was accepted."""
    accept_rate: Number | None = None
    """Accepted draft tokens as a fraction of those proposed."""
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
    datasets: Strings | None = None
    """Dataset → first 12 hex digits of the SHA-256 of its prompts: of a file, as sha256sum shows it."""
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
    notes: Annotated[tuple[Text, ...], Field(max_length=16)] | None = None
    """What should be known of it: numbers that this engine does not tell, lines that could not be kept."""
    raw: Raw | None = None
    """Where the full lines are, if they could be written."""
    held_seconds: Count | None = None
    """How long its pod held accelerators."""
    idle_seconds: Count | None = None
    """How much of that was neither a server's start nor a measurement."""
    reason: Name | None = None
    """Set where there is no result: ServerArguments, ImagePull, OutOfMemory, StartTimeout, TimedOut, ServerCrashed,
    ClientFailed, Unreadable, Preempted, Evicted, NodeLost or Unschedulable."""
    error: Text | None = None
    """Why there is no result: the last useful line."""


class Result(Model):
    """One candidate on one workload, over all rounds."""

    arm: Name | None = None
    """Which candidate."""
    workload: Name | None = None
    """DATASET@CONCURRENCY, or `mean` for the weighted mean."""
    ratio: Number | None = None
    """Its throughput over the baseline's: geometric mean over rounds."""
    lower: Number | None = None
    """Lower confidence bound of that."""
    upper: Number | None = None
    """Upper confidence bound of that."""
    accept_length: Number | None = None
    """Mean acceptance length."""


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
    """The candidate to be served."""
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


class ArmVerdict(Model):
    """What the run came to for one candidate."""

    arm: Name | None = None
    """Which candidate."""
    outcome: Name | None = None
    """promotable, rejected, undecided or error."""
    reason: Text | None = None
    """Why."""
    ratio: Number | None = None
    """Over all workloads, as in `results`."""
    lower: Number | None = None
    """Lower confidence bound of that."""
    upper: Number | None = None
    """Upper confidence bound of that."""
    aa_floor: Number | None = None
    """Difference of the mean from 1x, as a fraction, that these rounds could just not have told from none."""


class Cost(Model):
    """What the run took."""

    gpu_seconds: Count | None = None
    """Accelerators times seconds."""
    idle_gpu_seconds: Count | None = None
    """Of these, neither a server's start nor a measurement: what no measurement can do without, and what was lost."""
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
    message: Text | None = None
    """For a person."""


class BenchmarkRunStatus(Model):
    """What was measured and what it means."""

    observed_generation: Count | None = None
    """The generation this status is about."""
    summary: Text | None = None
    """One line."""
    conditions: Conditions | None = None
    """Complete and Failed."""
    fingerprint: Name | None = None
    """Of the question."""
    node: Name | None = None
    """The run's node: all rounds run there, until it is lost or has no room; then it has none until the next."""
    started_at: Time | None = None
    """When the first round started."""
    finished_at: Time | None = None
    """When the run ended."""
    engine_version: Name | None = None
    """As the server says."""
    image_digests: Strings | None = None
    """Container → the digest that ran."""
    driver: Name | None = None
    """Version of the accelerators' driver."""
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
