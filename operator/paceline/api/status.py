"""The status of a SpeculativeDeployment, and the parts of both statuses.

Bounds are wide and little is required: a status that is refused is a status lost. Numbers with a fraction are decimal
strings, and absent where nothing was measured. Fields marked INTERNAL are the operator's memory; all others are API.
"""

from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import Field

from paceline.core.record import INTERNAL, Count, Number, Number3, Number4, record
from paceline.core.source import Scheme
from paceline.core.types import Unique

LongName = Annotated[str, Field(max_length=500)]
LongText = Annotated[str, Field(max_length=32768)]
Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
Names = Annotated[tuple[LongName, ...], Field(max_length=64)]
CountMap = Annotated[dict[str, Count], Field(max_length=64)]
Strings = Annotated[dict[str, LongText], Field(max_length=1024)]


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
    message: LongText
    """Reason, in a sentence."""


Conditions = Annotated[tuple[Condition, ...], Field(max_length=32), Unique(("type",))]


@record
class CachedArtifact:
    """A model, or a file of prompts, as the prefetch found it."""

    source: LongName
    """As in spec."""
    revision: LongName
    """As in spec."""
    commit: LongName = ""
    """Commit that it was resolved to."""
    facts: Annotated[dict[str, Any], INTERNAL] = field(default_factory=dict)
    """Facts of a model for preflight: from config.json and the headers of the weight files."""

    @property
    def is_dataset(self) -> bool:
        return self.source.startswith(Scheme.HUB_DATASET)


Caveat = Literal["Emulated", "Imported"]


@record
class ServingEvidence:
    """Evidence that an arm is faster than the baseline, with its caveats."""

    run: LongName = ""
    """The BenchmarkRun; it may have been deleted since."""
    speedup: Number4 | None = None
    """Throughput divided by the baseline's: geometric mean over workloads."""
    caveats: Annotated[tuple[Caveat, ...], Field(max_length=2)] = ()
    """Emulated: an emulator served, and no model ran; Imported: rounds were measured without a cluster."""

    @property
    def emulated(self) -> bool:
        return "Emulated" in self.caveats

    @property
    def imported(self) -> bool:
        return "Imported" in self.caveats


@record
class Serving:
    """What a pool serves."""

    revision: LongName = ""
    """Hash of the inputs that shape the server process."""
    arm: LongName = ""
    """`baseline` or a candidate."""
    start_time: Time = ""
    """When it began to serve."""
    evidence: ServingEvidence = ServingEvidence()
    """Evidence that it is faster; absent for the baseline, and after `promote-anyway`."""


ChangeReason = Literal[
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
"""Why a pool changed what it serves. Started: the first servers; Updated: the spec asks for others; Promoted: by a
verdict; PromotedAnyway: without a verdict, or against it; Demoted: a verdict rejected the promoted arm; TakenDown: the
chosen revision did not run; Fallback: speculation stopped paying; RolledBack: a person rolled back; Aborted: a person
stopped another roll-out; Stopped: nothing is served until there is a verdict."""
MESSAGE_LENGTH = 500
"""Characters of a message that status has many of."""


@record
class Target(Serving):
    """Configuration to serve, chosen at `startTime`; written before any action."""

    fingerprint: LongName = ""
    """Fingerprint of its evidence; after `promote-anyway`, of the overruled verdict."""
    reason: ChangeReason | None = None
    """How it was chosen."""
    message: LongText = ""
    """Reason, in a sentence."""
    request: LongName = ""
    """The request that chose it, as VERB=VALUE; empty if the operator chose by itself."""
    at_once: LongText = ""
    """Why it was not compared with what served before; empty if it was, and if nothing served."""
    stands_since: Time = ""
    """Time of its last progress, from which promotion.progressDeadline counts. Absent while all is well, and while
    accelerators are lacking."""
    ready: Count | None = None
    """Largest number of its servers that were ready at the same time during the roll-out."""
    surge: Literal["Tried", "Skipped", "Withdrawn"] | None = None
    """How servers are replaced if promotion.surge is Auto. Tried: one more server starts first. In place if Skipped
    (not all old servers were ready) or Withdrawn (one more server found no room)."""
    surge_waits_since: Time = ""
    """Since when the additional server waits for room."""


@record
class PoolProgress:
    """Current work on a pool."""

    step: LongName = ""
    """Current step."""
    message: LongText = ""
    """Explanation."""
    because: LongText = ""
    """Why the run was made, for example what changed since the last verdict; empty for a pool's first run."""


@record
class PoolVerdict:
    """Result of the run that answers the current question."""

    outcome: LongName = ""
    """Promote, Reject, Inconclusive or Error."""
    winner: LongName | None = None
    """Arm shown to be faster; empty if there is none."""
    evidence: ServingEvidence = ServingEvidence()
    """The run, and the winner's speed-up."""
    lower: Number4 | None = None
    """Lower confidence bound of the speed-up."""
    upper: Number4 | None = None
    """Upper bound of the speed-up, at the confidence of the whole table."""
    message: LongText = ""
    """Outcome, in a sentence."""
    crossing: Annotated[LongText, INTERNAL] = ""
    """As in the run's verdict: advice to split the pool by concurrency."""


@record
class Change:
    """One change of what a pool serves."""

    time: Time = ""
    """When all servers were of the revision, and ready."""
    revision: LongName = ""
    """Revision served since then; empty if none."""
    arm: LongName = ""
    """`baseline` or a candidate."""
    reason: ChangeReason | None = None
    """Why it is served."""
    message: Annotated[str, Field(max_length=MESSAGE_LENGTH)] = ""
    """Reason, in a sentence."""
    request: LongName = ""
    """The request that asked for it, as VERB=VALUE; empty if the operator chose by itself."""
    evidence: ServingEvidence = ServingEvidence()
    """Evidence that it was faster."""


MOST_CHANGES = 20
"""Entries of `history`."""

HoldReason = Literal["NotReady", "Crashed", "Fallback", "RolledBack", "Aborted"]


@record
class Hold:
    """What may not be served, and why. `retry` releases every hold."""

    revision: LongName
    """Revision that is held back; empty if only a run was aborted."""
    reason: HoldReason
    """NotReady: the revision never became ready; Crashed: it failed later; Fallback: its speculation stopped paying;
    RolledBack: a person rolled it back; Aborted: a person stopped the run or the roll-out."""
    arm: LongName = ""
    """`baseline` or a candidate."""
    message: LongText = ""
    """Reason, in a sentence."""
    start_time: Time = ""
    """Since when it is held."""
    request: Annotated[LongName, INTERNAL] = ""
    """The request that asked for it, as VERB=VALUE; empty if the operator decided by itself."""
    run: Annotated[LongName, INTERNAL] = ""
    """BenchmarkRun on which it was served. A run that ends later releases NotReady, Crashed and Fallback."""
    fingerprint: Annotated[LongName, INTERNAL] = ""
    """Fingerprint of the question at that time."""
    deadline_seconds: Annotated[Count | None, INTERNAL] = None
    """The progressDeadline that it missed; a longer one releases it."""


@record
class Loan:
    """A replica that the pool lends to its run (benchmark.capacityPolicy Borrow); while `borrowed` is absent, the last
    loan, if it gave no round room or the pool needed the server itself."""

    run: LongName = ""
    """BenchmarkRun that it is for."""
    since: Time = ""
    """Time of the loan."""
    waiting_since: Time = ""
    """Since when no round has found room despite the loan; absent while one runs."""
    in_vain: Count | None = None
    """Loans in a row that gave no round room."""
    not_before: Time = ""
    """Earliest time of the next loan."""


@record
class ExpectedLoad:
    """The served candidate on one workload, over all valid rounds of its evidence."""

    workload: LongName = ""
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
class ExpectedTraffic:
    """What the guard compares the servers with; kept here so that it outlives the run."""

    revision: LongName = ""
    """Revision of the candidate."""
    run: LongName = ""
    """BenchmarkRun that measured it."""
    verify_tokens: Count | None = None
    """The most tokens that a verify step checks, the root included."""
    crossover: Number3 | None = None
    """Simultaneous requests above which the baseline is faster, interpolated between two measured loads; absent if no
    run of this deployment has shown the baseline to be faster at a higher load."""
    loads: Annotated[tuple[ExpectedLoad, ...], Field(max_length=24)] = ()
    """Its workloads."""


@record
class Degraded:
    """Why speculation does not pay as measured."""

    reason: Literal["AcceptanceDropped", "Hung", "BeyondCrossover"] | None = None
    """As in the condition SpeculationDegraded."""
    message: LongText = ""
    """Reason, in a sentence with numbers, from when it was first seen."""
    since: Time = ""
    """When it was first seen."""
    revision: LongName = ""
    """Revision that was served."""


@record
class TakenDown:
    """How often a candidate was taken down in a row: each time the wait for its next measurement doubles."""

    revision: LongName = ""
    """Its revision."""
    arm: LongName = ""
    """Its name."""
    reason: HoldReason | None = None
    """As in `holds`."""
    times: Count | None = None
    """Number of times."""
    since: Time = ""
    """The last time."""
    fell_back: Time = ""
    """When its speculation last stopped paying; empty once a person has asked to serve it again. Older evidence cannot
    promote it."""


MOST_TAKEN_DOWN = 9
"""Entries of `takenDown`."""


@record
class Handled:
    """Requests by annotation (`retry.paceline.dev/POOL: TOKEN`) that were carried out: the last value of each, which
    does not act again."""

    promote: LongName = ""
    """Last `promote`."""
    promote_anyway: LongName = ""
    """Last `promote-anyway`."""
    abort: LongName = ""
    """Last `abort`."""
    retry: LongName = ""
    """Last `retry`."""
    rollback: LongName = ""
    """Last `rollback`."""


@record
class Retried:
    """The last run that a person's `retry` repeated."""

    question: LongName = ""
    """Hash of its question: the fingerprint with the gate."""
    attempt: Count | None = None
    """Its attempt; runs up to this one no longer answer the question."""
    token: LongName = ""
    """The value of `retry`."""


@record
class EffectiveGate:
    """A pool's gate in force, from its own gate, spec.gate and the defaults; limits are as written."""

    min_improvement: LongName = ""
    """As in spec."""
    max_regression: LongName = ""
    """As in spec."""
    max_slowdown: LongName = ""
    """As in spec."""
    confidence: LongName = ""
    """As in spec."""
    decide_after_rounds: Annotated[tuple[Count, ...], Field(max_length=8)] = ()
    """As in spec."""


@record
class PoolStatus:
    """One pool."""

    name: Annotated[str, Field(max_length=20)]
    """As in spec."""
    conditions: Conditions = ()
    """Ready, Measuring, Decided, Promoted, ChangePending and SpeculationDegraded of this pool."""
    candidates: Annotated[tuple[LongName, ...], Field(max_length=64)] = ()
    """Arms compared with the baseline; with a search, its arms. Absent while spec is invalid."""
    gate: EffectiveGate | None = None
    """How it is judged; absent while spec is invalid."""
    serving: Serving | None = None
    """What it serves."""
    ready_replicas: Count | None = None
    """Servers that are ready."""
    endpoint: LongName = ""
    """Address of the pool in the cluster."""
    benchmark_run: LongName = ""
    """The BenchmarkRun that is under way, or that has decided the current question."""
    verdict: PoolVerdict | None = None
    """Result of the run that answers the current question; absent if there is none."""
    holds: Annotated[tuple[Hold, ...], Field(max_length=16), Unique(("revision", "reason"))] = ()
    """What may not be served: failed revisions, and what a person has taken back."""
    history: Annotated[tuple[Change, ...], Field(max_length=MOST_CHANGES)] = ()
    """Changes of what it serves, the latest first; older ones are dropped."""
    target: Annotated[Target | None, INTERNAL] = None
    """What to serve."""
    progress: Annotated[PoolProgress | None, INTERNAL] = None
    """Current work."""
    expected: Annotated[ExpectedTraffic | None, INTERNAL] = None
    """What the guard expects of the served candidate."""
    degraded: Annotated[Degraded | None, INTERNAL] = None
    """Why speculation does not pay as measured; absent while it does, and while nothing is known."""
    taken_down: Annotated[tuple[TakenDown, ...], Field(max_length=MOST_TAKEN_DOWN), INTERNAL] = ()
    """Candidates that were taken down, the latest first."""
    handled: Annotated[Handled | None, INTERNAL] = None
    """Requests that were carried out."""
    kept_speed: Annotated[Number4 | None, INTERNAL] = None
    """Product of the speeds, as ratios to what served before, of the changes accepted since one was shown to be faster:
    0.98 if they may have cost 2 %. Below 1 - gate.maxSlowdown the next one waits for a person."""
    retried: Annotated[Retried | None, INTERNAL] = None
    """The last run that a person's `retry` repeated."""
    attempts: Annotated[Count | None, INTERNAL] = None
    """Attempt of the latest run for the current fingerprint."""
    borrowed: Annotated[Count | None, INTERNAL] = None
    """Replicas that the pool lends to its run now: it has spec.pools[].replicas minus these."""
    loan: Annotated[Loan | None, INTERNAL] = None
    """What is lent, and to which run."""


@record
class SpeculativeDeploymentStatus:
    """What is served, why, and how much faster it is."""

    observed_generation: Count | None = None
    """Generation that this status describes."""
    summary: LongText = ""
    """One line: what each pool serves and its speed-up over the baseline, and whether a change waits."""
    state: LongName = ""
    """One word for kubectl: Stalled's reason, or Ready's; AwaitingPromote if it is ready and a person must promote."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled, CacheReady, Measuring, Decided, Promoted, ChangePending, SpeculationDegraded."""
    served_name: Annotated[str, Field(max_length=300)] = ""
    """The model's name in requests; absent while spec is invalid."""
    engine: LongName = ""
    """Its type and version; absent while spec is invalid."""
    claim_name: LongName = ""
    """Claim of the models; absent with hostPath."""
    notes: Annotated[tuple[LongText, ...], Field(max_length=64)] = ()
    """Remarks that do not stop anything: findings of preflight, differences of a shared claim."""
    refused: Annotated[tuple[LongText, ...], Field(max_length=64)] = ()
    """Requests by annotation that cannot be carried out, each with what to write instead."""
    artifacts: Annotated[tuple[CachedArtifact, ...], Field(max_length=128), Unique(("source", "revision"))] = ()
    """Models and datasets that were downloaded."""
    pools: Annotated[tuple[PoolStatus, ...], Field(max_length=16), Unique(("name",))] = ()
    """Status of each pool."""
    volume: Annotated[LongName, INTERNAL] = ""
    """Where `artifacts` are: the claim, or the path on the host; empty once they are gone."""
