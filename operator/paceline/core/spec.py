"""The two kinds as the planners see them: what was asked, with every default filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from paceline.core.arm import Arm
from paceline.core.outputs import Parity
from paceline.core.server import Server
from paceline.core.timeouts import USUAL, Timeouts
from paceline.core.verdict import Gate
from paceline.core.workload import Workload


class Purpose(StrEnum):
    GATE = "Gate"
    SEARCH = "Search"
    SWEEP = "Sweep"


class Trigger(StrEnum):
    """What started a run."""

    SPEC = "Spec"
    RETRY = "Retry"
    STALE = "Stale"
    PERSON = "Person"


class PromotionMode(StrEnum):
    AUTOMATIC = "Automatic"
    MANUAL = "Manual"


class UntilDecided(StrEnum):
    """What a pool serves before it has a verdict."""

    BASELINE = "Baseline"
    NOTHING = "Nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTemplate:
    """The cache claim to make, if the deployment asks for one of its own. `size` is a quantity (`400Gi`)."""

    name: str
    size: str
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] = ("ReadWriteMany",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSpec:
    """Identical replicas with their own traffic and their own best configuration."""

    name: str
    replicas: int | None
    """None: left to an autoscaler."""
    arms: tuple[Arm, ...]
    """The baseline, then the candidates, fewer draft tokens first."""
    workloads: tuple[Workload, ...]
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class PromotionSpec:
    mode: PromotionMode = PromotionMode.AUTOMATIC
    until_decided: UntilDecided = UntilDecided.BASELINE
    revision_history_limit: int = 3
    progress_deadline: timedelta = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """A SpeculativeDeployment's spec. `server.target.commit` is None until the prefetch has pinned it."""

    suspend: bool
    server: Server
    pools: tuple[PoolSpec, ...]
    cache_claim: ClaimTemplate | None
    promotion: PromotionSpec = PromotionSpec()
    max_evidence_age: timedelta = timedelta(hours=720)
    keep_revisions: int = 2
    """Of each model on the cache volume, besides those in use."""
    run_pod_labels: Mapping[str, str] = field(default_factory=dict)
    run_gpu_hours: float | None = None
    """What each run may take: accelerators times hours. None: as much as its rounds take."""
    run_parity: Parity | None = None
    """None: what the arms answer is not compared."""
    run_timeouts: Timeouts = USUAL


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
    gpu_hours: float | None = None
    """What it may take: accelerators times hours."""
    parity: Parity | None = None
    """None: what the arms answer is not compared."""
    timeouts: Timeouts = USUAL
    rounds_of: str = ""
    """The run whose rounds are judged by this one's gate; "": all are measured."""
