"""The status of a SpeculativeDeployment, and what both statuses are made of.

Bounds are wide and little is required: a status that is refused is a status lost.
Numbers with a fraction are decimal strings, and absent where nothing was measured.
"""

from typing import Annotated, Literal

from pydantic import Field

from paceline.api.model import Unique
from paceline.api.record import Number4, record

Name = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=32768)]
Count = Annotated[int, Field(ge=0)]
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
Names = Annotated[tuple[Name, ...], Field(max_length=64)]
Counts = Annotated[dict[str, Count], Field(max_length=64)]
Strings = Annotated[dict[str, Text], Field(max_length=1024)]


@record
class Condition:
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


@record
class DatasetStatus:
    """A file of prompts as the prefetch found it."""

    source: Name
    """As in spec."""
    revision: Name
    """As in spec."""
    commit: Name = ""
    """The commit it was at."""
    bytes: Count | None = None
    """Its size."""
    path: Name = ""
    """Where it is on the cache volume, as pods see it."""


@record
class ModelStatus(DatasetStatus):
    """A repository as the prefetch found it."""

    facts: Text = ""
    """What preflight knows of it, as JSON: from config.json and the heads of its files."""


@record
class Serving:
    """What a pool serves."""

    revision: Name = ""
    """Hash of the inputs that shape the server process."""
    arm: Name = ""
    """`baseline` or a candidate."""
    evidence: Name = ""
    """The BenchmarkRun that showed it to be faster."""
    speedup: Number4 | None = None
    """Its throughput over the baseline's, as its evidence has shown it."""
    since: Time = ""
    """Since when."""


@record
class Target(Serving):
    """What a pool is to serve; written before anything is done about it."""

    fingerprint: Name = ""
    """Of what its evidence measured."""
    why: Text = ""
    """What chose it."""
    stands_since: Time = ""
    """Since when it has come no further: promotion.progressDeadline counts from then. Absent while nothing is amiss,
    and while there is no room for it."""
    ready: Count | None = None
    """The most of its servers that were ready at once while it is rolled out."""


@record
class PoolProgress:
    """What is being done for a pool."""

    step: Name = ""
    """The step under way."""
    benchmark_run: Name = ""
    """The run under way."""
    round: Count | None = None
    """Its round, counted from 0."""
    message: Text = ""
    """For a person."""


@record
class PoolVerdict:
    """What the run came to that answers the question of now."""

    outcome: Name = ""
    """Promote, Reject, Inconclusive or Error."""
    winner: Name | None = None
    """The arm that was shown to be faster; empty without one."""
    speedup: Number4 | None = None
    """Its throughput over the baseline's: geometric mean over workloads."""
    lower: Number4 | None = None
    """Lower confidence bound of that."""
    upper: Number4 | None = None
    """Upper confidence bound of that."""
    reason: Text = ""
    """Why, in one word."""
    message: Text = ""
    """Why, for a person."""
    crossing: Text = ""
    """As in the run's verdict: the pool is to be split by concurrency."""
    benchmark_run: Name = ""
    """The run."""
    fingerprint: Name = ""
    """Of what it measured."""


@record
class Hold:
    """A revision that was taken off because it did not run; another revision, and `retry`, release it."""

    reason: Literal["NotReady", "Crashed"] | None = None
    """What set it. NotReady: it did not come up; Crashed: it served before."""
    message: Text = ""
    """Why, for a person."""
    since: Time = ""
    """When."""
    revision: Name = ""
    """The revision that is held back."""
    arm: Name = ""
    """`baseline` or a candidate."""
    evidence: Name = ""
    """The BenchmarkRun on which it was served: a run that has ended since releases it."""
    fingerprint: Name = ""
    """Of the question at that time."""
    deadline_seconds: Count | None = None
    """The progressDeadline that it missed: a longer one releases it."""


@record
class Handled:
    """Requests by annotation (`retry.paceline.dev/POOL: TOKEN`) that were carried out: the last value of each, which is
    not acted upon again."""

    promote: Name = ""
    """Last `promote`."""
    retry: Name = ""
    """Last `retry`."""


@record
class Retried:
    """The last run that a person's `retry` asked for anew."""

    question: Name = ""
    """What it was asked: other than a fingerprint it counts the gate in."""
    attempt: Count | None = None
    """Its number: neither it nor an earlier one answers the question any more."""
    token: Name = ""
    """The value of `retry`."""


@record
class PoolStatus:
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
    endpoint: Name = ""
    """Where the pool is reached in the cluster."""


@record
class SpeculativeDeploymentStatus:
    """What is served, why, and by how much it is faster."""

    observed_generation: Count | None = None
    """The generation this status is about."""
    summary: Text = ""
    """One line: what each pool serves and how much faster that is than the baseline."""
    state: Name = ""
    """In a word, as kubectl shows it: Stalled and its reason, or what Ready says; AwaitingPromote where it is ready and
    a person is asked."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled, CacheReady, Measuring, Decided, Promoted."""
    notes: Annotated[tuple[Text, ...], Field(max_length=64)] = ()
    """Worth knowing, and no reason to stop: what preflight found, what a shared claim has otherwise."""
    models: Annotated[tuple[ModelStatus, ...], Field(max_length=64), Unique(("source", "revision"))] = ()
    """What the prefetch brought."""
    datasets: Annotated[tuple[DatasetStatus, ...], Field(max_length=64), Unique(("source", "revision"))] = ()
    """What it brought of spec.benchmark.datasets."""
    models_hash: Name = ""
    """Names the inputs that `models` was resolved from."""
    pools: Annotated[tuple[PoolStatus, ...], Field(max_length=16), Unique(("name",))] = ()
    """Each pool."""
    refused: Annotated[tuple[Text, ...], Field(max_length=64)] = ()
    """Requests by annotation that cannot be carried out, each with the way out."""
