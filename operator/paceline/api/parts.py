"""The blocks that both kinds are built of."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from paceline import core
from paceline.api.model import Finding, Matches, Model, Rule, Unique

Word = Annotated[str, Field(min_length=1, max_length=253)]
ObjectName = Annotated[
    str,
    Field(max_length=253),
    Matches(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "be a Kubernetes name: lower-case letters, digits, '-' and '.'"),
]
LabelValue = Annotated[
    str,
    Field(max_length=63),
    Matches(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", "be a label value, for example NVIDIA-H200"),
]
LabelKey = Annotated[
    str,
    Field(max_length=253),
    Matches(r"^([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", "be a label key such as nvidia.com/gpu"),
]
PoolName = Annotated[
    str,
    Field(max_length=20),
    Matches(r"^[a-z][a-z0-9]*$", "be lower-case letters and digits, a letter first: no '-', which joins NAME-POOL"),
]
ArmName = Annotated[
    str, Field(max_length=30), Matches(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "be lower-case letters, digits and '-'")
]
DatasetName = ArmName
Source = Annotated[
    str,
    Field(max_length=300),
    Matches(
        r"^(hf://[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9_][A-Za-z0-9._-]*|pvc://[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)+)$",
        "be hf://OWNER/NAME or pvc://CLAIM/PATH",
    ),
]
DatasetSource = Annotated[
    str,
    Field(max_length=300),
    Matches(r"^builtin://(code|swe|terminal|chat)$", "be builtin://code, ://swe, ://terminal or ://chat"),
]
Revision = Annotated[
    str,
    Field(max_length=200),
    Matches(r"^[A-Za-z0-9_][A-Za-z0-9._/-]*$", "be a branch, tag or commit"),
]
Commit = Annotated[str, Field(max_length=64), Matches(r"^[0-9a-f]{7,64}$", "be the hash of a commit")]
Fraction = Annotated[
    str, Field(max_length=8), Matches(r"^[0-9](\.[0-9]{1,6})?$", "be a decimal string such as '0.05' (5 %)")
]
Tolerance = Annotated[
    str, Field(max_length=8), Matches(r"^0(\.[0-9]{1,6})?$", "be a decimal string below 1, such as '0.03' (3 %)")
]
Confidence = Annotated[
    str,
    Field(max_length=8),
    Matches(r"^0\.[5-9][0-9]{0,5}$", "be a decimal string of at least '0.5' and below '1'"),
]
Positive = Annotated[
    str, Field(max_length=8), Matches(r"^0\.0*[1-9][0-9]*$", "be a decimal string above 0 and below 1, such as '0.002'")
]
Duration = Annotated[
    str,
    Field(max_length=20),
    Matches(
        r"^([1-9][0-9]{0,4}h([0-9]{1,5}m)?([0-9]{1,5}s)?|[1-9][0-9]{0,4}m([0-9]{1,5}s)?|[1-9][0-9]{0,4}s)$",
        "be a duration above zero in h, m and s, such as 30m or 1h30m",
    ),
]
Quantity = Annotated[
    str,
    Field(max_length=20),
    Matches(r"^[1-9][0-9]*(\.[0-9]+)?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$", "be a quantity such as 400Gi"),
]
Argument = Annotated[str, Field(min_length=1, max_length=2048)]
Arguments = Annotated[tuple[Argument, ...], Field(max_length=64)]
Labels = Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=16)]

ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "MTP", "STANDALONE", "NGRAM", "DFLASH", "DSPARK")
Algorithm = Annotated[
    str,
    Field(max_length=20),
    Matches(
        f"^({'|'.join(ALGORITHMS)})$",
        f"be one of {', '.join(ALGORITHMS)}; Medusa and Lookahead are served by no engine here, the nearest are EAGLE3 "
        "(a trained head) and NGRAM (no head)",
    ),
]
NEEDS_SOURCE = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH")


class EnvVar(Model):
    """A core/v1 EnvVar."""

    name: Annotated[str, Field(max_length=253), Matches(r"^[A-Za-z_.-][A-Za-z0-9_.-]*$", "be a variable's name")]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=4096)] | None = None
    """Its value; secrets go by reference, in valueFrom."""
    value_from: dict[str, Any] | None = None
    """A core/v1 EnvVarSource, for example a secretKeyRef."""


Env = Annotated[tuple[EnvVar, ...], Field(max_length=64), Unique(("name",))]


class SecretKey(Model):
    """A key of a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""
    key: Annotated[str, Field(min_length=1, max_length=253)]
    """Key in it."""


class TokenKey(SecretKey):
    """A key of a Secret in the same namespace."""

    key: Annotated[str, Field(min_length=1, max_length=253)] = "token"
    """Key in it."""


def _narrow(tree: "TreeSpec") -> Iterator[Finding]:
    if tree.top_k == 1 and tree.num_draft_tokens != (right := tree.num_steps + 1):
        yield (
            ".numDraftTokens",
            f"numDraftTokens must be numSteps + 1 = {right} where topK is 1 (a chain); got {tree.num_draft_tokens}",
        )


def _overfull(tree: "TreeSpec") -> Iterator[Finding]:
    widest = core.Tree(num_steps=tree.num_steps, top_k=tree.top_k, num_draft_tokens=tree.num_draft_tokens).widest
    if tree.top_k > 1 and tree.num_draft_tokens > widest:
        yield (
            ".numDraftTokens",
            f"numDraftTokens must be at most 1 + topK + (numSteps - 1) * topK * topK = {widest}; "
            f"got {tree.num_draft_tokens}",
        )


class TreeSpec(Model):
    """The shape of one draft proposal."""

    rules = (
        Rule(
            cel="self.topK != 1 || self.numDraftTokens == self.numSteps + 1",
            say="'numDraftTokens must be numSteps + 1 = %d where topK is 1 (a chain); got %d'"
            ".format([self.numSteps + 1, self.numDraftTokens])",
            field=".numDraftTokens",
            broken=_narrow,
        ),
        Rule(
            cel="self.topK == 1 || self.numDraftTokens - 1 <= self.topK + (self.numSteps - 1) * self.topK * self.topK",
            say="'numDraftTokens must be at most 1 + topK + (numSteps - 1) * topK * topK = %d; got %d'"
            ".format([1 + self.topK + (self.numSteps - 1) * self.topK * self.topK, self.numDraftTokens])",
            field=".numDraftTokens",
            broken=_overfull,
        ),
    )

    num_steps: Annotated[int, Field(ge=1, le=64)]
    """Depth: how many tokens the head proposes one after another."""
    top_k: Annotated[int, Field(ge=1, le=64)]
    """Branching: how many continuations are kept at each step; 1 is a chain."""
    num_draft_tokens: Annotated[int, Field(ge=2, le=512)]
    """Verify width, the root included: how many tokens the target checks in one step."""


class NgramSpec(Model):
    """How drafts are found in the text itself; what is absent is the engine's own value."""

    num_draft_tokens: Annotated[int, Field(ge=2, le=512)] | None = None
    """Verify width: how many tokens the target checks in one step."""
    breadth: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many continuations are kept; 1 is a chain. SGLang alone."""
    min_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Fewest tokens of the text that must repeat. VLLM, and SGLang before 0.5.10."""
    max_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Most tokens of the text that are looked for. VLLM, and SGLang before 0.5.10."""


class AdaptiveSpec(Model):
    """A chain whose depth the engine chooses while it serves, by what is accepted. SGLang alone."""

    num_steps: Annotated[int, Field(ge=1, le=64)] | None = None
    """Depth to begin with; the engine's own value if absent."""


def _sourceless(draft: "DraftSpec") -> Iterator[Finding]:
    if draft.algorithm in NEEDS_SOURCE and draft.source is None:
        yield ".source", f"source must name a draft head for {draft.algorithm}"


def _unused_source(draft: "DraftSpec") -> Iterator[Finding]:
    if draft.algorithm == "NGRAM" and draft.source is not None:
        yield ".source", "source must be left out for NGRAM, which drafts from the text itself"


class DraftSpec(Model):
    """A draft head and the algorithm that drives it."""

    rules = (
        Rule(
            cel="!(self.algorithm in ['EAGLE', 'EAGLE3', 'STANDALONE', 'DFLASH']) || has(self.source)",
            say="'source must name a draft head for %s'.format([self.algorithm])",
            field=".source",
            broken=_sourceless,
        ),
        Rule(
            cel="self.algorithm != 'NGRAM' || !has(self.source)",
            message="source must be left out for NGRAM, which drafts from the text itself",
            field=".source",
            broken=_unused_source,
        ),
    )

    algorithm: Algorithm
    """How drafts are made: EAGLE, EAGLE3, DFLASH and DSPARK with a trained head, NEXTN and MTP with layers of the
    target itself, STANDALONE with a small model, NGRAM from the text."""
    source: Source | None = None
    """The head: hf://OWNER/NAME or pvc://CLAIM/PATH."""
    revision: Revision = "main"
    """Branch, tag or commit of the head."""


Architecture = Annotated[
    str, Field(max_length=100), Matches(r"^[A-Za-z][A-Za-z0-9_]*$", "be a class name such as Qwen3NextForCausalLM")
]
PodTemplate = dict[str, Any]


class EngineSpec(Model):
    """The inference engine and what every arm is started with."""

    name: Literal["SGLang", "SGLangJAX", "VLLM"]
    """Which engine the image holds."""
    version: Annotated[
        str, Field(max_length=40), Matches(r"^[0-9]+\.[0-9]+[A-Za-z0-9.+-]*$", "be a version such as '0.5.23'")
    ]
    """The version the image speaks: it decides which flags are emitted and checked."""
    image: Annotated[str, Field(max_length=500), Matches(r"^[A-Za-z0-9][^\s]*$", "be an image reference")]
    """Any image of that engine, forks included; the digest that ran is recorded."""
    args: Arguments = ()
    """Further arguments of the server, the same on every arm."""
    trust_remote_code: bool = False
    """Lets the model's repository bring code of its own."""
    eagle3_targets: Annotated[tuple[Architecture, ...], Field(max_length=16), Unique()] | None = None
    """Target architectures for which this image, a fork, adds the EAGLE3 hook to what its version has."""
    env: Env = ()
    """Environment of the servers."""
    api_key_secret_ref: SecretKey | None = None
    """The key that clients must send; the operator never reads it."""
    admin_key_secret_ref: SecretKey | None = None
    """The key of the server's administration, which the benchmark uses to flush caches; the operator never reads it."""
    pod_template: PodTemplate | None = None
    """Laid over the servers' pod template: maps merge, lists of named objects merge by name (the container is
    `server`), the rest replaces."""


def _too_parallel(accelerator: "AcceleratorSpec") -> Iterator[Finding]:
    most = accelerator.count * (accelerator.nodes or 1)
    if (accelerator.tensor_parallel_size or 0) > most:
        yield (
            ".tensorParallelSize",
            f"tensorParallelSize must be at most count x nodes = {most}; got {accelerator.tensor_parallel_size}",
        )


class AcceleratorSpec(Model):
    """The accelerators of one server."""

    rules = (
        Rule(
            cel="!has(self.tensorParallelSize) || self.tensorParallelSize <="
            " self.count * (has(self.nodes) ? self.nodes : 1)",
            say="'tensorParallelSize must be at most count x nodes = %d; got %d'"
            ".format([self.count * (has(self.nodes) ? self.nodes : 1), self.tensorParallelSize])",
            field=".tensorParallelSize",
            broken=_too_parallel,
        ),
    )

    product: LabelValue
    """Value of the node's product label, for example NVIDIA-H200."""
    count: Annotated[int, Field(ge=1, le=64)]
    """How many one server takes on each of its nodes."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=64)] | None = None
    """Over how many of them the model is split; all of them if absent."""
    resource_name: LabelKey = "nvidia.com/gpu"
    """The extended resource that is requested."""
    product_label: LabelKey = "nvidia.com/gpu.product"
    """The node label that `product` is a value of."""
    nodes: Annotated[int, Field(ge=1, le=16)] | None = None
    """Over how many nodes one server goes, 1 if absent; more than one needs the LeaderWorkerSet controller."""
    topology: LabelValue | None = None
    """Of TPU slices, for example 2x2: the value of the node's topology label."""
    topology_label: LabelKey | None = None
    """The node label that `topology` is a value of; cloud.google.com/gke-tpu-topology if absent."""
    memory: Quantity | None = None
    """Of one accelerator, for example 80Gi; known for common products if absent."""


class DatasetSpec(Model):
    """Prompts and how many of them are sent."""

    name: DatasetName
    """What it is called in results."""
    source: DatasetSource
    """Where the prompts come from: builtin://code, builtin://swe, builtin://terminal or builtin://chat."""
    requests: Annotated[int, Field(ge=1, le=100000)] | None = None
    """How many are sent, 64 if absent; at a higher concurrency never fewer than three times that."""
    max_tokens: Annotated[int, Field(ge=1, le=131072)] | None = None
    """Cap of an answer; 512 if absent."""
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """Share in the weighted mean over workloads."""


class LimitSpec(Model):
    """A metric other than throughput that may not get much worse."""

    metric: Literal["meanTTFT", "p95TTFT", "meanTPOT", "p95TPOT", "p95E2E"]
    """Which one."""
    maximum_increase: Fraction
    """By which fraction of the baseline's it may rise."""


class GateSpec(Model):
    """The rule from rounds to a verdict; what is absent is taken from the wider gate, then from the defaults."""

    minimum_improvement: Fraction | None = None
    """A candidate must be shown to be faster by more than this, as a mean over workloads; "0.05" if absent."""
    regression_tolerance: Tolerance | None = None
    """On no workload may it be slower by this or more; "0.03" if absent."""
    confidence: Confidence | None = None
    """Of the whole decision, over all candidates and looks; "0.95" if absent."""
    variance_floor: Positive | None = None
    """Smallest standard deviation of ln(ratio) that is believed; "0.002" if absent."""
    limits: Annotated[tuple[LimitSpec, ...], Field(max_length=5), Unique(("metric",))] | None = None
    """Latencies that are bounded as well."""


DecideAfterRounds = Annotated[
    tuple[Annotated[int, Field(ge=2, le=50)], ...],
    Field(min_length=1, max_length=8),
    Unique(),
]

MOST_POINTS = 48
"""Points of a round that fit into its termination message."""


def _disordered(gate: Any) -> Iterator[Finding]:
    rounds = list(gate.decide_after_rounds or ())
    if rounds != sorted(rounds):
        yield ".decideAfterRounds", f"decideAfterRounds must rise: {sorted(rounds)}"


RISING = Rule(
    cel="!has(self.decideAfterRounds) || self.decideAfterRounds.isSorted()",
    message="decideAfterRounds must rise, for example [3, 5, 8]",
    field=".decideAfterRounds",
    broken=_disordered,
)
