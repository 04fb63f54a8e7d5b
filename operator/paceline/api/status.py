"""The status of a SpeculativeDeployment, and what both statuses are made of.

Bounds are wide and little is required: a status that is refused is a status lost.
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
Counts = Annotated[dict[str, Count], Field(max_length=64)]
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


class DatasetStatus(Model):
    """A file of prompts as the prefetch found it."""

    source: Name
    """As in spec."""
    revision: Name
    """As in spec."""
    commit: Name | None = None
    """The commit it was at."""
    bytes: Count | None = None
    """Its size."""
    path: Name | None = None
    """Where it is on the cache volume, as pods see it."""


class ModelStatus(DatasetStatus):
    """A repository as the prefetch found it."""

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
    speedup: Number | None = None
    """Its throughput over the baseline's, as its evidence has shown it."""
    since: Time | None = None
    """Since when."""


class Target(Serving):
    """What a pool is to serve; written before anything is done about it."""

    fingerprint: Name | None = None
    """Of what its evidence measured."""
    why: Text | None = None
    """What chose it."""
    stands_since: Time | None = None
    """Since when it has come no further: promotion.progressDeadline counts from then. Absent while nothing is amiss,
    and while there is no room for it."""
    ready: Count | None = None
    """The most of its servers that were ready at once while it is rolled out."""


class PoolProgress(Model):
    """What is being done for a pool."""

    step: Name | None = None
    """The step under way."""
    benchmark_run: Name | None = None
    """The run under way."""
    round: Count | None = None
    """Its round, counted from 0."""
    message: Text | None = None
    """For a person."""


class PoolVerdict(Model):
    """What the run came to that answers the question of now."""

    outcome: Name | None = None
    """Promote, Reject, Inconclusive or Error."""
    winner: Name | None = None
    """The arm that was shown to be faster; empty without one."""
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
    """Of what it measured."""


class Hold(Model):
    """A revision that was taken off because it did not run; another revision, and `retry`, release it."""

    reason: Literal["NotReady", "Crashed"] | None = None
    """What set it. NotReady: it did not come up; Crashed: it served before."""
    message: Text | None = None
    """Why, for a person."""
    since: Time | None = None
    """When."""
    revision: Name | None = None
    """The revision that is held back."""
    arm: Name | None = None
    """`baseline` or a candidate."""
    evidence: Name | None = None
    """The BenchmarkRun on which it was served: a run that has ended since releases it."""
    fingerprint: Name | None = None
    """Of the question at that time."""
    deadline_seconds: Count | None = None
    """The progressDeadline that it missed: a longer one releases it."""


class Handled(Model):
    """Requests by annotation (`retry.paceline.dev/POOL: TOKEN`) that were carried out: the last value of each, which is
    not acted upon again."""

    promote: Name | None = None
    """Last `promote`."""
    retry: Name | None = None
    """Last `retry`."""


class Retried(Model):
    """The last run that a person's `retry` asked for anew."""

    question: Name | None = None
    """What it was asked: other than a fingerprint it counts the gate in."""
    attempt: Count | None = None
    """Its number: neither it nor an earlier one answers the question any more."""
    token: Name | None = None
    """The value of `retry`."""


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
    """What the run came to that answers the question of now; absent while there is none."""
    hold: Hold | None = None
    """What keeps a verdict from being served."""
    handled: Handled | None = None
    """Requests that were carried out."""
    retried: Retried | None = None
    """The run that a person asked for anew."""
    attempts: Count | None = None
    """The latest run's attempt at what is to be measured now."""
    ready_replicas: Count | None = None
    """Servers that are ready."""
    endpoint: Name | None = None
    """Where the pool is reached in the cluster."""


class SpeculativeDeploymentStatus(Model):
    """What is served, why, and by how much it is faster."""

    observed_generation: Count | None = None
    """The generation this status is about."""
    summary: Text | None = None
    """One line: what each pool serves and how much faster that is than the baseline."""
    state: Name | None = None
    """In a word, as kubectl shows it: Stalled and its reason, or what Ready says; AwaitingPromote where it is ready and
    a person is asked."""
    conditions: Conditions | None = None
    """Ready, Reconciling, Stalled, CacheReady, Measuring, Decided, Promoted."""
    notes: Annotated[tuple[Text, ...], Field(max_length=64)] | None = None
    """Worth knowing, and no reason to stop: what preflight found, what a shared claim has otherwise."""
    models: Annotated[tuple[ModelStatus, ...], Field(max_length=64), Unique(("source", "revision"))] | None = None
    """What the prefetch brought."""
    datasets: Annotated[tuple[DatasetStatus, ...], Field(max_length=64), Unique(("source", "revision"))] | None = None
    """What it brought of spec.benchmark.datasets."""
    models_hash: Name | None = None
    """Names the inputs that `models` was resolved from."""
    pools: Annotated[tuple[PoolStatus, ...], Field(max_length=16), Unique(("name",))] | None = None
    """Each pool."""
    refused: Annotated[tuple[Text, ...], Field(max_length=64)] | None = None
    """Requests by annotation that cannot be carried out, each with the way out."""
