"""The blocks that both kinds are built of."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from paceline import core
from paceline.api.model import Finding, Matches, Model, Rule, Unique
from paceline.api.pace import LASTS, MOST_REQUESTS
from paceline.api.words import (
    ALGORITHMS,
    Algorithm,
    AlgorithmName,
    Amount,
    Arguments,
    Confidence,
    DatasetName,
    DatasetSource,
    Fraction,
    NearTie,
    ObjectName,
    Positive,
    Revision,
    SecretsKey,
    Source,
    Temperature,
    Tolerance,
)

NEEDS_SOURCE = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH")
ENV_SOURCES = ("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef")


def _two_values(variable: "EnvVar") -> Iterator[Finding]:
    if variable.value is not None and variable.value_from is not None:
        yield ".valueFrom", "valueFrom must be left out where value is set"


def _from_nowhere(variable: "EnvVar") -> Iterator[Finding]:
    said = list(variable.value_from or {})
    if variable.value_from is not None and (len(said) != 1 or said[0] not in ENV_SOURCES):
        near = get_close_matches(said[0], ENV_SOURCES, n=1) if said else []
        meant = f"did you mean {near[0]}?" if near else f"one of {', '.join(ENV_SOURCES)}"
        yield ".valueFrom", f"valueFrom must have exactly one source; got {', '.join(said) or 'none'}: {meant}"


class EnvVar(Model):
    """A core/v1 EnvVar."""

    rules = (
        Rule(
            cel="!(has(self.value) && has(self.valueFrom))",
            message="valueFrom must be left out where value is set",
            field=".valueFrom",
            broken=_two_values,
        ),
        Rule(message=f"valueFrom must have exactly one of {', '.join(ENV_SOURCES)}", broken=_from_nowhere),
    )

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
    key: SecretsKey
    """Key in it."""


class TokenKey(SecretKey):
    """A key of a Secret in the same namespace."""

    key: SecretsKey = "token"
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
            message="numDraftTokens must be numSteps + 1 where topK is 1 (a chain)",
            say="'numDraftTokens must be numSteps + 1 = %d where topK is 1 (a chain); got %d'"
            ".format([self.numSteps + 1, self.numDraftTokens])",
            field=".numDraftTokens",
            broken=_narrow,
        ),
        Rule(
            cel="self.topK == 1 || self.numDraftTokens - 1 <= self.topK + (self.numSteps - 1) * self.topK * self.topK",
            message="numDraftTokens must be at most 1 + topK + (numSteps - 1) * topK * topK",
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


def _no_match(ngram: "NgramSpec") -> Iterator[Finding]:
    if ngram.min_match is not None and ngram.max_match is not None and ngram.min_match > ngram.max_match:
        yield ".minMatch", f"minMatch must be at most maxMatch = {ngram.max_match}; got {ngram.min_match}"


class NgramSpec(Model):
    """How drafts are found in the text itself; what is absent is the engine's own value."""

    rules = (
        Rule(
            cel="!has(self.minMatch) || !has(self.maxMatch) || self.minMatch <= self.maxMatch",
            message="minMatch must be at most maxMatch",
            say="'minMatch must be at most maxMatch = %d; got %d'.format([self.maxMatch, self.minMatch])",
            field=".minMatch",
            broken=_no_match,
        ),
    )

    num_draft_tokens: Annotated[int, Field(ge=2, le=512)] | None = None
    """Verify width: how many tokens the target checks in one step."""
    breadth: Annotated[int, Field(ge=1, le=64)] | None = None
    """How many continuations are kept; 1 is a chain. SGLang alone."""
    min_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Fewest tokens of the text that must repeat. VLLM, and SGLang before 0.5.10."""
    max_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Most tokens of the text that are looked for. VLLM, and SGLang before 0.5.10."""


class AdaptiveSpec(Model):
    """A chain whose depth the engine chooses while it serves, by what is accepted. SGLang and VLLM."""

    num_steps: Annotated[int, Field(ge=1, le=64)] | None = None
    """SGLang: the depth to begin with, its own if absent. VLLM: the most tokens that are proposed, 7 if absent; how
    many of them are verified is decided in every step."""


class DepthSpec(Model):
    """What is proposed from a batch size on."""

    from_batch_size: Annotated[int, Field(ge=1, le=4096)]
    """Requests in a step: from so many on, up to the next entry."""
    num_steps: Annotated[int, Field(ge=0, le=64)]
    """Depth of the chain: how many tokens are proposed; 0 for no speculation."""


Schedule = Annotated[tuple[DepthSpec, ...], Field(min_length=2, max_length=16), Unique(("from_batch_size",))]


def _gaps(arm: Any) -> Iterator[Finding]:
    sizes = [depth.from_batch_size for depth in arm.schedule or ()]
    if sizes and (sizes[0] != 1 or sizes != sorted(sizes)):
        yield ".schedule", f"{FROM_ONE}; got {', '.join(map(str, sizes))}"


def _rests(arm: Any) -> Iterator[Finding]:
    if arm.schedule and not any(depth.num_steps for depth in arm.schedule):
        yield ".schedule", SOMEWHERE


FROM_ONE = "schedule must begin with fromBatchSize 1 and rise from there"
SOMEWHERE = "schedule must have a numSteps above 0: without speculation anywhere it is the baseline"
OF_SCHEDULE = (
    Rule(
        cel="!has(self.schedule) || (self.schedule[0].fromBatchSize == 1"
        " && self.schedule.map(d, d.fromBatchSize).isSorted())",
        message=FROM_ONE,
        field=".schedule",
        broken=_gaps,
    ),
    Rule(
        cel="!has(self.schedule) || self.schedule.exists(d, d.numSteps > 0)",
        message=SOMEWHERE,
        field=".schedule",
        broken=_rests,
    ),
)
"""Of what has a `schedule`."""


class CustomSpec(Model):
    """An algorithm that there is no word for here: what the engine is told of it. It is measured, and nothing about it
    is assumed."""

    args: Arguments = ()
    """Its own flags: on SGLang those that begin with --speculative- or, for UNO, --uno-; on VLLM keys of its
    speculative configuration, as --speculative-config.KEY=VALUE."""


def _sourceless(draft: "DraftSpec") -> Iterator[Finding]:
    if draft.algorithm in NEEDS_SOURCE and draft.source is None:
        yield ".source", f"source must name a draft head for {draft.algorithm}"


def _nameless(draft: "DraftSpec") -> Iterator[Finding]:
    if (draft.algorithm == core.CUSTOM) != (draft.name is not None):
        yield ".name", NAMED


def _known_name(draft: "DraftSpec") -> Iterator[Finding]:
    if draft.name is not None and (known := draft.name.upper()) in KNOWN_NAMES:
        yield ".name", f"{KNOWN_BY_WORD}; got {draft.name}: write algorithm: {KNOWN_NAMES[known]}"


def _unused_source(draft: "DraftSpec") -> Iterator[Finding]:
    if draft.algorithm == "NGRAM" and draft.source is not None:
        yield ".source", "source must be left out for NGRAM, which drafts from the text itself"


def _revision_of_claim(model: Any) -> Iterator[Finding]:
    if (model.source or "").startswith("pvc://") and model.revision != "main":
        yield ".revision", "revision must be left out for pvc://: what lies there is served as it is"


ON_CLAIM = Rule(
    cel="!has(self.source) || !self.source.startsWith('pvc://') || self.revision == 'main'",
    message="revision must be left out for pvc://: what lies there is served as it is",
    field=".revision",
    broken=_revision_of_claim,
)


NAMED = f"name must be set for {core.CUSTOM}, and for it alone: what the engine calls the algorithm"
KNOWN_NAMES = {name: name for name in ALGORITHMS if name != core.CUSTOM} | {"DRAFT_MODEL": "STANDALONE"}
"""Of engines, in capitals → the algorithm."""
KNOWN_BY_WORD = "name must be of an algorithm that there is no word for: what is known of one would not be checked"


class DraftSpec(Model):
    """A draft head and the algorithm that drives it."""

    rules = (
        ON_CLAIM,
        Rule(
            cel="!(self.algorithm in ['EAGLE', 'EAGLE3', 'STANDALONE', 'DFLASH']) || has(self.source)",
            message="source must name a draft head for EAGLE, EAGLE3, STANDALONE and DFLASH",
            say="'source must name a draft head for %s'.format([self.algorithm])",
            field=".source",
            broken=_sourceless,
        ),
        Rule(
            cel=f"(self.algorithm == '{core.CUSTOM}') == has(self.name)",
            message=NAMED,
            field=".name",
            broken=_nameless,
        ),
        Rule(
            cel=f"!has(self.name) || !self.name.matches('(?i)^({'|'.join(KNOWN_NAMES)})$')",
            message=KNOWN_BY_WORD,
            field=".name",
            broken=_known_name,
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
    target itself, STANDALONE with a small model, NGRAM from the text. Custom: any other that the engine has, by its
    `name`; it is measured, and no rule knows it."""
    name: AlgorithmName | None = None
    """Of Custom: what the engine calls it, for instance UNO (SGLang) or suffix (VLLM)."""
    source: Source | None = None
    """The head: hf://OWNER/NAME or pvc://CLAIM/PATH."""
    revision: Revision = "main"
    """Branch, tag or commit of the head."""


ONE_FILE = "source hf://datasets/OWNER/NAME/PATH must name one .json or .jsonl file of single-turn prompts"
TABLES = (".parquet", ".csv", ".arrow")


def _no_file_of_prompts(prompts: "PromptsSpec") -> Iterator[Finding]:
    source = prompts.source
    file = source.removeprefix(core.HUB).split("/", 2)[2:]
    if not source.startswith(core.HUB) or (file and file[0].endswith((".json", ".jsonl"))):
        return
    if not file:
        why = "name a file of this repository"
    elif file[0].endswith(TABLES):
        why = "write the rows out as messages, with to_json of the library `datasets` for instance, and name that file"
    elif file[0].endswith((".gz", ".zip", ".zst", ".bz2", ".xz")):
        why = "name one that is not packed"
    else:
        why = "what is in it must be told by its name"
    yield ".source", f"{ONE_FILE}: {why}; got {source}"


class PromptsSpec(Model):
    """Prompts and how many of them are sent."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            cel=f"!self.source.startsWith('{core.HUB}') || self.source.matches('^{core.HUB}[^/]+/[^/]+/.+[.]jsonl?$')",
            message=ONE_FILE,
            field=".source",
            broken=_no_file_of_prompts,
        ),
        LASTS,
    )

    name: DatasetName
    """What it is called in results."""
    source: DatasetSource
    """Where the prompts come from: builtin://code, builtin://swe, builtin://terminal or builtin://chat, or a file of
    single-turn OpenAI messages or ShareGPT conversations: configMap://NAME/KEY, pvc://CLAIM/PATH or, on the hub,
    hf://datasets/OWNER/NAME/PATH."""
    requests: Annotated[int, Field(ge=1, le=MOST_REQUESTS)] | None = None
    """How many are sent, 64 if absent; in a closed loop never fewer than five times its concurrency. Where requestRate
    is set: at least as many as arrive in 20 seconds, and if absent as many as in 60."""
    max_tokens: Annotated[int, Field(ge=1, le=131072)] | None = None
    """Cap of an answer; 512 if absent."""
    request_rate: Amount | None = None
    """Requests a second, arriving at random however many are under way, in place of always as many as the concurrency.
    The speed of a request is compared then, not throughput."""
    temperature: Temperature | None = None
    """Sampling temperature of every request, "0" if absent: greedy. model: requests name none, so they are sampled as
    the server does by itself, on most engines as the model's generation_config.json says. All else of sampling is the
    server's default either way."""
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """Share in the weighted mean over workloads."""


def of_the_hub_alone(field: str) -> Rule:
    """A field of prompts that says something of hf://datasets/ and of no other source."""

    def broken(prompts: Any) -> Iterator[Finding]:
        if getattr(prompts, field) is not None and not prompts.source.startswith(core.HUB):
            yield f".{field}", message

    message = f"{field} must be left out where source is not of {core.HUB}: nothing else has one"
    return Rule(
        cel=f"!has(self.{field}) || self.source.startsWith('{core.HUB}')",
        message=message,
        field=f".{field}",
        broken=broken,
    )


class DatasetSpec(PromptsSpec):
    """Prompts and how many of them are sent."""

    rules = (*PromptsSpec.rules, of_the_hub_alone("revision"))

    revision: Revision | None = None
    """Branch, tag or commit of a dataset of the hub, main if absent; resolved to a commit once, then pinned in
    status."""


BOUNDS = {"kvTokens": "maximumDecrease", "retractions": "maximum"}
"""Of metrics that are no latency: by which field they are bounded."""


def _other_bound(limit: "LimitSpec") -> Iterator[Finding]:
    given = {
        "maximumIncrease": limit.maximum_increase,
        "maximumDecrease": limit.maximum_decrease,
        "maximum": limit.maximum,
    }
    right = BOUNDS.get(limit.metric, "maximumIncrease")
    said = [name for name, value in given.items() if value is not None]
    if said != [right]:
        yield f".{right}", f"{limit.metric} must be bounded by {right} alone; got {', '.join(said) or 'nothing'}"


class LimitSpec(Model):
    """A metric other than throughput that may not get much worse."""

    rules = (
        Rule(
            cel="self.metric == 'kvTokens'"
            " ? has(self.maximumDecrease) && !has(self.maximumIncrease) && !has(self.maximum)"
            " : self.metric == 'retractions'"
            " ? has(self.maximum) && !has(self.maximumIncrease) && !has(self.maximumDecrease)"
            " : has(self.maximumIncrease) && !has(self.maximumDecrease) && !has(self.maximum)",
            message="a latency must be bounded by maximumIncrease alone, kvTokens by maximumDecrease, retractions by "
            "maximum",
            field=".metric",
            broken=_other_bound,
        ),
    )

    metric: Literal[
        "meanTTFT", "p95TTFT", "meanTPOT", "p95TPOT", "p99ITL", "meanE2E", "p95E2E", "kvTokens", "retractions"
    ]
    """Which one: a latency, how many tokens the KV cache holds, or how many requests of a workload a server may take
    back for want of memory."""
    maximum_increase: Fraction | None = None
    """By which fraction of the baseline's a latency may rise. Where requests arrive at a rate, and neither meanTTFT nor
    p95TTFT is named here, meanTTFT may rise by "0.25" there."""
    maximum_decrease: Tolerance | None = None
    """By which fraction of the baseline's kvTokens may fall."""
    maximum: Annotated[int, Field(ge=0, le=100000)] | None = None
    """How many retractions there may be, on any arm; none if retractions is not named here. A server with more is one
    that did not live through its round: the second such round makes a candidate Unreliable."""


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
    limits: Annotated[tuple[LimitSpec, ...], Field(max_length=9), Unique(("metric",))] | None = None
    """Latencies and memory that are bounded as well."""


class BudgetSpec(Model):
    """What a run may take; at its end the verdict is what has been shown so far."""

    gpu_hours: Amount
    """Accelerators times hours, as a decimal string."""


class ParitySpec(Model):
    """Whether candidates answer what the baseline answers: the first prompts of the first dataset are asked of every
    arm of every round, one after another at temperature 0. A candidate that differs further than rounding explains is
    rejected; where that cannot be told, none is promoted."""

    samples: Annotated[int, Field(ge=1, le=32)]
    """How many prompts."""
    max_tokens: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Cap of an answer; 128 if absent."""
    near_tie: NearTie | None = None
    """By how many nats, in the baseline's own logprobs, its token may be likelier than the one that the candidate goes
    on with, for the difference to be put down to rounding; "0.25" if absent, which is Paceline's choice."""


MOST_POINTS = 48
"""Points of a round that fit into its termination message."""
MOST_COMPARED = 16
"""Arms whose answers fit there, too; a pool has no more."""
MOST_MEASURED = 480
"""Points of a run, over all of its rounds. Its status holds them all, each at up to 1.5 kB with what is told of its
server, and etcd takes no object of more than 1.5 MiB: the rest is for the spec and for rounds that are tried again. Ten
rounds of as many points as a message holds, forty of three arms on four sets."""


def last_round(looks: Sequence[int] | None, arms: int) -> int:
    """How many rounds a run of so many arms with these `decideAfterRounds` has at most, if none has to be replaced."""
    return (looks or core.default_looks(arms))[-1]


def _disordered(gate: Any) -> Iterator[Finding]:
    rounds = list(gate.decide_after_rounds or ())
    if rounds != sorted(rounds):
        yield ".decideAfterRounds", f"decideAfterRounds must rise: {sorted(rounds)}"


RISING = Rule(
    cel="!has(self.decideAfterRounds) || self.decideAfterRounds.isSorted()",
    message="decideAfterRounds must rise, for example [4, 6, 8]",
    field=".decideAfterRounds",
    broken=_disordered,
)
