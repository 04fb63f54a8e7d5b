"""The specs of the two kinds for planners, with every default filled in."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from paceline.core.arm import INCUMBENT, Arm
from paceline.core.gate import Gate
from paceline.core.gateway import EndpointPickerReference, Gateway
from paceline.core.model import model
from paceline.core.outputs import MOST_COMPARED, UNASKED, Parity
from paceline.core.server import Server
from paceline.core.timeouts import DEFAULT_TIMEOUTS, Timeouts
from paceline.core.tree import Search
from paceline.core.types import Duration, ObjectName, PercentageBelow100, Quantity, Share
from paceline.core.window import Window
from paceline.core.workload import Workload

LONGEST_NOTE, LONGEST_SENTENCE = 4096, 1024
MOST_ROUNDS = 64
"""Rounds that a run may import: as many as `decideAfterRounds` allows, plus replaced ones."""


class Purpose(StrEnum):
    GATE = "Gate"
    SEARCH = "Search"
    SWEEP = "Sweep"


MAIN = "main"
"""The pool of a deployment without named pools."""


def purpose_of(spec: Mapping[str, Any]) -> Purpose:
    """The purpose of a BenchmarkRun with this spec, whoever wrote it."""
    return next((purpose for purpose in Purpose if purpose.value.lower() in spec), Purpose.GATE)


def source_run(spec: Mapping[str, Any]) -> str:
    """The run whose rounds this BenchmarkRun's gate judges; "" if it measures its own."""
    return (spec.get("gate") or {}).get("roundsOf") or ""


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
    """Where a run's accelerators come from: free ones, or those of a server that the pool lends to the run."""

    WAIT = "Wait"
    BORROW = "Borrow"


class Changes(StrEnum):
    """When an edit of the engine, the draft or a shape reaches what serves."""

    GATED = "Gated"
    IMMEDIATE = "Immediate"


class UntilDecided(StrEnum):
    """What a pool serves until it has a verdict."""

    BASELINE = "Baseline"
    NOTHING = "Nothing"


class Surge(StrEnum):
    """Whether a roll-out starts one more server before it stops one."""

    AUTO = "Auto"
    NEVER = "Never"


@model
class ClaimTemplate:
    """A PersistentVolumeClaim to create for the models. It outlives the deployment."""

    name: ObjectName = ""
    """Name of the PersistentVolumeClaim; NAME-models of a SpeculativeDeployment NAME if absent."""
    size: Quantity
    """Storage to request."""
    storage_class_name: ObjectName | None = None
    """Storage class; the cluster's default if absent."""
    access_modes: Annotated[
        tuple[Literal["ReadWriteOnce", "ReadWriteMany"], ...], Field(min_length=1, max_length=2)
    ] = ("ReadWriteMany",)
    """Access modes. A ReadWriteOnce volume attaches to one node at a time: servers and rounds
    on other nodes wait, unless the volume is itself bound to one node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """Identical replicas with their own traffic and their own best configuration."""

    name: str
    replicas: int | None
    """None if an autoscaler decides."""
    arms: tuple[Arm, ...]
    """The baseline, then the candidates in order of draft tokens, including those generated for a search."""
    workloads: tuple[Workload, ...]
    gate: Gate
    search: Search | None = None
    """None: the gate compares all arms. Otherwise a search chooses the candidate for the gate."""
    header_value: str | None = None
    """Value of the gateway's header; None stands for the pool's name."""
    endpoint_picker_ref: EndpointPickerReference | None = None


@model
class PromotionSpec:
    """How a verdict goes live."""

    mode: PromotionMode = PromotionMode.AUTOMATIC
    """Automatic, or Manual: wait for a person's `promote` request."""
    changes: Changes = Changes.GATED
    """Gated: what serves goes on until an edit of engine, draft or shape was shown, on the same accelerators, not to be
    slower (gate.maxSlowdown). Immediate: an edit is served at once, without speculation until the verdict."""
    max_output_change: PercentageBelow100 = 0.1
    """Share of the compared prompts that a changed spec may answer otherwise than what serves, beyond near ties; if it
    is more, an accepted change waits for a person's `promote` request."""
    until_decided: UntilDecided = UntilDecided.BASELINE
    """What is served until there is a verdict."""
    surge: Surge = Surge.AUTO
    """How servers are replaced. Auto: one more server than `replicas` is started first, so that no request is lost; if
    it finds no room within a minute, servers are replaced in place, one at a time. Never: always in place. Servers of
    several nodes are always replaced in place."""
    revision_history_limit: Annotated[int, Field(ge=1, le=50)] = 3
    """Renderings and finished runs that a pool keeps in addition to those in use."""
    progress_deadline: Duration = timedelta(minutes=30)
    """Time without progress after which a revision is replaced, counted from its selection or from the last additional
    ready server; also the longest time that a served revision may have no ready server."""


class GuardAction(StrEnum):
    """What is done when speculation stops paying."""

    FALLBACK = "Fallback"
    NOTIFY = "Notify"
    NONE = "None"


class GuardSource(StrEnum):
    """Where the counters of servers are read."""

    PODS = "Pods"
    PROMETHEUS = "Prometheus"


@model
class GuardSpec:
    """What happens when speculation stops paying in production."""

    # Both numbers are choices, not measurements (docs/decisions/0047).
    action: GuardAction = GuardAction.NOTIFY
    """Notify: the condition SpeculationDegraded and an Event. Fallback: also serve the baseline if
    acceptance dropped or servers hang, until newer evidence. None: servers are not watched."""
    acceptance_drop: Share = 0.25
    """Share of the accepted draft tokens per verify step (acceptance length - 1) that may be missing, compared with the
    evidence at this load."""
    window: Duration = timedelta(minutes=10)
    """Time over which servers are judged."""
    source: GuardSource = GuardSource.PODS
    """Where counters are read. Pods: each server's /metrics. Prometheus: the chart's prometheus.url; its series need
    the labels namespace and pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """A SpeculativeDeployment's spec. `server.target.commit` is None until the prefetch has resolved it."""

    suspend: bool
    server: Server
    pools: tuple[PoolSettings, ...]
    cache_claim: ClaimTemplate | None
    promotion: PromotionSpec = field(default_factory=PromotionSpec)
    guard: GuardSpec = field(default_factory=GuardSpec)
    gateway: Gateway | None = None
    max_evidence_age: timedelta = timedelta(hours=720)
    capacity_policy: CapacityPolicy = CapacityPolicy.WAIT
    min_serving: int = 1
    """Replicas that a pool keeps while its run borrows one."""
    window: Window | None = None
    """When rounds may start; None: any time."""
    keep_revisions: int = 2
    """Number of unused revisions of each model that stay on the cache volume."""
    run_pod_labels: Mapping[str, str] = field(default_factory=dict)
    run_queue_name: str = ""
    run_gpu_hours: float | None = None
    """Budget of each run in accelerator hours; None sets no limit."""
    run_parity: Parity | None = None
    """None: outputs are not compared."""
    run_timeouts: Timeouts = DEFAULT_TIMEOUTS


@model
class Measured:
    """Rounds that `paceline measure` has measured on a machine without a cluster."""

    machine: Annotated[str, Field(max_length=253)]
    """The machine."""
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""
    """How it was measured, in one line."""
    differs: Annotated[tuple[Annotated[str, Field(max_length=LONGEST_SENTENCE)], ...], Field(max_length=32)] = ()
    """How the servers differed from this spec, for example by another program. Such rounds are not evidence for this
    spec."""
    rounds: Annotated[int, Field(ge=0, le=MOST_ROUNDS)] = 0
    """Number of its rounds with a result; the file has them as BenchmarkRounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """A BenchmarkRun's spec: one comparison, complete in itself (every model has its commit)."""

    pool: str
    server: Server
    arms: tuple[Arm, ...]
    workloads: tuple[Workload, ...]
    gate: Gate
    purpose: Purpose = Purpose.GATE
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    queue_name: str = ""
    """The LocalQueue (Kueue) in which rounds wait; "" if none."""
    gpu_hours: float | None = None
    """Budget in accelerator hours; None sets no limit."""
    parity: Parity | None = None
    """None: outputs are not compared."""
    timeouts: Timeouts = DEFAULT_TIMEOUTS
    rounds_of: str = ""
    """The run whose rounds this run's gate judges instead of measuring; "" measures all."""
    measured: Measured | None = None
    """Rounds that were measured without a cluster; this run then measures none itself."""

    @property
    def compared_outputs(self) -> Parity | None:
        """The comparison of the arms' answers; in a run about a changed spec there is one without `parity`, too."""
        names = [arm.name for arm in self.arms]
        if self.parity or INCUMBENT not in names or len(names) > MOST_COMPARED:
            return self.parity
        return replace(UNASKED, samples=min(UNASKED.samples, self.workloads[0].dataset.requests))
