"""All conditions and all reasons. This table is their documentation, and no step sets a condition by itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, unique

from paceline.api.status import Condition

_LONGEST_MESSAGE = 32768
"""Maximum characters of a metav1.Condition's message."""


@dataclass(frozen=True, slots=True)
class ReasonRow:
    """What a reason says about which condition. `text` is the reason as shown, if another member of `Reason` has that
    name."""

    condition: str
    status: bool
    message: str
    text: str = ""


@unique
class Reason(Enum):
    """Reasons by condition, the worst first; of several, the first wins. Reconciling, Stalled, ChangePending and
    SpeculationDegraded are absent unless true."""

    # A person must act.
    NameConflict = ReasonRow("Stalled", True, "an object with this name is not managed by Paceline")
    InvalidSpec = ReasonRow("Stalled", True, "the spec cannot be carried out")
    ProfileRequired = ReasonRow(
        "Stalled",
        True,
        "every deployment in this namespace must name a BenchmarkProfile (set by the installation); running servers "
        "keep serving",
    )
    ProfileNotFound = ReasonRow(
        "Stalled", True, "the profile does not exist; running servers keep serving, and nothing new is measured"
    )
    ProfileLocked = ReasonRow("Stalled", True, "the spec contradicts its profile; running servers keep serving")
    FetchFailed = ReasonRow("Stalled", True, "the models could not be downloaded", "PrefetchFailed")
    PreflightFailed = ReasonRow("Stalled", True, "the models do not match the spec")
    NoResourceClaims = ReasonRow(
        "Stalled", True, "servers claim devices, but the cluster has no ResourceClaimTemplates"
    )
    NoImageVolumes = ReasonRow("Stalled", True, "models are images (oci://), but the cluster drops image volumes")
    NoLeaderWorkerSet = ReasonRow(
        "Stalled", True, "a server of several nodes needs LeaderWorkerSet, which is not installed"
    )
    ServerFailed = ReasonRow("Stalled", True, "the server does not start")
    ImageNotPulled = ReasonRow(
        "Stalled", True, "the image of the next servers cannot be pulled; the present servers keep serving"
    )
    NotReady = ReasonRow("Stalled", True, "the baseline does not run; the last revision that served replaces it")
    WriteRefused = ReasonRow(
        "Stalled", True, "an object that Paceline applies is refused, or deleted each time", "Refused"
    )
    PromptsMissing = ReasonRow("Stalled", True, "prompts are missing, so nothing can be measured")
    RefusedForLong = ReasonRow("Stalled", True, "the cluster refuses pods", "PodRefused")
    NeverPlaced = ReasonRow("Stalled", True, "no node or volume matches the request", "Unplaceable")
    NeverStarted = ReasonRow("Stalled", True, "a pod is scheduled but cannot start", "CannotStart")

    # Something needed for Ready is under way.
    Fetching = ReasonRow("Reconciling", True, "models are being downloaded", "Prefetching")
    Starting = ReasonRow("Reconciling", True, "servers are being started")
    RollingOut = ReasonRow("Reconciling", True, "servers are being replaced")
    FetchWaits = ReasonRow("Reconciling", True, "the prefetch has not started", "PrefetchWaiting")
    Restoring = ReasonRow("Reconciling", True, "the previous servers are being restored")

    # Whether every pool serves.
    Crashing = ReasonRow("Ready", False, "a server keeps crashing")
    PodRefused = ReasonRow("Ready", False, "the cluster refuses a server's pod")
    Unplaceable = ReasonRow("Ready", False, "no node or volume matches a server's request")
    CannotStart = ReasonRow("Ready", False, "a server is scheduled but cannot start")
    NodeNotReady = ReasonRow("Ready", False, "a server's node does not answer")
    Paused = ReasonRow("Ready", False, "a pool's Deployment is paused")
    NoCapacity = ReasonRow("Ready", False, "no node has room for a server")
    Evicted = ReasonRow("Ready", False, "a server was evicted from its node")
    ServersStarting = ReasonRow("Ready", False, "fewer servers are ready than requested")
    NothingServes = ReasonRow("Ready", False, "nothing is served until there is a verdict")
    NotStarted = ReasonRow("Ready", False, "no server has started yet")
    Drifted = ReasonRow("Ready", True, "every pool serves, but its servers have additions that were never measured")
    ReplicasIgnored = ReasonRow("Ready", True, "every pool serves, but an autoscaler sets the number of its servers")
    ScaledToZero = ReasonRow("Ready", True, "every pool serves, except those scaled to zero")
    Serving = ReasonRow("Ready", True, "every pool serves")

    # The models are on the cache volume.
    PrefetchFailed = ReasonRow("CacheReady", False, "the models could not be downloaded")
    PrefetchWaiting = ReasonRow(
        "CacheReady", False, "the models are not on the cache volume: the prefetch has not started"
    )
    Prefetching = ReasonRow("CacheReady", False, "models are being downloaded")
    Cached = ReasonRow("CacheReady", True, "the models are on the cache volume")

    # A question is being answered. A run in progress outranks one that waits.
    Measuring = ReasonRow("Measuring", True, "candidates are compared with the baseline")
    BaselineHeld = ReasonRow("Measuring", False, "the baseline does not run, so no candidate can be compared with it")
    WaitingForPrompts = ReasonRow("Measuring", False, "a run is waiting for its prompts")
    WaitingForWindow = ReasonRow("Measuring", False, "spec.benchmark.window is closed, so no round starts")
    RoundRefused = ReasonRow("Measuring", False, "the cluster refuses the pod of a round", "PodRefused")
    WaitingForCapacity = ReasonRow("Measuring", False, "a run has to wait")
    Suspended = ReasonRow("Measuring", False, "spec.suspend is set")
    RunsHeld = ReasonRow("Measuring", False, "a person's hold lets no run start", "Held")
    NothingToMeasure = ReasonRow("Measuring", False, "no question is open")

    # Every pool has a verdict for this generation.
    BenchmarkError = ReasonRow(
        "Decided",
        False,
        "a run failed and its candidates were not judged; annotate retry.paceline.dev/POOL to run it again",
    )
    Inconclusive = ReasonRow("Decided", False, "rounds or budget are used up and candidates are still undecided")
    DecisionHeld = ReasonRow("Decided", False, "a person's hold lets no run start", "Held")
    NotMeasurable = ReasonRow("Decided", False, "no run can compare the candidates, so the baseline is served")
    Undecided = ReasonRow("Decided", False, "no verdict yet")
    AllDecided = ReasonRow("Decided", True, "every pool is decided")

    # Every pool serves a candidate.
    NothingAccepted = ReasonRow("Promoted", False, "the target accepts none of the head's draft tokens")
    OutputsDiffer = ReasonRow("Promoted", False, "a candidate's answers differ from the baseline's")
    BaselineFaster = ReasonRow("Promoted", False, "every candidate was rejected; the baseline is served")
    Held = ReasonRow("Promoted", False, "a hold keeps the candidate from being served")
    AwaitingPromote = ReasonRow("Promoted", False, "promotion.mode is Manual: waiting for a promote request")
    Promoting = ReasonRow("Promoted", False, "a candidate is being rolled out")
    NotDecided = ReasonRow("Promoted", False, "no decision for or against a candidate")
    PromotedAnyway = ReasonRow(
        "Promoted", True, "every pool serves a candidate, at least one regardless of the verdict"
    )
    StillPromoted = ReasonRow(
        "Promoted", True, "every pool serves a candidate, at least one on evidence for an earlier question"
    )
    AllPromoted = ReasonRow("Promoted", True, "every pool serves a candidate")

    # A changed spec does not serve yet (promotion.changes: Gated); absent unless true.
    ChangeAwaitsPromote = ReasonRow(
        "ChangePending",
        True,
        "a changed spec was shown not to be slower, and a person must promote it",
        "AwaitingPromote",
    )
    ChangeRejected = ReasonRow("ChangePending", True, "a changed spec is worse than what serves on", "Rejected")
    ChangeNotMeasured = ReasonRow("ChangePending", True, "a changed spec could not be measured", "Error")
    ChangeInconclusive = ReasonRow(
        "ChangePending", True, "it was not shown that a changed spec is not slower than what serves on", "Inconclusive"
    )
    ChangeWithoutRound = ReasonRow(
        "ChangePending", True, "a changed spec has waited an hour for its first round", "WithoutRound"
    )
    ChangeWaits = ReasonRow("ChangePending", True, "a changed spec waits to be compared with what serves", "Waiting")
    ChangeCompared = ReasonRow("ChangePending", True, "a changed spec is compared with what serves", "Measuring")

    # Speculation stopped paying; absent unless true.
    Hung = ReasonRow("SpeculationDegraded", True, "servers answer their health checks, but no tokens move")
    AcceptanceDropped = ReasonRow("SpeculationDegraded", True, "fewer draft tokens are accepted than were measured")
    FellBack = ReasonRow("SpeculationDegraded", True, "speculation stopped paying, and the baseline is served")
    BeyondCrossover = ReasonRow("SpeculationDegraded", True, "at this load the baseline was measured to be faster")

    # A BenchmarkRun, while it goes on and when it has ended.
    Superseded = ReasonRow("Failed", True, "the question was replaced; this result is never used")
    RunAborted = ReasonRow("Failed", True, "a person stopped it; this result is never used", "Aborted")
    RunError = ReasonRow("Failed", True, "the harness or a server failed; the candidates were not judged", "Error")
    ImportNotAllowed = ReasonRow("Failed", True, "evidence that was measured without a cluster is not allowed here")
    ImportRefused = ReasonRow("Failed", True, "results measured without a cluster are no evidence here")
    RunRefused = ReasonRow("Complete", False, "the cluster refuses what the run needs", "PodRefused")
    RunWaiting = ReasonRow("Complete", False, "a round has to wait", "WaitingForCapacity")
    RunOutsideWindow = ReasonRow(
        "Complete", False, "its deployment's benchmark.window is closed, so no round starts", "WaitingForWindow"
    )
    RunSuspended = ReasonRow("Complete", False, "suspended", "Suspended")
    RunMeasuring = ReasonRow("Complete", False, "rounds are being measured", "Measuring")
    Inconclusively = ReasonRow(
        "Complete", True, "rounds or budget are used up and candidates are still undecided", "Inconclusive"
    )
    Swept = ReasonRow("Complete", True, "the concurrencies are compared")
    Found = ReasonRow("Complete", True, "the best candidate was found; a gate decides on it")
    Reject = ReasonRow("Complete", True, "every candidate was rejected")
    Promote = ReasonRow("Complete", True, "a candidate was shown to be faster")
    BaselinePromoted = ReasonRow("Complete", True, "no candidate is faster; the new baseline may replace what serves")

    @property
    def text(self) -> str:
        """The reason as written in status."""
        return self.value.text or self.name


RANK: Mapping[Reason, int] = {reason: rank for rank, reason in enumerate(Reason)}
OF_A_POOL = frozenset({"Ready", "Measuring", "Decided", "Promoted", "ChangePending", "SpeculationDegraded"})
"""Conditions that each pool has, too. The others concern the whole resource, or would repeat a pool's Ready."""
ORDER: Sequence[str] = ("Ready", "Reconciling", "Stalled", "CacheReady", "Measuring", "Decided", "Promoted",
                        "ChangePending", "SpeculationDegraded", "Complete", "Failed")  # fmt: skip
"""The order of conditions in status: the one in which a person reads them."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a condition is as it is: a reason, for one pool or the whole resource, with a note (no final full stop)."""

    reason: Reason
    pool: str | None = None
    note: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.pool, self.note) if part)


def conditions(causes: Iterable[Cause]) -> dict[str, Cause]:
    """Type of condition → its worst cause; a type without a cause is absent."""
    found: dict[str, Cause] = {}
    for cause in sorted(causes, key=lambda cause: RANK[cause.reason]):
        found.setdefault(cause.reason.value.condition, cause)
    return found


def conditions_to_status(
    causes: Iterable[Cause], previous: Iterable[Condition], generation: int, now: datetime, pool: str | None = None
) -> tuple[Condition, ...]:
    """`status.conditions`, or those of one pool: a type without a cause is left out, the time of a transition stays
    until `status` flips, and the message names every pool that shares the worst reason."""
    causes = [cause for cause in causes if pool is None or _is_of(cause, pool)]
    since: dict[tuple[str, str], str] = {(was.type, was.status): was.last_transition_time for was in previous}
    worst = conditions(causes)
    return tuple(
        Condition(
            type=kind,
            status=(status := "True" if worst[kind].reason.value.status else "False"),
            reason=worst[kind].reason.text,
            message=_message(worst[kind].reason, causes, pool),
            observed_generation=generation,
            last_transition_time=since.get((kind, status)) or now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        for kind in ORDER
        if kind in worst
    )


def _is_of(cause: Cause, pool: str) -> bool:
    return cause.pool == pool and cause.reason.value.condition in OF_A_POOL


def _message(reason: Reason, causes: Sequence[Cause], pool: str | None) -> str:
    """The message of a condition. For one pool, only the pool's notes, because the table's message is about all
    pools."""
    said = [str(cause) if pool is None else cause.note for cause in causes if cause.reason is reason]
    notes = "; ".join(dict.fromkeys(filter(None, said)))
    told = (notes or reason.value.message,) if pool else (reason.value.message, notes)
    return ": ".join(filter(None, told))[:_LONGEST_MESSAGE]
