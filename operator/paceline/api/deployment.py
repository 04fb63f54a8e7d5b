"""The spec of a SpeculativeDeployment."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from paceline.api.cache import CacheSpec, on_the_claim
from paceline.api.compatibility import KINDS_OF_SHAPE, arm_rules, engine_and_node
from paceline.api.draft import ON_CLAIM, DraftSpec
from paceline.api.engine import EngineSpec
from paceline.api.gate import (
    MOST_POINTS,
    MOST_SEARCHED,
    BudgetSpec,
    GateSpec,
)
from paceline.api.load import GOOD_SECONDS, LEAST_SECONDS, OF_TURNS, TOO_SHORT, arriving, lasts, turns_fit
from paceline.api.model import SchemaModel, empty
from paceline.api.pod import NO_LABELS_OF_OURS, NOT_OF_THE_ACCELERATOR, ONE_QUEUE, Tolerations
from paceline.api.pool import TWINS, WITH_TREES, CandidateSpec, PoolSpec, hidden_twins
from paceline.api.prompts import DatasetSpec
from paceline.api.rules import DeskRule, Rule, Violation
from paceline.core import Accelerator, CapacityPolicy, Gateway, GuardSpec, Parity, PromotionSpec, Timeouts
from paceline.core.types import (
    Duration,
    Labels,
    ObjectName,
    QueueName,
    Revision,
    ServedName,
    SourceText,
    Unique,
)
from paceline.core.window import Window

BUILTIN = ("code", "swe", "terminal", "chat")
"""The datasets of a deployment that names none."""


class TargetSpec(SchemaModel):
    """The served model."""

    rules = (
        ON_CLAIM,
        Rule(
            cel="has(self.servedName) || self.source.startsWith('hf://')",
            message="servedName must be set for s3://, gs://, pvc:// and oci://, which have no OWNER/NAME",
            field=".servedName",
        ),
    )

    source: SourceText
    """Location: hf://OWNER/NAME, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, pvc://CLAIM/PATH or
    oci://REGISTRY/REPOSITORY@sha256:DIGEST (mounted as a Kubernetes image volume)."""
    revision: Revision = "main"
    """Branch, tag or commit; resolved to a commit once, then pinned in status. For s3:// and gs:// any name: the first
    fetch pins what the bucket has, and another name pins anew."""
    served_name: ServedName | None = None
    """The model's name in requests; OWNER/NAME of hf://OWNER/NAME if absent."""

    @property
    def name_in_requests(self) -> str:
        """As written, else from the source."""
        return self.served_name or self.source.removeprefix("hf://")


_BORROWED = "has(self.capacityPolicy) && self.capacityPolicy == 'Borrow'"


def _only_lent(cel: str) -> Rule:
    return Rule(
        cel=f"!has(self.minServing) || ({cel})",
        message="minServing must be left out unless capacityPolicy is Borrow: no replica is given up otherwise",
        field=".minServing",
    )


class MeasuringSpec(SchemaModel):
    """How candidates are measured: fields that a profile may have."""

    rules: ClassVar[tuple[Rule | DeskRule, ...]] = (NO_LABELS_OF_OURS, ONE_QUEUE, _only_lent(_BORROWED))

    datasets: Annotated[tuple[DatasetSpec, ...], Field(min_length=1, max_length=16), Unique(("name",))] | None = None
    """Prompt sets to send; the four built-in sets if absent."""
    capacity_policy: CapacityPolicy | None = None
    """Accelerators for a run. Wait (the default): a round starts once a node has enough free ones. Borrow: if no node
    has enough, the pool gives up one replica until the run ends."""
    min_serving: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Replicas that a pool keeps with Borrow; 1 if absent. 0 leaves a pool of one replica without servers while it is
    measured."""
    window: Window | None = None
    """When rounds may start; at any time if absent."""
    budget: BudgetSpec | None = None
    """Limit for each run, checked before every round."""
    parity: Parity | None = None
    """Also compares the outputs of the arms. If absent, nothing is claimed about outputs."""
    timeouts: Timeouts | None = None
    """Time limits of a round."""
    pod_labels: Labels = Field(default_factory=dict)
    """Labels of the rounds' pods."""
    queue_name: QueueName | None = None
    """Kueue LocalQueue in the same namespace, in which rounds wait; none if absent."""
    max_evidence_age: Duration | None = None
    """Maximum age of a finished run that may answer a new question; 720h if absent. Age alone never starts a run."""


class ProfileReference(SchemaModel):
    """A BenchmarkProfile."""

    name: ObjectName
    """Its name, in the same namespace."""


class BenchmarkSpec(MeasuringSpec):
    """How candidates are measured."""

    rules = (NO_LABELS_OF_OURS, ONE_QUEUE, _only_lent(f"has(self.profileRef) || ({_BORROWED})"))

    profile_ref: ProfileReference | None = None
    """BenchmarkProfile that supplies absent fields of spec.benchmark and spec.gate. A field that it locks may not have
    another value."""


RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    GuardSpec: (
        Rule(
            cel="!has(self.window)"
            " || (duration(self.window) >= duration('10s') && duration(self.window) <= duration('24h'))",
            message="window must be at least 10s, three looks at a server, and at most 24h; got {self.window}",
            field=".window",
        ),
    ),
}


def _hidden_twins(spec: "SpeculativeDeploymentSpec") -> Iterator[Violation]:
    return hidden_twins(spec.candidates or (), spec.draft, spec.engine.whole())


_SETS = "(has(self.benchmark) && has(self.benchmark.datasets))"
_PROFILED = "(has(self.benchmark) && has(self.benchmark.profileRef))"
"""CEL: absent fields may be in a profile, which the API server cannot read. The operator checks the rules again with
the profile's values, and without the reference."""
_WORKLOADS = (
    "p.load.map(l, (has(l.concurrency) ? l.concurrency.size() : 1) *"
    f" (has(l.datasets) ? l.datasets.size() : {_SETS} ? self.benchmark.datasets.size()"
    f" : {_PROFILED} ? 1 : {len(BUILTIN)})).sum()"
)
_NAMED = "(has(p.candidates) ? p.candidates.size() : has(self.candidates) ? self.candidates.size() : 1)"
_INCUMBENT = "(has(self.promotion) && has(self.promotion.changes) && self.promotion.changes == 'Immediate' ? 0 : 1)"
"""CEL: the arm of a run about a changed spec that is what the pool serves."""
_POINTS = f"(1 + {_NAMED} + {_INCUMBENT}) * {_WORKLOADS}"
_LOOKS = (
    "(has(p.gate) && has(p.gate.decideAfterRounds) ? p.gate.decideAfterRounds"
    " : has(self.gate) && has(self.gate.decideAfterRounds) ? self.gate.decideAfterRounds : [1])"
)
_LAST = f"{_LOOKS}[{_LOOKS}.size() - 1]"
"""CEL: the largest number of rounds in the manifest."""
_VALUE = "(has(p.headerValue) ? p.headerValue : p.name)"
_CANDIDATES = {"c": "self.candidates"}
_LOADS = {"p": "self.pools", "l": "p.load"}
_OF_LOAD = "(has(l.datasets) && !(s.name in l.datasets))"
"""CEL: dataset `s` is not measured under load `l`."""
_SAME = " && ".join(
    f"has(c.{field}) == has(d.{field}) && (!has(c.{field}) || c.{field} == d.{field})"
    for field in ("draft", "engine", *KINDS_OF_SHAPE)
)
_SPECULATES = f"({' || '.join(f'has(c.{kind})' for kind in KINDS_OF_SHAPE)})"
"""CEL: candidate `c` has a shape."""
_CLAIM = (
    "(has(self.cache.claim) ? (has(self.cache.claim.name) ? self.cache.claim.name : '')"
    " : has(self.cache.claimName) ? self.cache.claimName : '')"
)


_BORROWS = "(has(self.benchmark) && has(self.benchmark.capacityPolicy) && self.benchmark.capacityPolicy == 'Borrow')"
_STAYING = f"(has(self.benchmark) && has(self.benchmark.minServing) ? self.benchmark.minServing : {_PROFILED} ? 0 : 1)"


class SpeculativeDeploymentSpec(SchemaModel):
    """A target model, ways to speculate for it, the pools that serve it and the rule that promotes a configuration."""

    rules = (
        Rule(
            each=_CANDIDATES,
            cel=f"has(self.draft) || has(c.draft) || !{_SPECULATES}",
            message="draft must be set here or in spec.draft",
            field=".draft",
        ),
        *arm_rules(
            **_CANDIDATES,
            a=f"[has(c.draft) ? c.draft.algorithm : has(self.draft) && {_SPECULATES} ? self.draft.algorithm : '']",
        ),
        Rule(
            each=_CANDIDATES,
            cel="!has(c.engine) || !has(self.pools) || !self.pools.exists(p, has(p.search))",
            message="engine must be left out if a pool has search, which compares trees on one engine",
            field=".engine",
        ),
        Rule(
            each=_CANDIDATES,
            cel="(has(c.args) && c.args.size() > 0) ||"
            f" self.candidates.exists_one(d, (!has(d.args) || d.args.size() == 0) && {_SAME})",
            message=f"candidates must differ: {TWINS}; another candidate is the same as {{c.name}}",
        ),
        Rule(
            each=_CANDIDATES,
            cel="!has(self.pools) || !self.pools.exists(p, has(p.search))"
            " || !c.name.matches('^(adaptive|tree-[0-9]+-[0-9]+-[0-9]+)$')",
            message="name must not be one that search gives its own arms (tree-STEPS-TOPK-TOKENS, adaptive): choose "
            "another",
            field=".name",
        ),
        Rule(
            cel="has(self.candidates) || (has(self.pools) && self.pools.all(p, has(p.search)))"
            f" || (has(self.draft) && self.draft.algorithm in {list(WITH_TREES)})",
            message="candidates must be set unless each pool has a search, or spec.draft one of "
            f"{', '.join(WITH_TREES)}, which is measured as a chain by default",
            field=".candidates",
        ),
        Rule(
            each={"p": "self.pools"},
            cel="!has(p.candidates) || p.candidates.size() > 0 || has(p.search)",
            message="candidates must name what is compared with the baseline, or be left out (all of "
            "spec.candidates), unless search is set",
            field=".candidates",
        ),
        Rule(
            each={"p": "self.pools", "n": "p.candidates"},
            cel="has(self.candidates) && self.candidates.exists(c, c.name == n)",
            message="candidates must be names of spec.candidates; got {n}",
        ),
        DeskRule(message=f"candidates must differ, however they are written: {TWINS}", broken=_hidden_twins),
        on_the_claim("self.target.source", _CLAIM, ".target.source"),
        on_the_claim("self.draft.source", _CLAIM, ".draft.source"),
        on_the_claim("c.draft.source", _CLAIM, ".draft.source", **_CANDIDATES),
        *engine_and_node(**_CANDIDATES),
        NOT_OF_THE_ACCELERATOR,
        Rule(
            each={"p": "self.pools"},
            cel=f"self.pools.exists_one(q, {_VALUE.replace('p.', 'q.')} == ({_VALUE}))",
            message="headerValue must lead to only one pool; it is the pool's name if absent",
            field=".headerValue",
        ),
        Rule(
            each=_LOADS | {"d": "l.datasets"},
            cel=f"{_SETS} ? self.benchmark.datasets.exists(s, s.name == d) : {_PROFILED} || d in {list(BUILTIN)}",
            message="datasets must be listed in benchmark.datasets (by default: code, swe, terminal, chat); got {d}",
        ),
        Rule(
            each=_LOADS,
            cel=f"!has(l.requestRate) || !{_SETS} || self.benchmark.datasets.all(s, {_OF_LOAD} || {lasts('s', 'l')})",
            message=f"{TOO_SHORT}; at {{l.requestRate}} a second a dataset needs requests of "
            f"{{{arriving(LEAST_SECONDS, 'l')}}}, better {{{arriving(GOOD_SECONDS, 'l')}}}, or no requests "
            "field",
            field=".requestRate",
        ),
        Rule(
            each=_LOADS,
            cel=f"!has(l.arrivals) || l.arrivals != 'Replayed' || ({_SETS} ? self.benchmark.datasets.all(s, {_OF_LOAD}"
            f" || !s.source.startsWith('builtin://')) : {_PROFILED})",
            message="arrivals must be Random for a built-in set: its prompts have no timestamps",
            field=".arrivals",
        ),
        Rule(
            each=_LOADS,
            cel=f"!{_SETS} || self.benchmark.datasets.all(s, {_OF_LOAD} || !has(s.turns) || {turns_fit('s', 'l')})",
            message=f"{OF_TURNS}; give the dataset without turns another name for other loads",
            field=".concurrency",
        ),
        Rule(
            each={"p": "self.pools"},
            cel=f"!{_BORROWS} || has(p.replicas)",
            message="replicas must be set if benchmark.capacityPolicy is Borrow: an autoscaler would put back what "
            "the pool gives up; set it, or write capacityPolicy Wait",
            field=".replicas",
        ),
        Rule(
            each={"p": "self.pools"},
            cel=f"!{_BORROWS} || !has(p.replicas) || p.replicas == 0 || p.replicas > {_STAYING}",
            message="replicas must be above benchmark.minServing (1 if absent) if benchmark.capacityPolicy is "
            f"Borrow, which gives one up; got {{p.replicas}} and {{{_STAYING}}}; write more replicas, or a "
            "smaller minServing (0 leaves the pool without servers while it is measured)",
            field=".replicas",
        ),
        Rule(
            cel=f"!{_BORROWS} || self.accelerator.nodes == 1",
            message="capacityPolicy must be Wait if accelerator.nodes is above 1: servers over several nodes are "
            "not measured",
            field=".benchmark.capacityPolicy",
        ),
        Rule(
            each={"p": "self.pools"},
            cel=f"has(p.search) || {_POINTS} <= {MOST_POINTS}",
            message=f"(2 + candidates) x datasets x concurrency must be at most {MOST_POINTS} in every pool: one round "
            f"cannot report more; got {{{_POINTS}}}. With promotion.changes: Immediate it is 1 + candidates",
            field=".candidates",
        ),
        Rule(
            each={"p": "self.pools"},
            cel=f"!has(p.search) || {_WORKLOADS} <= {MOST_SEARCHED}",
            message=f"datasets x concurrency must be at most {MOST_SEARCHED} in a pool with search, whose rounds "
            f"compare up to four arms on all of them; got {{{_WORKLOADS}}}: name fewer in datasets, or split the pool",
            field=".search",
        ),
        Rule(
            each={"p": "self.pools"},
            cel=f"!has(p.search) || (has(self.draft) && self.draft.algorithm in {list(WITH_TREES)})",
            message=f"draft must be set in spec.draft if search is set, with one of {', '.join(WITH_TREES)}: search "
            "tries trees of that head",
            field=".search",
        ),
    )

    suspend: bool = False
    """Stops new runs and promotions while true. Serving continues."""
    target: TargetSpec
    """The served model."""
    draft: DraftSpec | None = None
    """Default draft head of all candidates."""
    engine: EngineSpec
    """The inference engine."""
    accelerator: Accelerator
    """The accelerators of a server."""
    node_selector: Labels = Field(default_factory=dict)
    """Node labels that servers, rounds and the prefetch need in addition to the accelerator's."""
    tolerations: Tolerations = ()
    """Taints that these pods tolerate in addition to the accelerator's taint."""
    cache: CacheSpec
    """Where models are stored."""
    candidates: Annotated[tuple[CandidateSpec, ...], Field(min_length=1, max_length=32), Unique(("name",))] | None = (
        None
    )
    """Configurations to measure against the baseline; if absent, a chain of three tokens (`chain`) of spec.draft."""
    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1, max_length=8), Unique(("name",))] | None = None
    """Kinds of traffic, each with its own servers and its own verdict; if absent, `main` at concurrency 1 and 16."""
    gateway: Gateway | None = None
    """Gateways that lead to the pools, if the cluster has the Gateway API."""
    benchmark: BenchmarkSpec | None = None
    """How candidates are measured."""
    gate: GateSpec | None = None
    """The rule from rounds to a verdict, for all pools."""
    promotion: PromotionSpec = empty(PromotionSpec)
    """How a verdict goes live."""
    guard: GuardSpec = empty(GuardSpec)
    """What happens when speculation stops paying in production."""
