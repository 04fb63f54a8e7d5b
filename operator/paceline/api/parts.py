"""What servers are started with, in both kinds: variables and keys, and an arm's draft and shape."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field

from paceline import core
from paceline.api.compatibility import ALIASES
from paceline.api.model import Finding, Matches, Model, Rule, Unique
from paceline.api.words import Algorithm, AlgorithmName, Arguments, ObjectName, Revision, SecretsKey, Source

NEEDS_SOURCE = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH")


def _two_values(variable: "EnvVar") -> Iterator[Finding]:
    if variable.value is not None and variable.value_from is not None:
        yield ".valueFrom", "valueFrom must be left out where value is set"


class KeyRef(Model):
    """A key of a Secret or ConfigMap in the same namespace."""

    name: ObjectName
    """Name of the object."""
    key: SecretsKey
    """Key in it."""
    optional: bool | None = None
    """Whether it may be absent."""


class FieldRef(Model):
    """A field of the pod."""

    api_version: Annotated[str, Field(max_length=20)] | None = None
    """Version of the schema; v1 if absent."""
    field_path: Annotated[str, Field(max_length=400)]
    """Path of the field, such as status.podIP."""


class ResourceFieldRef(Model):
    """A container's resources."""

    container_name: Annotated[str, Field(max_length=63)] | None = None
    """Name of the container; the variable's own container if absent."""
    resource: Annotated[str, Field(max_length=253)]
    """Such as limits.memory."""
    divisor: Annotated[str, Field(max_length=20)] | None = None
    """Unit of the value, as a quantity in quotes; 1 if absent."""


class FileKeyRef(Model):
    """A key of a file that an init container wrote."""

    volume_name: Annotated[str, Field(max_length=63)]
    """Name of the volume."""
    path: Annotated[str, Field(max_length=500)]
    """Path of the file in it."""
    key: Annotated[str, Field(max_length=253)]
    """Key in it."""
    optional: bool | None = None
    """Whether it may be absent."""


ENV_SOURCES = ("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef", "fileKeyRef")
ONE_SOURCE = f"valueFrom must have exactly one of {', '.join(ENV_SOURCES)}"


def _from_nowhere(source: "EnvVarSource") -> Iterator[Finding]:
    if (said := len(source.model_fields_set)) != 1:
        yield "", f"{ONE_SOURCE}; got {said}"


class EnvVarSource(Model):
    """A core/v1 EnvVarSource."""

    rules = (
        Rule(
            cel=f"[{', '.join(f'has(self.{source})' for source in ENV_SOURCES)}].filter(x, x).size() == 1",
            message=ONE_SOURCE,
            broken=_from_nowhere,
        ),
    )

    secret_key_ref: KeyRef | None = None
    """A key of a Secret."""
    config_map_key_ref: KeyRef | None = None
    """A key of a ConfigMap."""
    field_ref: FieldRef | None = None
    """A field of the pod."""
    resource_field_ref: ResourceFieldRef | None = None
    """A container's resources."""
    file_key_ref: FileKeyRef | None = None
    """A key of a file."""


class EnvVar(Model):
    """A core/v1 EnvVar."""

    rules = (
        Rule(
            cel="!(has(self.value) && has(self.valueFrom))",
            message="valueFrom must be left out where value is set",
            field=".valueFrom",
            broken=_two_values,
        ),
    )

    name: Annotated[str, Field(max_length=253), Matches(r"^[A-Za-z_.-][A-Za-z0-9_.-]*$", "be a variable's name")]
    """Name of the variable."""
    value: Annotated[str, Field(max_length=4096)] | None = None
    """Its value; write secrets as a reference, in valueFrom."""
    value_from: EnvVarSource | None = None
    """Source of its value, for example a secretKeyRef."""


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
    """Shape of a draft proposal."""

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
    """Depth: tokens that the head proposes one after another."""
    top_k: Annotated[int, Field(ge=1, le=64)]
    """Branching: continuations kept at each step; 1 is a chain."""
    num_draft_tokens: Annotated[int, Field(ge=2, le=512)]
    """Verify width, the root included: tokens that the target checks in one step."""


def _no_match(ngram: "NgramSpec") -> Iterator[Finding]:
    if ngram.min_match is not None and ngram.max_match is not None and ngram.min_match > ngram.max_match:
        yield ".minMatch", f"minMatch must be at most maxMatch = {ngram.max_match}; got {ngram.min_match}"


class NgramSpec(Model):
    """How drafts are found in the text itself. Absent fields have the engine's own defaults."""

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
    """Verify width: tokens that the target checks in one step."""
    breadth: Annotated[int, Field(ge=1, le=64)] | None = None
    """Continuations to keep; 1 is a chain."""
    min_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Minimum length in tokens of a repeated passage. SGLang refuses it from 0.5.10 on."""
    max_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Maximum length in tokens of a passage to look for. SGLang refuses it from 0.5.10 on."""


class AdaptiveSpec(Model):
    """A chain whose depth the engine adapts to the acceptance that it observes."""

    num_steps: Annotated[int, Field(ge=1, le=64)] | None = None
    """Initial depth or maximum number of proposed tokens, as the engine reads it: see the table of engines in
    docs/api.md."""


class DepthSpec(Model):
    """Depth from a batch size on."""

    from_batch_size: Annotated[int, Field(ge=1, le=4096)]
    """Smallest batch size (requests in a step) that this entry applies to, up to the next entry."""
    num_steps: Annotated[int, Field(ge=0, le=64)]
    """Depth of the chain in tokens; 0 disables speculation."""


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
    """An algorithm that this API does not name, with the flags to give to the engine. It is measured; no rule makes
    assumptions about it."""

    args: Arguments = ()
    """Flags of the algorithm; for what an engine takes, see the table of engines in docs/api.md."""


def _sourceless(draft: "DraftSpec") -> Iterator[Finding]:
    if draft.algorithm in NEEDS_SOURCE and draft.source is None:
        yield ".source", f"source must name a draft head for {draft.algorithm}"


def _nameless(draft: "DraftSpec") -> Iterator[Finding]:
    if (draft.algorithm == core.CUSTOM) != (draft.name is not None):
        yield ".name", NAMED


def _known_name(draft: "DraftSpec") -> Iterator[Finding]:
    if draft.name is not None and (known := draft.name.upper()) in KNOWN_NAMES:
        yield ".name", f"{KNOWN_BY_WORD}; got {draft.name}: {KNOWN_NAMES[known]}"


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
KNOWN_NAMES = {
    **{name: f"write algorithm: {name}" for name in core.ALGORITHMS if name != core.CUSTOM},
    **{name: f"write algorithm: {algorithm}" for name, algorithm in ALIASES.items()},
    "NONE": "it speculates nothing: remove it, the baseline is measured in any case",
}
"""In capitals → the way out."""
KNOWN_BY_WORD = "name must be of an algorithm that there is no word for: what is known of one would not be checked"


class DraftSpec(Model):
    """A draft head and its algorithm."""

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
    """Speculation algorithm. EAGLE, EAGLE3, DFLASH and DSPARK use a trained head, NEXTN and MTP layers of the target,
    STANDALONE a small model, NGRAM the text. Custom: any other algorithm of the engine, by its `name`; it is measured,
    and no rule checks it."""
    name: AlgorithmName | None = None
    """Name of a Custom algorithm in the engine, for example UNO or suffix."""
    source: Source | None = None
    """Location of the head: hf://OWNER/NAME or pvc://CLAIM/PATH."""
    revision: Revision = "main"
    """Branch, tag or commit of the head."""
