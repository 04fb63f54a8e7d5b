"""The specs of the two kinds as planners read them, with every default filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from paceline.core.arm import Arm
from paceline.core.gateway import EndpointPicker, Gateway
from paceline.core.outputs import Parity
from paceline.core.server import Server
from paceline.core.timeouts import DEFAULT_TIMEOUTS, Timeouts
from paceline.core.tree import Search
from paceline.core.verdict import Gate
from paceline.core.window import Window
from paceline.core.workload import Workload


class Purpose(StrEnum):
    GATE = "Gate"
    SEARCH = "Search"
    SWEEP = "Sweep"


class Trigger(StrEnum):
    """Why a run was started."""

    SPEC = "Spec"
    RETRY = "Retry"
    STALE = "Stale"
    HOLD = "Hold"
    PERSON = "Person"


class PromotionMode(StrEnum):
    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class CapacityPolicy(StrEnum):
    """Where a run's accelerators come from: free ones, or those of a server that its pool gives up meanwhile."""

    WAIT = "Wait"
    BORROW = "Borrow"


class UntilDecided(StrEnum):
    """What a pool serves until it has a verdict."""

    BASELINE = "Baseline"
    NOTHING = "Nothing"


class Surge(StrEnum):
    """Whether a roll-out tries one server more than the pool has before it takes one down."""

    AUTO = "Auto"
    NEVER = "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplate:
    """The cache claim that the deployment asks Paceline to create. `size` is a quantity (`400Gi`)."""

    name: str
    size: str
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ("ReadWriteMany",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpec:
    """Identical replicas with their own traffic and their own best configuration."""

    name: str
    replicas: int | None
    """None leaves it to an autoscaler."""
    arms: tuple[Arm, ...]
    """The baseline, then the candidates by rising number of draft tokens; those that a search may find among them."""
    workloads: tuple[Workload, ...]
    gate: Gate
    search: Search | None = None
    """None: all arms are compared by the gate. Otherwise a search chooses the candidate that the gate compares."""
    header_value: str | None = None
    """Of the gateway's header; None stands for the pool's name."""
    endpoint_picker: EndpointPicker | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionSpec:
    mode: PromotionMode = PromotionMode.AUTOMATIC
    until_decided: UntilDecided = UntilDecided.BASELINE
    surge: Surge = Surge.AUTO
    revision_history_limit: int = 3
    progress_deadline: timedelta = timedelta(minutes=30)


class GuardAction(StrEnum):
    """What is done when speculation stops paying."""

    FALLBACK = "Fallback"
    NOTIFY = "Notify"
    NONE = "None"


class GuardSource(StrEnum):
    """Where the counters of servers are read."""

    PODS = "Pods"
    PROMETHEUS = "Prometheus"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSpec:
    """`acceptance_drop` is the fraction of the expected accepted draft tokens (acceptance length - 1) that may be
    missing over a `window`. Both numbers are choices, not measurements (docs/decisions/0047)."""

    action: GuardAction = GuardAction.NOTIFY
    acceptance_drop: float = 0.25
    window: timedelta = timedelta(minutes=10)
    source: GuardSource = GuardSource.PODS


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """A SpeculativeDeployment's spec. `server.target.commit` is None until the prefetch has pinned it."""

    suspend: bool
    server: Server
    pools: tuple[PoolSpec, ...]
    cache_claim: ClaimTemplate | None
    promotion: PromotionSpec = PromotionSpec()
    guard: GuardSpec = GuardSpec()
    gateway: Gateway | None = None
    max_evidence_age: timedelta = timedelta(hours=720)
    capacity_policy: CapacityPolicy = CapacityPolicy.WAIT
    min_serving: int = 1
    """Replicas that a pool keeps while it lends one to its run."""
    window: Window | None = None
    """When rounds may start; None: at any time."""
    keep_revisions: int = 2
    """How many unused revisions of each model stay on the cache volume."""
    run_pod_labels: Mapping[str, str] = field(default_factory=dict)
    run_queue_name: str = ""
    run_gpu_hours: float | None = None
    """Budget of each run in accelerator hours; None sets no limit."""
    run_parity: Parity | None = None
    """None: outputs are not compared."""
    run_timeouts: Timeouts = DEFAULT_TIMEOUTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run that was measured without a cluster brings along (0059)."""

    machine: str
    note: str
    """How it was measured, in a line."""
    differs: tuple[str, ...] = ()
    """What its servers had that the spec does not say, in sentences."""
    rounds: tuple[str, ...] = ()
    """The message of each round's client, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """A BenchmarkRun's spec: one comparison, complete in itself (every model has its commit)."""

    pool: str
    server: Server
    arms: tuple[Arm, ...]
    workloads: tuple[Workload, ...]
    gate: Gate
    purpose: Purpose = Purpose.GATE
    attempt: int = 1
    trigger: Trigger = Trigger.SPEC
    token: str = ""
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    queue_name: str = ""
    """The LocalQueue (Kueue) in which rounds wait; "" for none."""
    gpu_hours: float | None = None
    """Budget in accelerator hours; None sets no limit."""
    parity: Parity | None = None
    """None: outputs are not compared."""
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    rounds_of: str = ""
    """The run whose rounds this run's gate judges instead of measuring; "" measures all."""
    measured: Measured | None = None
    """Rounds that were measured without a cluster; this run then measures none."""
