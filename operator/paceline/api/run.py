"""The spec of a BenchmarkRun: one comparison, complete in itself."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from paceline.api.cache import NO_CODE_OF_OTHERS
from paceline.api.compatibility import COUNT_OF_SHAPES, ENGINE_AND_NODE, ONE_SHAPE, PlacedArm, arm_rules, shapes_of
from paceline.api.deployment import TargetSpec
from paceline.api.engine import AcceleratorSpec, EngineSpec
from paceline.api.gate import (
    MOST_COMPARED,
    MOST_MEASURED,
    MOST_POINTS,
    RISING,
    BudgetSpec,
    GateSpec,
    ParitySpec,
    last_round,
)
from paceline.api.later import not_yet
from paceline.api.model import Finding, Model, Rule, Unique
from paceline.api.parts import OF_SCHEDULE, AdaptiveSpec, CustomSpec, DraftSpec, Env, NgramSpec, Schedule, TreeSpec
from paceline.api.prompts import PromptsSpec, of_the_hub_alone
from paceline.api.shared import NO_LABELS_OF_OURS, OFF_THE_CLAIM, off_the_claim
from paceline.api.timeouts import TimeoutsSpec
from paceline.api.words import (
    Arguments,
    ArmName,
    Commit,
    DecideAfterRounds,
    HostPath,
    Labels,
    ObjectName,
    PoolName,
    Revision,
)
from paceline.core import BASELINE, WAVES, Purpose, Trigger


class RunTarget(TargetSpec):
    """The served model."""

    revision: Revision = "main"
    """Name that the commit was resolved from. A run resolves nothing."""
    commit: Commit | None = None
    """Commit in the cache: the directory below snapshots/. Not needed for a pvc:// path."""


class RunDraft(DraftSpec):
    """A draft head and its algorithm."""

    commit: Commit | None = None
    """Commit in the cache: the directory below snapshots/. Not needed for a pvc:// path."""


def _which_cache(cache: "RunCache") -> Iterator[Finding]:
    if (cache.existing_claim is None) == (cache.host_path is None):
        yield "", "exactly one of existingClaim and hostPath must be set"


class RunCache(Model):
    """Where models are stored."""

    rules = (
        Rule(
            cel="has(self.existingClaim) != has(self.hostPath)",
            message="exactly one of existingClaim and hostPath must be set",
            broken=_which_cache,
        ),
        NO_CODE_OF_OTHERS,
    )

    existing_claim: ObjectName | None = None
    """An existing PersistentVolumeClaim."""
    host_path: HostPath | None = None
    """A directory of the node."""
    env: Env = ()
    """Of no use: nothing is fetched for a run. Releases before this one wrote their prefetch's environment here."""


def _baseline_with_draft(arm: "ArmSpec") -> Iterator[Finding]:
    if (arm.name == BASELINE) != (arm.draft is None):
        yield ".draft", "draft must be set on every arm but the baseline"


def _one_shape(arm: "ArmSpec") -> Iterator[Finding]:
    if len(shapes_of(arm)) != (arm.name != BASELINE):
        yield "", "baseline must have no shape: it does not speculate" if arm.name == BASELINE else ONE_SHAPE


class ArmSpec(Model):
    """One server configuration under measurement."""

    rules = (
        Rule(
            cel=f"{COUNT_OF_SHAPES} == (self.name == 'baseline' ? 0 : 1)",
            message=f"{ONE_SHAPE}, and none of them on the baseline",
            broken=_one_shape,
        ),
        Rule(
            cel="(self.name == 'baseline') != has(self.draft)",
            message="draft must be set on every arm but the baseline",
            field=".draft",
            broken=_baseline_with_draft,
        ),
        *OF_SCHEDULE,
    )

    name: ArmName
    """`baseline`, or a candidate's name."""
    draft: RunDraft | None = None
    """Draft head of the arm; absent on the baseline."""
    tree: TreeSpec | None = None
    """Shape of a proposal."""
    block_size: Annotated[int, Field(ge=1, le=64)] | None = None
    """Tokens proposed at once, for DFLASH and DSPARK."""
    ngram: NgramSpec | None = None
    """How NGRAM finds drafts in the text."""
    adaptive: AdaptiveSpec | None = None
    """Instead of a tree: a chain whose depth the engine chooses."""
    schedule: Schedule | None = None
    """Instead of a tree: depth of the chain by batch size, from 1 on."""
    custom: CustomSpec | None = None
    """Instead of a tree, for Custom: the algorithm's own flags; may be {}."""
    args: Arguments = ()
    """Speculation flags without a field here, for this arm only; all other flags belong in engine.args."""


class WorkloadSpec(PromptsSpec):
    """A dataset at a concurrency or a rate."""

    rules = (*PromptsSpec.rules, of_the_hub_alone("commit"))

    concurrency: Annotated[int, Field(ge=1, le=4096)]
    """Simultaneous requests; with requestRate, those of the warm-up only."""
    commit: Commit | None = None
    """Commit of a hub dataset in the cache: the directory below snapshots/."""


class RunGate(GateSpec):
    """The rule from rounds to a verdict."""

    rules = (RISING,)

    decide_after_rounds: DecideAfterRounds | None = None
    """Round counts at which the gate decides; the last one is the maximum. If absent: [4, 6, 8] for two arms, [3, 6, 9]
    for three, [4, 8] for more, so that each arm comes first in a round equally often."""


class TriggerSpec(Model):
    """What started the run."""

    reason: Trigger = Trigger.SPEC
    """Spec: a change; Retry: a person's `retry` request; Stale: the previous answer is older than maxEvidenceAge;
    Person: created by hand."""
    token: Annotated[str, Field(max_length=253)] = ""
    """Token of the request that asked for it."""


TWICE = "name must be of one workload alone where requestRate is set: its concurrency makes no difference"
FIRST = "the first of arms must be 'baseline': the others are compared with it"


def _baseline_first(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    if run.arms[0].name != BASELINE:
        yield ".arms", FIRST


def _too_many_points(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    if (points := len(run.arms) * len(run.workloads)) > MOST_POINTS:
        yield ".arms", f"arms x workloads must be at most {MOST_POINTS}, what one round can report; got {points}"


TOO_LONG = (
    f"the last of decideAfterRounds x arms x workloads must be at most {MOST_MEASURED}, what a run's status can hold"
)


def _too_many_rounds(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    arms = len(run.arms)
    rounds, points = last_round(run.gate.decide_after_rounds, arms), arms * len(run.workloads)
    if rounds * points > MOST_MEASURED:
        yield (
            ".gate.decideAfterRounds",
            f"{TOO_LONG}; the last is {rounds}, and a round has {points} points: at most {MOST_MEASURED // points} "
            "rounds of them",
        )


TOO_FEW_REQUESTS = (
    "requests must be at least five times the concurrency where requestRate is not set: with fewer, beginning and end "
    "weigh too much"
)


def _too_few_requests(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    for i, workload in enumerate(run.workloads):
        least = 0 if workload.request_rate else WAVES * workload.concurrency
        if workload.requests is not None and workload.requests < least:
            yield f".workloads[{i}].requests", f"{TOO_FEW_REQUESTS}; write {least}, got {workload.requests}"


def _at_a_rate_twice(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    names = [workload.name for workload in run.workloads]
    for i, workload in enumerate(run.workloads):
        if workload.request_rate is not None and names.count(workload.name) > 1:
            yield f".workloads[{i}].name", TWICE


ONE_LOAD = "must have at least two concurrencies for a Sweep"
AT_A_RATE = "requestRate must be left out for a Sweep: it is over concurrencies"
EVERYWHERE = "must have every dataset at every concurrency for a Sweep, or a dataset is taken for a load"
NO_BAR = (
    "minimumImprovement, regressionTolerance and limits must be left out for a Sweep: it shows which arm is faster,"
    " and promotes none"
)

TOO_MANY_COMPARED = f"arms must be at most {MOST_COMPARED} where parity is set: leave it out, or split the run"
NO_PARITY = "parity must be left out for a Sweep: it promotes nothing that other outputs could keep back"


def _one_load(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    if run.purpose is Purpose.SWEEP and len({workload.concurrency for workload in run.workloads}) < 2:
        yield ".workloads", f"workloads {ONE_LOAD}"


def _swept_at_a_rate(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    for i, workload in enumerate(run.workloads):
        if run.purpose is Purpose.SWEEP and workload.request_rate is not None:
            yield f".workloads[{i}].requestRate", AT_A_RATE


def _somewhere_only(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    there = {(workload.name, workload.concurrency) for workload in run.workloads}
    missing = sorted({(name, concurrency) for name, _ in there for _, concurrency in there} - there)
    if run.purpose is Purpose.SWEEP and missing:
        name, concurrency = missing[0]
        yield ".workloads", f"workloads {EVERYWHERE}; {name} at {concurrency} is missing"


def _bar_of_a_sweep(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    asked = (run.gate.minimum_improvement, run.gate.regression_tolerance, run.gate.limits)
    if run.purpose is Purpose.SWEEP and any(value is not None for value in asked):
        yield ".gate", NO_BAR


def _parity_of_a_sweep(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    if run.purpose is Purpose.SWEEP and run.parity is not None:
        yield ".parity", NO_PARITY


def _too_many_compared(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    if run.parity is not None and len(run.arms) > MOST_COMPARED:
        yield ".arms", f"{TOO_MANY_COMPARED}; got {len(run.arms)}"


def _crowded(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    largest = max(workload.concurrency for workload in run.workloads)
    if run.largest_concurrency is not None and run.largest_concurrency < largest:
        yield (
            ".largestConcurrency",
            f"largestConcurrency must be at least the largest concurrency of the workloads, {largest}; "
            f"got {run.largest_concurrency}",
        )


def _arms(run: "BenchmarkRunSpec") -> Iterator[PlacedArm]:
    for i, arm in enumerate(run.arms):
        yield PlacedArm(
            path=f".arms[{i}]",
            draft_path=f".arms[{i}].draft",
            engine=run.engine.name,
            algorithm=arm.draft.algorithm if arm.draft else "",
            arm=arm,
        )


def _elsewhere(run: "BenchmarkRunSpec") -> Iterator[Finding]:
    claim = run.cache.existing_claim
    yield from off_the_claim(".target.source", run.target.source, claim)
    for placed in _arms(run):
        if placed.arm.draft:
            yield from off_the_claim(f"{placed.draft_path}.source", placed.arm.draft.source, claim)


_CLAIM = "(has(self.cache.existingClaim) ? self.cache.existingClaim : '')"
_THERE = f"!{{0}}.startsWith('pvc://') || {{0}}.startsWith('pvc://' + {_CLAIM} + '/')".format


_NO_SWEEP = "!has(self.purpose) || self.purpose != 'Sweep'"


class BenchmarkRunSpec(Model):
    """The question of a run: what is compared, on which workloads and by which rule. Immutable."""

    rules = (
        NO_LABELS_OF_OURS,
        Rule(
            cel="self == oldSelf",
            message="spec is immutable: make another BenchmarkRun",
            broken=lambda _: (),
        ),
        Rule(
            cel="self.arms[0].name == 'baseline'",
            message=FIRST,
            field=".arms",
            broken=_baseline_first,
        ),
        Rule(
            cel=f"self.arms.size() * self.workloads.size() <= {MOST_POINTS}",
            message=f"arms x workloads must be at most {MOST_POINTS}, what one round can report",
            say=f"'arms x workloads must be at most {MOST_POINTS}, what one round can report; got %d'"
            ".format([self.arms.size() * self.workloads.size()])",
            field=".arms",
            broken=_too_many_points,
        ),
        Rule(
            cel="!has(self.gate) || !has(self.gate.decideAfterRounds) || self.arms.size() * self.workloads.size()"
            f" * self.gate.decideAfterRounds[self.gate.decideAfterRounds.size() - 1] <= {MOST_MEASURED}",
            message=TOO_LONG,
            field=".gate.decideAfterRounds",
            broken=_too_many_rounds,
        ),
        Rule(
            cel="self.workloads.all(w, !has(w.requests) || has(w.requestRate)"
            f" || w.requests >= {WAVES} * w.concurrency)",
            message=TOO_FEW_REQUESTS,
            field=".workloads",
            broken=_too_few_requests,
        ),
        Rule(
            cel="self.workloads.all(w, !has(w.requestRate) || self.workloads.filter(v, v.name == w.name).size() == 1)",
            message=TWICE,
            field=".workloads",
            broken=_at_a_rate_twice,
        ),
        Rule(
            cel=f"{_NO_SWEEP} || self.workloads.exists(w, w.concurrency != self.workloads[0].concurrency)",
            message=f"workloads {ONE_LOAD}",
            field=".workloads",
            broken=_one_load,
        ),
        Rule(
            cel=f"{_NO_SWEEP} || !self.workloads.exists(w, has(w.requestRate))",
            message=AT_A_RATE,
            field=".workloads",
            broken=_swept_at_a_rate,
        ),
        Rule(
            cel=f"{_NO_SWEEP} || self.workloads.all(v, self.workloads.all(w,"
            " self.workloads.exists(x, x.name == v.name && x.concurrency == w.concurrency)))",
            message=f"workloads {EVERYWHERE}",
            field=".workloads",
            broken=_somewhere_only,
        ),
        Rule(
            cel=f"{_NO_SWEEP} || !has(self.gate) || !(has(self.gate.minimumImprovement)"
            " || has(self.gate.regressionTolerance) || has(self.gate.limits))",
            message=NO_BAR,
            field=".gate",
            broken=_bar_of_a_sweep,
        ),
        Rule(
            cel=f"{_NO_SWEEP} || !has(self.parity)",
            message=NO_PARITY,
            field=".parity",
            broken=_parity_of_a_sweep,
        ),
        Rule(
            cel=f"!has(self.parity) || self.arms.size() <= {MOST_COMPARED}",
            message=TOO_MANY_COMPARED,
            field=".arms",
            broken=_too_many_compared,
        ),
        Rule(
            cel="!has(self.largestConcurrency) || self.workloads.all(w, w.concurrency <= self.largestConcurrency)",
            message="largestConcurrency must be at least the largest concurrency of the workloads",
            field=".largestConcurrency",
            broken=_crowded,
        ),
        *arm_rules(
            "self.arms.all(c, [has(c.draft) ? c.draft.algorithm : ''].all(a, [self.engine.name].all(e, %s)))",
            ".arms",
            _arms,
        ),
        Rule(
            cel=f"({_THERE('self.target.source')}) && self.arms.all(c, !has(c.draft) || !has(c.draft.source)"
            f" || {_THERE('c.draft.source')})",
            message=OFF_THE_CLAIM,
            broken=_elsewhere,
        ),
        *ENGINE_AND_NODE,
        *not_yet("BenchmarkRunSpec"),
    )

    pool: PoolName
    """Pool that the run is for; any name for a run created by hand."""
    purpose: Purpose = Purpose.GATE
    """Use of the result. Gate: a verdict, after which a pool may serve the winner. Sweep: a table over concurrencies
    that shows up to where speculation pays; all rounds are measured. Not implemented: Search."""
    attempt: Annotated[int, Field(ge=1, le=100000)] = 1
    """1 + the highest attempt so far for this pool and fingerprint."""
    trigger: TriggerSpec = Field(default_factory=TriggerSpec)
    """What started it."""
    rounds_of: ObjectName | None = None
    """A BenchmarkRun in this namespace that measured the same server on the same workloads. Its rounds of the arms that
    both have are judged by this run's gate; only what the gate needs beyond them is measured."""
    target: RunTarget
    """The served model."""
    engine: EngineSpec
    """The inference engine."""
    accelerator: AcceleratorSpec
    """The accelerators of a server."""
    cache: RunCache
    """Where models are stored."""
    node_selector: Labels = Field(default_factory=dict)
    """Node labels required in addition to the accelerator's."""
    largest_concurrency: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Largest concurrency of the pool; it determines the servers' request limit. The workloads' largest if absent."""
    arms: Annotated[tuple[ArmSpec, ...], Field(min_length=2, max_length=48), Unique(("name",))]
    """Arms to compare: `baseline` first, then the candidates. The earlier one wins a tie."""
    workloads: Annotated[tuple[WorkloadSpec, ...], Field(min_length=1, max_length=24), Unique(("name", "concurrency"))]
    """Workloads to compare them on."""
    gate: RunGate = Field(default_factory=RunGate)
    """The rule from rounds to a verdict."""
    budget: BudgetSpec | None = None
    """Limit for the run, checked before every round."""
    parity: ParitySpec | None = None
    """Compares the outputs of the arms, too. If absent, outputs are not compared and nothing is claimed about them."""
    timeouts: TimeoutsSpec | None = None
    """Time limits of a round."""
    pod_labels: Labels = Field(default_factory=dict)
    """Labels of the rounds' pods."""
