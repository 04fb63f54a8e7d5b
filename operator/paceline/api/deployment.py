"""The spec of a SpeculativeDeployment."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from paceline.api.model import Finding, Matches, Model, Rule, Unique
from paceline.api.parts import (
    MOST_POINTS,
    RISING,
    AcceleratorSpec,
    AdaptiveSpec,
    Arguments,
    ArmName,
    DatasetName,
    DatasetSpec,
    DecideAfterRounds,
    DraftSpec,
    Duration,
    EngineSpec,
    Env,
    GateSpec,
    Labels,
    NgramSpec,
    ObjectName,
    PoolName,
    Quantity,
    Revision,
    Source,
    TokenKey,
    TreeSpec,
)
from paceline.core import BASELINE, PromotionMode, UntilDecided

BUILTIN = ("code", "swe", "terminal", "chat")
"""The datasets of a deployment that names none."""

ServedName = Annotated[
    str, Field(max_length=200), Matches(r"^[^:\s]+$", "be the model's name in requests, without ':' and spaces")
]
HostPath = Annotated[str, Field(max_length=500), Matches(r"^/[^:]*$", "be an absolute path")]


class TargetSpec(Model):
    """The served model."""

    source: Source
    """Where it is: hf://OWNER/NAME or pvc://CLAIM/PATH."""
    revision: Revision = "main"
    """Branch, tag or commit; resolved to a commit once, then pinned in status."""
    served_name: ServedName
    """The model's name in requests."""


class ClaimSpec(Model):
    """A claim to make for the models. It outlives the deployment."""

    name: ObjectName
    """Name of the PersistentVolumeClaim."""
    size: Quantity
    """How much it asks for."""
    storage_class_name: ObjectName | None = None
    """The cluster's default class if absent."""
    access_modes: (
        Annotated[
            tuple[Annotated[str, Field(pattern="^(ReadWriteOnce|ReadWriteMany)$", max_length=13)], ...],
            Field(min_length=1, max_length=2),
            Unique(),
        ]
        | None
    ) = None
    """ReadWriteMany if absent; ReadWriteOnce keeps all servers on one node."""


def _which_cache(cache: "CacheSpec") -> Iterator[Finding]:
    if (cache.claim, cache.existing_claim, cache.host_path).count(None) != 2:
        yield "", "exactly one of claim, existingClaim and hostPath must be set"


class CacheSpec(Model):
    """Where models are kept."""

    rules = (
        Rule(
            cel="[has(self.claim), has(self.existingClaim), has(self.hostPath)].filter(x, x).size() == 1",
            message="exactly one of claim, existingClaim and hostPath must be set",
            broken=_which_cache,
        ),
    )

    claim: ClaimSpec | None = None
    """A PersistentVolumeClaim to make."""
    existing_claim: ObjectName | None = None
    """A PersistentVolumeClaim that is there already."""
    host_path: HostPath | None = None
    """A directory that is there, writable by uid 65532, and shared by all nodes that serve."""
    env: Env = ()
    """Environment of the prefetch alone: HF_ENDPOINT, proxies, a CA."""
    token_secret_ref: TokenKey | None = None
    """The hub's token, for gated repositories; the operator never reads it."""
    keep_revisions: Annotated[int, Field(ge=1, le=50)] | None = None
    """How many revisions of a model stay on the volume besides those in use; 2 if absent."""


def _called_baseline(candidate: "CandidateSpec") -> Iterator[Finding]:
    if candidate.name == BASELINE:
        yield ".name", "name must not be 'baseline': that is the arm without speculation"


def _one_shape(candidate: "CandidateSpec") -> Iterator[Finding]:
    said = (candidate.tree, candidate.block_size, candidate.ngram, candidate.adaptive)
    if len(said) - said.count(None) != 1:
        yield "", "exactly one of tree, blockSize, ngram and adaptive must be set"


class CandidateSpec(Model):
    """One way to speculate, measured against the baseline."""

    rules = (
        Rule(
            cel="[has(self.tree), has(self.blockSize), has(self.ngram), has(self.adaptive)].filter(x, x).size() == 1",
            message="exactly one of tree, blockSize, ngram and adaptive must be set",
            broken=_one_shape,
        ),
        Rule(
            cel="self.name != 'baseline'",
            message="name must not be 'baseline': that is the arm without speculation",
            field=".name",
            broken=_called_baseline,
        ),
    )

    name: ArmName
    """What it is called in results."""
    draft: DraftSpec | None = None
    """Takes the place of spec.draft as a whole."""
    tree: TreeSpec | None = None
    """The shape of a proposal, for EAGLE, EAGLE3, NEXTN, MTP and STANDALONE."""
    block_size: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many tokens are proposed at once, for DFLASH and DSPARK."""
    ngram: NgramSpec | None = None
    """How drafts are found in the text, for NGRAM; may be {}."""
    adaptive: AdaptiveSpec | None = None
    """In place of a tree, for EAGLE, EAGLE3, NEXTN and MTP: a chain whose depth the engine chooses; may be {}."""
    args: Arguments = ()
    """Arguments of the server on this arm alone."""


class PoolSpec(Model):
    """Identical replicas with their own traffic and their own best configuration."""

    name: PoolName
    """Part of the names of its objects: NAME-POOL."""
    replicas: Annotated[int, Field(ge=0, le=1000)] | None = None
    """How many servers; absent, it is left to an autoscaler."""
    concurrency: Annotated[
        tuple[Annotated[int, Field(ge=1, le=4096)], ...],
        Field(min_length=1, max_length=8),
        Unique(),
    ]
    """What this pool is for, in requests at a time: the gate measures these."""
    candidates: Annotated[tuple[CandidateSpec, ...], Field(min_length=1, max_length=15), Unique(("name",))]
    """What is measured against the baseline."""
    gate: GateSpec | None = None
    """Overrides spec.gate, key by key."""
    datasets: Annotated[tuple[DatasetName, ...], Field(min_length=1, max_length=16), Unique()] | None = None
    """Names of the datasets it is measured on; all if absent."""


class BenchmarkSpec(Model):
    """How candidates are measured."""

    rules = (RISING,)

    datasets: Annotated[tuple[DatasetSpec, ...], Field(min_length=1, max_length=16), Unique(("name",))] | None = None
    """What is sent; the four built-in sets if absent."""
    decide_after_rounds: DecideAfterRounds | None = None
    """After how many rounds the gate is asked; the last is the most. [3, 5, 8] if absent."""
    pod_labels: Labels = Field(default_factory=dict)
    """Labels of the rounds' pods, for example of a queue."""
    max_evidence_age: Duration | None = None
    """How long a verdict is reused for the same question; 720h if absent. Age alone never starts a run."""


class PromotionSpec(Model):
    """How a verdict goes live."""

    mode: PromotionMode = PromotionMode.AUTOMATIC
    """Automatic, or Manual: wait for a person's `promote`."""
    until_decided: UntilDecided = UntilDecided.BASELINE
    """What is served before there is a verdict."""
    revision_history_limit: Annotated[int, Field(ge=1, le=50)] | None = None
    """How many revisions a pool can be rolled back to; 3 if absent."""
    progress_deadline: Duration | None = None
    """How long a revision may take to become ready before it is undone; 30m if absent."""


def _datasets(spec: "SpeculativeDeploymentSpec") -> tuple[DatasetSpec, ...] | None:
    return spec.benchmark.datasets if spec.benchmark else None


def _draftless(spec: "SpeculativeDeploymentSpec") -> Iterator[Finding]:
    for i, pool in enumerate(spec.pools):
        for j, candidate in enumerate(pool.candidates):
            if candidate.draft is None and spec.draft is None:
                yield f".pools[{i}].candidates[{j}].draft", "draft must be set here or in spec.draft"


SHAPES: Mapping[str, tuple[str, ...]] = {
    "EAGLE": ("tree", "adaptive"),
    "EAGLE3": ("tree", "adaptive"),
    "NEXTN": ("tree", "adaptive"),
    "MTP": ("tree", "adaptive"),
    "STANDALONE": ("tree",),
    "NGRAM": ("ngram",),
    "DFLASH": ("blockSize",),
    "DSPARK": ("blockSize",),
}
"""What a candidate says of its proposals, by algorithm; exactly one of them."""


def _shape(candidate: "CandidateSpec") -> str | None:
    said = {
        "tree": candidate.tree,
        "blockSize": candidate.block_size,
        "ngram": candidate.ngram,
        "adaptive": candidate.adaptive,
    }
    return next((name for name, value in said.items() if value is not None), None)


def _misshapen(spec: "SpeculativeDeploymentSpec") -> Iterator[Finding]:
    for i, pool in enumerate(spec.pools):
        for j, candidate in enumerate(pool.candidates):
            draft, shape = candidate.draft or spec.draft, _shape(candidate)
            if draft is not None and shape is not None and shape not in (fit := SHAPES[draft.algorithm]):
                yield (
                    f".pools[{i}].candidates[{j}].{shape}",
                    f"{draft.algorithm} takes {' or '.join(fit)}, not {shape}",
                )


def _unknown_dataset(spec: "SpeculativeDeploymentSpec") -> Iterator[Finding]:
    chosen = _datasets(spec)
    names = BUILTIN if chosen is None else tuple(dataset.name for dataset in chosen)
    for i, pool in enumerate(spec.pools):
        for j, name in enumerate(pool.datasets or ()):
            if name not in names:
                yield f".pools[{i}].datasets[{j}]", f"'{name}' must be one of the datasets: {', '.join(names)}"


def _too_many_points(spec: "SpeculativeDeploymentSpec") -> Iterator[Finding]:
    chosen = _datasets(spec)
    every = len(BUILTIN) if chosen is None else len(chosen)
    for i, pool in enumerate(spec.pools):
        datasets = every if pool.datasets is None else len(pool.datasets)
        points = (1 + len(pool.candidates)) * datasets * len(pool.concurrency)
        if points > MOST_POINTS:
            yield (
                f".pools[{i}].candidates",
                f"(1 + candidates) x datasets x concurrency must be at most {MOST_POINTS}, what one round can report; "
                f"got {points}",
            )


_SETS = "(has(self.benchmark) && has(self.benchmark.datasets))"


class SpeculativeDeploymentSpec(Model):
    """A target, the ways to speculate for it, the pools that serve it and the rule by which one goes live."""

    rules = (
        Rule(
            cel="has(self.draft) || self.pools.all(p, p.candidates.all(c, has(c.draft)))",
            message="draft must be set in spec.draft or on every candidate",
            field=".draft",
            broken=_draftless,
        ),
        Rule(
            cel="self.pools.all(p, p.candidates.all(c, [has(c.draft) ? c.draft.algorithm : has(self.draft) ?"
            " self.draft.algorithm : ''].all(a, a == '' || (a == 'NGRAM' ? has(c.ngram) : a in ['DFLASH', 'DSPARK'] ?"
            " has(c.blockSize) : has(c.tree) || (has(c.adaptive) && a != 'STANDALONE')))))",
            message="a candidate takes tree (EAGLE, EAGLE3, NEXTN, MTP, STANDALONE), adaptive (these but STANDALONE),"
            " blockSize (DFLASH, DSPARK) or ngram (NGRAM)",
            field=".pools",
            broken=_misshapen,
        ),
        Rule(
            cel=f"self.pools.all(p, !has(p.datasets) || p.datasets.all(d, {_SETS}"
            " ? self.benchmark.datasets.exists(s, s.name == d) : d in ['code', 'swe', 'terminal', 'chat']))",
            message="datasets must be names in benchmark.datasets (by default: code, swe, terminal, chat)",
            field=".pools",
            broken=_unknown_dataset,
        ),
        Rule(
            cel="self.pools.all(p, (1 + p.candidates.size()) * p.concurrency.size() *"
            f" (has(p.datasets) ? p.datasets.size() : {_SETS} ? self.benchmark.datasets.size() : 4) <= {MOST_POINTS})",
            message=f"(1 + candidates) x datasets x concurrency must be at most {MOST_POINTS} in every pool:"
            " what one round can report",
            field=".pools",
            broken=_too_many_points,
        ),
    )

    suspend: bool = False
    """Freeze: no new run, no promotion. Serving goes on."""
    target: TargetSpec
    """The served model."""
    draft: DraftSpec | None = None
    """The head of all candidates that name none of their own."""
    engine: EngineSpec
    """What serves it."""
    accelerator: AcceleratorSpec
    """What it is served on."""
    cache: CacheSpec
    """Where models are kept."""
    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1, max_length=8), Unique(("name",))]
    """Kinds of traffic, each with its own servers and its own verdict."""
    benchmark: BenchmarkSpec | None = None
    """How candidates are measured."""
    gate: GateSpec | None = None
    """The rule from rounds to a verdict, for all pools."""
    promotion: PromotionSpec | None = None
    """How a verdict goes live."""
