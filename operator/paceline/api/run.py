"""The spec of a BenchmarkRun: one comparison, complete in itself."""

from typing import Annotated

from pydantic import Field

from paceline import core
from paceline.api.cache import on_the_claim
from paceline.api.compatibility import COUNT_OF_SHAPES, ONE_SHAPE, arm_rules, engine_and_node
from paceline.api.deployment import TargetSpec
from paceline.api.draft import OF_DEPTHS, DraftSpec, ShapeSpec
from paceline.api.engine import EngineSpec
from paceline.api.gate import (
    MOST_POINTS,
    MOST_SEARCHED,
    BudgetSpec,
    GateSpec,
)
from paceline.api.load import (
    GOOD_SECONDS,
    LEAST_SECONDS,
    MOST_REQUESTS,
    RATE_RULE,
    TOO_SHORT,
    Rate,
    arriving,
    lasts,
    requests_rule,
)
from paceline.api.model import SchemaModel
from paceline.api.pod import NO_LABELS_OF_OURS, NOT_OF_THE_ACCELERATOR, ONE_QUEUE, Tolerations
from paceline.api.prompts import PromptsSpec, only_of_the_hub
from paceline.api.rules import IMMUTABLE, Rule, count_of, one_of
from paceline.core import WAVES
from paceline.core.outputs import MOST_COMPARED
from paceline.core.types import (
    Commit,
    Confidence,
    HostPath,
    Labels,
    ObjectName,
    PoolName,
    QueueName,
    Revision,
    Unique,
)

MOST_WORKLOADS = 24


class RunTarget(TargetSpec):
    """The served model."""

    revision: Revision = "main"
    """Branch or tag of the commit. A run resolves nothing."""
    commit: Commit | None = None
    """Commit in the cache: the directory below snapshots/. Not needed for pvc:// and oci://."""


class RunDraft(DraftSpec):
    """A draft head and its algorithm."""

    commit: Commit | None = None
    """Commit in the cache: the directory below snapshots/. Not needed for pvc:// and oci://."""


class RunCache(SchemaModel):
    """Where models are stored."""

    rules = (one_of("claimName", "hostPath"),)

    claim_name: ObjectName | None = None
    """An existing PersistentVolumeClaim."""
    host_path: HostPath | None = None
    """A directory of the node."""


class ArmSpec(ShapeSpec):
    """One server configuration under measurement."""

    rules = (
        ONE_SHAPE,
        Rule(
            cel=f"self.name != 'baseline' || ({COUNT_OF_SHAPES} == 0 && !has(self.engine))",
            message="baseline must have no shape and no engine: the others are compared with it",
        ),
        Rule(
            cel=f"({COUNT_OF_SHAPES} > 0) == has(self.draft)",
            message="draft must be set on every arm with a shape, and only there",
            field=".draft",
        ),
        *OF_DEPTHS,
    )

    draft: RunDraft | None = None
    """Draft head of the arm; absent on arms that do not speculate."""


class WorkloadSpec(PromptsSpec):
    """A dataset at a concurrency or a rate."""

    rules = (
        *PromptsSpec.rules,
        only_of_the_hub("commit"),
        RATE_RULE,
        Rule(
            cel=lasts("self", "self"),
            message=f"{TOO_SHORT}; at {{self.requestRate}} a second {{{arriving(LEAST_SECONDS, 'self')}}}, better "
            f"{{{arriving(GOOD_SECONDS, 'self')}}}; got {{{requests_rule('self')}}}",
            field=".requests",
        ),
        Rule(
            cel="!has(self.rampFrom) || !has(self.requestRate)",
            message="requestRate must be left out if rampFrom is set: a ramp sends the next request when one is "
            "answered; write one of them, or a dataset for each",
            field=".requestRate",
        ),
        Rule(
            cel="!has(self.turns) || !(has(self.requestRate) || has(self.rampFrom) || has(self.minRequests))",
            message="turns must be left out if requestRate, rampFrom or minRequests is set: a request waits for the "
            "answer before it, and so does not count as one of its own",
            field=".turns",
        ),
        Rule(
            cel=f"!has(self.turns) || self.concurrency * self.turns <= {MOST_REQUESTS // WAVES}",
            message=f"turns x concurrency must be at most {MOST_REQUESTS // WAVES}",
            field=".turns",
        ),
        Rule(
            cel="!has(self.arrivals) || self.arrivals != 'Replayed' || !self.source.startsWith('builtin://')",
            message="arrivals must be Random for a built-in set: its prompts have no timestamps",
            field=".arrivals",
        ),
    )

    request_rate: Rate | None = None
    """Mean arrivals per second, independent of the requests under way; replaces the closed loop."""
    ramp_from: Annotated[int, Field(ge=1, le=4095)] | None = None
    """A ramp: requests under way rise from this number to the concurrency and fall back."""
    arrivals: core.Arrivals | None = None
    """Random (the default), or Replayed: in the pattern of the file's timestamps."""
    concurrency: Annotated[int, Field(ge=1, le=4096)]
    """Simultaneous requests; with rampFrom, the maximum; with requestRate, only in the warm-up."""
    min_requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = None
    """Fewest requests of later rounds: they send so many that the noise of requests, by the spread of the first round's
    baseline, equals the noise of server starts; more than `requests` only if that is equal to this. If absent, all
    rounds of a gate send `requests` if it is set, else 16 or five times the concurrency or more. Not part of any hash.
    """
    commit: Commit | None = None
    """Commit of a hub dataset in the cache: the directory below snapshots/."""


_CLAIM = "(has(self.cache.claimName) ? self.cache.claimName : '')"
_POINTS = "self.arms.size() * self.workloads.size()"
_FEWEST = f"{WAVES} * w.concurrency * (has(w.turns) ? w.turns : 1)"
_LAST = "self.gate.decideAfterRounds[self.gate.decideAfterRounds.size() - 1]"


class RunGate(GateSpec):
    """The rule from rounds to a verdict; a pool may then serve the winner."""

    parity: core.Parity | None = None
    """Also compares the outputs of the arms. If absent, nothing is claimed about outputs."""
    rounds_of: ObjectName | None = None
    """A BenchmarkRun in this namespace that measured the same server on the same workloads. This gate judges its rounds
    of the common arms; only missing rounds are measured."""


class RunSearch(SchemaModel):
    """Looks for the best of many arms and measures few of them; a gate then judges the result."""

    retractions: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Retractions allowed on any arm, as in the gate's limits."""


class RunSweep(SchemaModel):
    """A table over concurrencies that shows up to where speculation pays."""

    confidence: Confidence | None = None
    """Confidence of the whole table; 95% if absent."""
    rounds: Annotated[int, Field(ge=2, le=50)] | None = None
    """Rounds to measure. If absent: 8 for two arms and for more than three, 9 for three."""


class ServerSpec(SchemaModel):
    """What all arms of a run share."""

    target: RunTarget
    """The served model."""
    engine: EngineSpec
    """The inference engine."""
    accelerator: core.Accelerator
    """The accelerators of a server."""
    cache: RunCache
    """Where models are stored."""
    node_selector: Labels = Field(default_factory=dict)
    """Node labels required in addition to the accelerator's."""
    tolerations: Tolerations = ()
    """Taints that its pods tolerate in addition to the accelerator's taint."""
    max_concurrency: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Largest concurrency of the pool; it determines the servers' request limit. The workloads' largest if absent."""


class ServedSpec(ServerSpec):
    """A server as it is served, kept beside its rendering."""

    arm: ArmSpec
    """Its arm."""


class BenchmarkRunSpec(ServerSpec):
    """The question of a run: what is compared, on which workloads and by which rule. Immutable."""

    rules = (
        Rule(
            cel=f"{count_of(('gate', 'search', 'sweep'))} == 1",
            message="exactly one of gate, search and sweep must be set; write an empty one with braces",
        ),
        NO_LABELS_OF_OURS,
        ONE_QUEUE,
        Rule(
            cel=IMMUTABLE,
            message="spec is immutable: make another BenchmarkRun",
        ),
        Rule(
            cel="self.arms[0].name == 'baseline'",
            message="the first of arms must be 'baseline': the others are compared with it",
            field=".arms",
        ),
        Rule(
            cel="!self.arms.exists(a, a.name == 'incumbent') || (has(self.gate) && self.arms.size() > 1"
            " && self.arms[self.arms.size() - 1].name == 'incumbent')",
            message="incumbent must be the last of arms, and only with gate: it is what serves, and what replaces it "
            "must not be slower",
            field=".arms",
        ),
        Rule(
            cel=f"has(self.search) || {_POINTS} <= {MOST_POINTS}",
            message=f"arms x workloads must be at most {MOST_POINTS}, as many as one round can report; "
            f"got {{{_POINTS}}}",
            field=".arms",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel=f"!has(w.requests) || has(w.requestRate) || w.requests >= {_FEWEST}",
            message="requests must be at least five times the concurrency, times turns, if requestRate is not set: "
            f"with fewer, start and end weigh too much; write {{{_FEWEST}}}, got {{w.requests}}",
            field=".requests",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(w.minRequests) || (!has(w.requestRate) && !has(w.rampFrom)"
            f" && w.minRequests >= {WAVES} * w.concurrency && (!has(w.requests) || w.minRequests <= w.requests))",
            message="minRequests must be at least five times the concurrency and at most requests, and be left out "
            f"if requestRate or rampFrom is set; five times the concurrency is {{{WAVES} * w.concurrency}}, "
            f"got {{w.minRequests}}",
            field=".minRequests",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(w.requestRate) || self.workloads.filter(v, v.name == w.name).size() == 1",
            message="name must be used by only one workload if requestRate is set: its concurrency makes no difference",
            field=".name",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(w.rampFrom) || self.workloads.filter(v, v.name == w.name).size() == 1",
            message="name must be used by only one workload if rampFrom is set: give the ramp a name of its own, "
            "such as code-ramp",
            field=".name",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(w.rampFrom) || w.rampFrom < w.concurrency",
            message="rampFrom must be below the concurrency = {w.concurrency}, to which the ramp rises; got "
            "{w.rampFrom}",
            field=".rampFrom",
        ),
        Rule(
            cel="!has(self.sweep) || self.workloads.exists(w, w.concurrency != self.workloads[0].concurrency)",
            message="workloads must have at least two concurrencies for a sweep",
            field=".workloads",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(self.sweep) || !has(w.requestRate)",
            message="requestRate must be left out for a sweep, which compares concurrencies",
            field=".requestRate",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(self.sweep) || !has(w.rampFrom)",
            message="rampFrom must be left out for a sweep, which shows each concurrency by itself",
            field=".rampFrom",
        ),
        Rule(
            each={"v": "self.workloads"},
            cel="!has(self.sweep) || self.workloads.all(w,"
            " self.workloads.exists(x, x.name == v.name && x.concurrency == w.concurrency))",
            message="workloads must have every dataset at every concurrency for a sweep, or a dataset is mistaken "
            "for a load; {v.name} lacks some of them",
        ),
        Rule(
            cel=f"!has(self.search) || self.workloads.size() <= {MOST_SEARCHED}",
            message=f"workloads must be at most {MOST_SEARCHED} for a search: the gate after it compares up to four "
            "arms on all of them; got {self.workloads.size()}",
            field=".workloads",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(self.search) || !has(w.requestRate)",
            message="requestRate must be left out for a search, which compares throughput",
            field=".requestRate",
        ),
        Rule(
            each={"w": "self.workloads"},
            cel="!has(self.search) || !has(w.rampFrom)",
            message="rampFrom must be left out for a search, which compares arms at one concurrency each",
            field=".rampFrom",
        ),
        Rule(
            cel="!has(self.search) || !has(self.measured)",
            message="measured must be left out for a search: only rounds of a gate or a sweep can be judged again",
            field=".measured",
        ),
        Rule(
            cel=f"!has(self.gate) || !has(self.gate.parity) || self.arms.size() <= {MOST_COMPARED}",
            message=f"arms must be at most {MOST_COMPARED} if gate.parity is set: leave it out, or split the run; "
            f"got {{self.arms.size()}}",
            field=".arms",
        ),
        Rule(
            cel="!has(self.maxConcurrency) || self.workloads.all(w, w.concurrency <= self.maxConcurrency)",
            message="maxConcurrency must be at least the largest concurrency of the workloads"
            " = {self.workloads.map(w, w.concurrency).max()}; got {self.maxConcurrency}",
            field=".maxConcurrency",
        ),
        Rule(
            each={"c": "self.arms"},
            cel="!has(self.search) || !has(c.engine)",
            message="engine must be left out if search is set: it compares trees on one engine",
            field=".engine",
        ),
        *arm_rules(c="self.arms", a="[has(c.draft) ? c.draft.algorithm : '']"),
        on_the_claim("self.target.source", _CLAIM, ".target.source"),
        on_the_claim("c.draft.source", _CLAIM, ".draft.source", c="self.arms"),
        *engine_and_node(c="self.arms"),
        NOT_OF_THE_ACCELERATOR,
        Rule(
            cel="!has(self.measured) || !has(self.gate) || !has(self.gate.roundsOf)",
            message="roundsOf must be left out if measured is set: the run has rounds of its own",
            field=".gate.roundsOf",
        ),
    )

    pool: PoolName
    """Pool that the run is for; any name for a run created by hand."""
    gate: RunGate | None = None
    """A gate decides; a pool may then serve the winner; may be {}."""
    search: RunSearch | None = None
    """Looks for the best of many arms; may be {}."""
    sweep: RunSweep | None = None
    """A table over concurrencies; all rounds are measured; may be {}."""
    measured: core.Measured | None = None
    """Rounds that `paceline measure` has measured without a cluster. The run judges them and measures nothing, if the
    administrator allows it (`evidence.imported` of the chart)."""
    arms: Annotated[tuple[ArmSpec, ...], Field(min_length=2, max_length=48), Unique(("name",))]
    """Arms to compare: `baseline` first, then the candidates. The earlier one wins a tie."""
    workloads: Annotated[
        tuple[WorkloadSpec, ...], Field(min_length=1, max_length=MOST_WORKLOADS), Unique(("name", "concurrency"))
    ]
    """Workloads of the comparison."""
    budget: BudgetSpec | None = None
    """Limit for the run, checked before every round."""
    timeouts: core.Timeouts | None = None
    """Time limits of a round."""
    pod_labels: Labels = Field(default_factory=dict)
    """Labels of the rounds' pods."""
    queue_name: QueueName | None = None
    """Kueue LocalQueue in the same namespace, in which rounds wait; none if absent."""
