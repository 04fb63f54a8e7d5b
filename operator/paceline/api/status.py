"""The status of a SpeculativeDeployment, and what both statuses are made of.

Bounds are wide and little is required: a status that is refused is a status lost.
Numbers with a fraction are decimal strings, and absent where nothing was measured.
"""

from typing import Annotated, Literal

from pydantic import Field

from paceline.api.record import Number, Number3, Number4, record
from paceline.core.types import Unique

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
    """Aspect that it describes."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    observed_generation: Count | None = None
    """Generation that it describes."""
    last_transition_time: Time
    """Last change of `status`."""
    reason: Annotated[str, Field(max_length=1024)]
    """Reason, one word of a closed list."""
    message: Text
    """Reason, in a sentence."""


Conditions = Annotated[tuple[Condition, ...], Field(max_length=32), Unique(("type",))]


@record
class DatasetStatus:
    """A file of prompts as the prefetch found it."""

    source: Name
    """As in spec."""
    revision: Name
    """As in spec."""
    commit: Name = ""
    """Commit that it was resolved to."""
    bytes: Count | None = None
    """Its size."""
    path: Name = ""
    """Path on the cache volume, as pods see it."""


@record
class ModelStatus(DatasetStatus):
    """A repository as the prefetch found it."""

    facts: Text = ""
    """Facts for preflight, as JSON: from config.json and the headers of the weight files."""


@record
class Serving:
    """What a pool serves."""

    revision: Name = ""
    """Hash of the inputs that shape the server process."""
    arm: Name = ""
    """`baseline` or a candidate."""
    evidence: Name = ""
    """BenchmarkRun that showed it to be faster."""
    speedup: Number4 | None = None
    """Its throughput divided by the baseline's, according to its evidence."""
    emulated: bool | None = None
    """True if an emulator served in its evidence: no model ran."""
    imported: bool = False
    """True if its evidence was measured without a cluster, at least in part."""
    since: Time = ""
    """Start of serving."""


Kind = Literal[
    "Started",
    "Updated",
    "Promoted",
    "PromotedAnyway",
    "Demoted",
    "TakenDown",
    "Fallback",
    "RolledBack",
    "Aborted",
    "Stopped",
]
"""How a pool came to serve what it serves. Started: the first servers; Updated: the spec asks for others; Promoted: by
a verdict; PromotedAnyway: against one, or without; Demoted: a verdict rejects what was promoted; TakenDown: what was
chosen did not run; Fallback: speculation stopped paying; RolledBack: a person went back; Aborted: a person ended the
roll-out of another; Stopped: nothing is served until there is a verdict."""
WHY_LENGTH = 500
"""Characters of a reason in `history`, of which status has many."""


@record
class Target(Serving):
    """Configuration to serve; written before any action."""

    fingerprint: Name = ""
    """Fingerprint of its evidence; of a candidate that was promoted against a verdict, that of the verdict."""
    why: Text = ""
    """Reason for the choice."""
    kind: Kind | None = None
    """How it was chosen; absent in the status of an older release."""
    request: Name = ""
    """The request that it was chosen by, as VERB=VALUE; empty if the operator chose by itself."""
    stands_since: Time = ""
    """Time of its last progress, from which promotion.progressDeadline counts. Absent while all is well, and while
    accelerators are lacking."""
    ready: Count | None = None
    """Largest number of its servers that were ready at the same time during the roll-out."""
    surge: Literal["Tried", "Skipped", "Withdrawn"] | None = None
    """How its servers replace those before, where promotion.surge is Auto. Tried: by one server more; in place if
    Skipped, as not all of those before were ready, or Withdrawn, as one server more found no room."""
    surge_waits_since: Time = ""
    """Since when the one server more has been waiting for room."""


@record
class PoolProgress:
    """Current work on a pool."""

    step: Name = ""
    """Current step."""
    benchmark_run: Name = ""
    """Current run."""
    round: Count | None = None
    """Current round of the run, counted from 0."""
    message: Text = ""
    """Explanation."""
    why: Text = ""
    """Why the run was made, for example what changed since the last verdict; empty for a pool's first run."""


@record
class PoolVerdict:
    """Result of the run that answers the current question."""

    outcome: Name = ""
    """Promote, Reject, Inconclusive or Error."""
    winner: Name | None = None
    """Arm shown to be faster; empty if there is none."""
    speedup: Number4 | None = None
    """Its throughput divided by the baseline's: geometric mean over workloads."""
    lower: Number4 | None = None
    """Lower confidence bound of that."""
    upper: Number4 | None = None
    """Upper confidence bound of that, at the confidence of the whole table."""
    reason: Text = ""
    """Reason, in one word."""
    message: Text = ""
    """Reason, in a sentence."""
    crossing: Text = ""
    """As in the run's verdict: advice to split the pool by concurrency."""
    benchmark_run: Name = ""
    """The run."""
    fingerprint: Name = ""
    """Fingerprint of the run."""
    emulated: bool | None = None
    """True if an emulator served in the run: no model ran."""
    imported: bool = False
    """True if the run has rounds that were measured without a cluster."""


@record
class Change:
    """One change of what a pool serves."""

    time: Time = ""
    """When all servers were of the revision, and ready."""
    revision: Name = ""
    """What serves since then; empty if nothing does."""
    arm: Name = ""
    """`baseline` or a candidate."""
    kind: Kind | None = None
    """How it came to be served."""
    speedup: Number4 | None = None
    """Its throughput divided by the baseline's, according to its evidence."""
    evidence: Name = ""
    """BenchmarkRun that showed it to be faster; it may have been deleted since."""
    emulated: bool | None = None
    """True if an emulator served in it: no model ran."""
    imported: bool = False
    """True if it has rounds that were measured without a cluster."""
    why: Annotated[str, Field(max_length=WHY_LENGTH)] = ""
    """Reason for the choice."""
    request: Name = ""
    """The request that asked for it, as VERB=VALUE; empty if the operator chose by itself."""


MOST_CHANGES = 20
"""Entries of `history`."""

HoldReason = Literal["NotReady", "Crashed", "Fallback", "RolledBack", "Aborted"]


@record
class Hold:
    """What may not be served, and why: by `retry` it is released whatever its reason."""

    reason: HoldReason | None = None
    """NotReady: the revision never became ready; Crashed: it had served before; Fallback: its speculation stopped
    paying; RolledBack: a person went back from it; Aborted: a person ended the run or the roll-out."""
    request: Name = ""
    """The request that asked for it, as VERB=VALUE; empty if the operator decided by itself."""
    message: Text = ""
    """Reason, in a sentence."""
    since: Time = ""
    """Time of the hold."""
    revision: Name = ""
    """Revision that is held back; empty if only a run was aborted."""
    arm: Name = ""
    """`baseline` or a candidate."""
    evidence: Name = ""
    """BenchmarkRun on which it was served. A run that ends later releases NotReady, Crashed and Fallback."""
    fingerprint: Name = ""
    """Fingerprint of the question at that time."""
    deadline_seconds: Count | None = None
    """The progressDeadline that it missed; a longer one releases it."""


@record
class Loan:
    """A replica that the pool gives up so that its run has room (benchmark.capacityPolicy Borrow); or, while `borrowed`
    is absent, the last one if it was in vain or the pool needed the server itself."""

    run: Name = ""
    """BenchmarkRun that it is for."""
    since: Time = ""
    """Time of the loan."""
    nodes: Names = ()
    """Nodes of the pool's servers at that time."""
    waiting_since: Time = ""
    """Time since which no round has found room in spite of it; absent while one runs, and while another run measures on
    one of these nodes."""
    in_vain: Count | None = None
    """Loans in a row that gave no round room."""
    not_before: Time = ""
    """Earliest time of the next loan."""


@record
class ExpectedLoad:
    """The served candidate on one workload, over all valid rounds of its evidence."""

    workload: Name = ""
    """DATASET@CONCURRENCY, DATASET@FROM-TO (a ramp) or DATASET@RATE/s."""
    concurrency: Number3 | None = None
    """Mean number of requests under way."""
    accept_length: Number3 | None = None
    """Mean acceptance length; absent if its engine cannot show it."""
    mean_ttft: Number | None = None
    """Mean seconds to the first token."""
    mean_tpot: Number | None = None
    """Mean seconds per further token."""


@record
class Expected:
    """What the guard compares the servers with; kept here so that it outlives the run."""

    revision: Name = ""
    """Revision of the candidate."""
    evidence: Name = ""
    """BenchmarkRun that measured it."""
    verify_tokens: Count | None = None
    """The most tokens that a verify step checks, the root included."""
    crossover: Number3 | None = None
    """Simultaneous requests above which the baseline is faster, between the two loads on either side that were
    measured; absent if no run of this deployment has shown the baseline to be faster at a higher load."""
    loads: Annotated[tuple[ExpectedLoad, ...], Field(max_length=24)] = ()
    """Its workloads."""


@record
class Degraded:
    """Why speculation does not pay as measured."""

    reason: Literal["AcceptanceDropped", "Hung", "BeyondCrossover"] | None = None
    """As in the condition SpeculationDegraded."""
    message: Text = ""
    """Reason, in a sentence with numbers, from when it was first seen."""
    since: Time = ""
    """When it was first seen."""
    revision: Name = ""
    """Revision that was served."""


@record
class TakenDown:
    """How often a candidate was taken down in a row: each time it takes twice as long until it is measured again."""

    revision: Name = ""
    """Its revision."""
    arm: Name = ""
    """Its name."""
    reason: HoldReason | None = None
    """As in `hold`."""
    message: Annotated[str, Field(max_length=WHY_LENGTH)] = ""
    """Reason, in a sentence."""
    times: Count | None = None
    """Number of times."""
    since: Time = ""
    """The last time."""
    fell_back: Time = ""
    """When its speculation last stopped paying; empty once a person has asked to serve it again. No evidence from
    before promotes it."""


MOST_TAKEN_DOWN = 8
"""Entries of `takenDownBefore`."""


@record
class Handled:
    """Requests by annotation (`retry.paceline.dev/POOL: TOKEN`) that were carried out: the last value of each, which
    does not act again."""

    promote: Name = ""
    """Last `promote`."""
    promote_anyway: Name = ""
    """Last `promote-anyway`."""
    abort: Name = ""
    """Last `abort`."""
    retry: Name = ""
    """Last `retry`."""
    rollback: Name = ""
    """Last `rollback`."""


@record
class DroppedPool:
    """A pool that spec.pools no longer has, while annotations of it remain: they do not act again if it comes back."""

    name: Annotated[str, Field(max_length=20)]
    """As it was in spec."""
    handled: Handled | None = None
    """Requests that were carried out, and whose annotations are still set."""


@record
class Retried:
    """The last run that a person's `retry` repeated."""

    question: Name = ""
    """Hash of its question: the fingerprint with the gate."""
    attempt: Count | None = None
    """Its attempt; runs up to this one no longer answer the question."""
    token: Name = ""
    """The value of `retry`."""


@record
class EffectiveGate:
    """The rule of a pool's gate, as spec.gate, the pool's and the defaults come to it; limits are as written."""

    min_improvement: Name = ""
    """As in spec."""
    max_regression: Name = ""
    """As in spec."""
    confidence: Name = ""
    """As in spec."""
    decide_after_rounds: Annotated[tuple[Count, ...], Field(max_length=8)] = ()
    """As in spec."""


@record
class EffectivePool:
    """What is asked of one pool."""

    name: Annotated[str, Field(max_length=20)]
    """As in spec."""
    candidates: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    """What is compared with the baseline; with a search, what it chooses from."""
    gate: EffectiveGate | None = None
    """How it is judged."""


@record
class Effective:
    """What spec comes to where it leaves out what follows from the rest."""

    served_name: Annotated[str, Field(max_length=300)] = ""
    """The model's name in requests."""
    engine: Name = ""
    """Type and version, which decide which flags are emitted and checked."""
    claim_name: Name = ""
    """The claim of the models; absent with hostPath."""
    pools: Annotated[tuple[EffectivePool, ...], Field(max_length=8), Unique(("name",))] = ()
    """What is asked of each pool."""


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
    """Current work."""
    verdict: PoolVerdict | None = None
    """Result of the run that answers the current question; absent if there is none."""
    hold: Hold | None = None
    """What may not be served."""
    expected: Expected | None = None
    """What the guard expects of the served candidate."""
    degraded: Degraded | None = None
    """Why speculation does not pay as measured; absent while it does, and while nothing is known."""
    taken_down: TakenDown | None = None
    """The candidate that was taken down last."""
    taken_down_before: Annotated[tuple[TakenDown, ...], Field(max_length=MOST_TAKEN_DOWN)] = ()
    """Others that were taken down before it, the latest first."""
    handled: Handled | None = None
    """Requests that were carried out."""
    history: Annotated[tuple[Change, ...], Field(max_length=MOST_CHANGES)] = ()
    """Changes of what it serves, the latest first; older ones are dropped."""
    retried: Retried | None = None
    """The last run that a person's `retry` repeated."""
    attempts: Count | None = None
    """Attempt of the latest run for the current fingerprint."""
    borrowed: Count | None = None
    """Replicas that the pool gives up for its run now: it is asked for spec.pools[].replicas minus these."""
    loan: Loan | None = None
    """What is given up, and for which run."""
    ready_replicas: Count | None = None
    """Servers that are ready."""
    endpoint: Name = ""
    """Address of the pool in the cluster."""


@record
class SpeculativeDeploymentStatus:
    """What is served, why, and how much faster it is."""

    observed_generation: Count | None = None
    """Generation that this status describes."""
    summary: Text = ""
    """One line: what each pool serves and its speed-up over the baseline."""
    state: Name = ""
    """One word for kubectl: Stalled's reason, or Ready's; AwaitingPromote if it is ready and a person must promote."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled, CacheReady, Measuring, Decided, Promoted, SpeculationDegraded."""
    effective: Effective | None = None
    """What spec comes to; absent while spec is invalid."""
    notes: Annotated[tuple[Text, ...], Field(max_length=64)] = ()
    """Remarks that do not stop anything: findings of preflight, differences of a shared claim."""
    models: Annotated[tuple[ModelStatus, ...], Field(max_length=64), Unique(("source", "revision"))] = ()
    """Models that the prefetch downloaded."""
    datasets: Annotated[tuple[DatasetStatus, ...], Field(max_length=64), Unique(("source", "revision"))] = ()
    """Datasets of spec.benchmark.datasets that the prefetch downloaded."""
    models_hash: Name = ""
    """Hash of the inputs that `models` was resolved from."""
    pools: Annotated[tuple[PoolStatus, ...], Field(max_length=16), Unique(("name",))] = ()
    """Status of each pool."""
    dropped: Annotated[tuple[DroppedPool, ...], Field(max_length=64), Unique(("name",))] = ()
    """Pools that spec.pools no longer has, and requests to them that were carried out."""
    refused: Annotated[tuple[Text, ...], Field(max_length=64)] = ()
    """Requests by annotation that cannot be carried out, each with what to write instead."""
