"""A draft head, its algorithm and the shape of its proposals."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from paceline import core
from paceline.api.compatibility import ALIASES
from paceline.api.engine import EngineChange
from paceline.api.model import SchemaModel
from paceline.api.rules import Rule
from paceline.core.types import (
    Algorithm,
    AlgorithmName,
    Arguments,
    ArmName,
    Revision,
    SourceText,
    Unique,
)

NEEDS_SOURCE = ("EAGLE", "EAGLE3", "STANDALONE", "DFLASH")


_TOP_K = "(has(self.topK) ? self.topK : 1)"
WIDEST = f"1 + {_TOP_K} + (self.numSteps - 1) * {_TOP_K} * {_TOP_K}"
"""CEL: draft tokens of the widest tree; SGLang keeps topK continuations of each of topK nodes in every later step."""

RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    core.Tree: (
        Rule(
            cel=f"{_TOP_K} == 1 || has(self.numDraftTokens)",
            message="numDraftTokens must be set if topK is above 1: only a chain always has numSteps + 1",
            field=".numDraftTokens",
        ),
        Rule(
            cel=f"{_TOP_K} != 1 || !has(self.numDraftTokens) || self.numDraftTokens == self.numSteps + 1",
            message="numDraftTokens must be numSteps + 1 = {self.numSteps + 1} if topK is 1 (a chain); got "
            "{self.numDraftTokens}",
            field=".numDraftTokens",
        ),
        Rule(
            cel=f"{_TOP_K} == 1 || !has(self.numDraftTokens) || self.numDraftTokens <= {WIDEST}",
            message=f"numDraftTokens must be at most 1 + topK + (numSteps - 1) * topK * topK = {{{WIDEST}}}; "
            "got {self.numDraftTokens}",
            field=".numDraftTokens",
        ),
    ),
    core.Ngram: (
        Rule(
            cel="!has(self.minMatch) || !has(self.maxMatch) || self.minMatch <= self.maxMatch",
            message="minMatch must be at most maxMatch = {self.maxMatch}; got {self.minMatch}",
            field=".minMatch",
        ),
    ),
}


DepthByBatchSize = Annotated[tuple[core.Depth, ...], Field(min_length=2, max_length=16), Unique(("from_batch_size",))]


OF_DEPTHS = (
    Rule(
        cel="!has(self.depthByBatchSize) || (self.depthByBatchSize[0].fromBatchSize == 1"
        " && self.depthByBatchSize.map(d, d.fromBatchSize).isSorted())",
        message="depthByBatchSize must begin with fromBatchSize 1 and rise from there",
        field=".depthByBatchSize",
    ),
    Rule(
        cel="!has(self.depthByBatchSize) || self.depthByBatchSize.exists(d, d.numSteps > 0)",
        message="depthByBatchSize must have a numSteps above 0: without any speculation it is the baseline",
        field=".depthByBatchSize",
    ),
)
"""Rules of a type that has the field `depthByBatchSize`."""


ON_CLAIM = Rule(
    cel="!has(self.source) || self.source.matches('^(hf|s3|gs)://') || !has(self.revision) || self.revision == 'main'",
    message="revision must be left out for pvc://, whose files are served as they are, and oci://, which has a digest",
    field=".revision",
)


NOT_CUSTOM = {
    "|".join(name for name in core.ALGORITHMS if name != core.CUSTOM): "write it as algorithm",
    **{name: f"write algorithm: {algorithm}" for name, algorithm in ALIASES.items()},
    "NONE": "it does not speculate, and the baseline is always measured",
}
"""Names that a Custom algorithm cannot have, in capitals → what to do."""


class DraftSpec(SchemaModel):
    """A draft head and its algorithm."""

    rules = (
        ON_CLAIM,
        Rule(
            cel=f"!(self.algorithm in {list(NEEDS_SOURCE)}) || has(self.source)",
            message=f"source must name a draft head for {', '.join(NEEDS_SOURCE)}; got {{self.algorithm}} without "
            "source (the target's own layers are MTP)",
            field=".source",
        ),
        Rule(
            cel=f"(self.algorithm == '{core.CUSTOM}') == has(self.name)",
            message=f"name must be set for {core.CUSTOM}, and only for it: the engine's own name of the algorithm",
            field=".name",
        ),
        *(
            Rule(
                cel=f"!has(self.name) || !self.name.matches('(?i)^({names})$')",
                message=f"name must be an algorithm that `algorithm` does not list: {way_out}; got {{self.name}}",
                field=".name",
            )
            for names, way_out in NOT_CUSTOM.items()
        ),
        Rule(
            cel="self.algorithm != 'NGRAM' || !has(self.source)",
            message="source must be left out for NGRAM, which drafts from the text itself",
            field=".source",
        ),
    )

    algorithm: Algorithm
    """Speculation algorithm. EAGLE, EAGLE3, DFLASH and DSPARK use a trained head; NEXTN and MTP use layers of the
    target; STANDALONE uses a small model; NGRAM uses the text. Custom: another algorithm of the engine, by `name`; few
    rules check it."""
    name: AlgorithmName | None = None
    """Name of a Custom algorithm in the engine, for example UNO or suffix."""
    source: SourceText | None = None
    """Location of the head: hf://OWNER/NAME, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, pvc://CLAIM/PATH or
    oci://REGISTRY/REPOSITORY@sha256:DIGEST."""
    revision: Revision = "main"
    """Branch, tag or commit of the head; main if absent. For s3:// and gs:// any name, as for the target."""


class ShapeSpec(SchemaModel):
    """What an arm proposes, and its speculation flags."""

    name: ArmName
    """Name in results."""
    tree: core.Tree | None = None
    """Shape of a proposal, for EAGLE, EAGLE3, NEXTN, MTP and STANDALONE."""
    block_size: Annotated[int, Field(ge=1, le=64)] | None = None
    """Tokens proposed at once, for DFLASH and DSPARK."""
    ngram: core.Ngram | None = None
    """How NGRAM finds drafts in the text; may be {}."""
    adaptive: core.Adaptive | None = None
    """Instead of a tree: a chain whose depth the engine chooses; may be {}."""
    depth_by_batch_size: DepthByBatchSize | None = None
    """Instead of a tree: depth of the chain by batch size, from 1 on."""
    custom: core.Custom | None = None
    """Instead of a tree, for Custom: the algorithm's own flags; may be {}."""
    engine: EngineChange | None = None
    """How the engine of this arm's servers differs: another release, image, flag or variable."""
    args: Arguments = ()
    """Speculation flags without a field here, for this arm only; all other flags belong in engine.args."""
