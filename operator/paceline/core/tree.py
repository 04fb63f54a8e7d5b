"""The draft head and the shape of its proposals."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from paceline.core.model import model
from paceline.core.source import Source
from paceline.core.types import Arguments


@model
class Tree:
    """Shape of a draft proposal."""

    num_steps: Annotated[int, Field(ge=1, le=64)]
    """Depth: tokens that the head proposes one after another."""
    top_k: Annotated[int, Field(ge=1, le=64)] = 1
    """Branching: continuations kept at each step; 1 (the default) is a chain."""
    num_draft_tokens: Annotated[int, Field(ge=2, le=512)] = 0
    """Verify width with the root: tokens that the target checks in one step; for a chain numSteps + 1 if absent."""

    def __post_init__(self) -> None:
        if not self.num_draft_tokens:
            object.__setattr__(self, "num_draft_tokens", self.num_steps + 1)

    @property
    def widest(self) -> int:
        """The most tokens for this depth and branching: the root, then top_k, then top_k² per level."""
        return 1 + self.top_k + (self.num_steps - 1) * self.top_k**2


@model
class Range:
    """A range of integers, both ends included."""

    min: Annotated[int, Field(ge=1, le=64)]
    """Smallest value."""
    max: Annotated[int, Field(ge=1, le=64)]
    """Largest value."""

    def __contains__(self, number: int) -> bool:
        return self.min <= number <= self.max


@model
class Widths(Range):
    """A range of verify widths, both ends included."""

    min: Annotated[int, Field(ge=2, le=512)]
    """Smallest value."""
    max: Annotated[int, Field(ge=2, le=512)]
    """Largest value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The trees that a search may try."""

    draft: "Draft"
    num_steps: Range
    top_k: Range
    num_draft_tokens: Widths

    def __contains__(self, tree: Tree) -> bool:
        return (
            tree.num_steps in self.num_steps
            and tree.top_k in self.top_k
            and tree.num_draft_tokens in self.num_draft_tokens
        )


@model
class Ngram:
    """How drafts are found in the text itself. Absent fields have the engine's own defaults."""

    num_draft_tokens: Annotated[int, Field(ge=2, le=512)] | None = None
    """Verify width: tokens that the target checks in one step."""
    breadth: Annotated[int, Field(ge=1, le=64)] | None = None
    """Continuations to keep; 1 is a chain."""
    min_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Minimum length in tokens of a repeated passage. SGLang refuses it from 0.5.10 on."""
    max_match: Annotated[int, Field(ge=1, le=64)] | None = None
    """Maximum length in tokens of a passage to look for. SGLang refuses it from 0.5.10 on."""


@model
class Adaptive:
    """A chain whose depth the engine adapts to the acceptance that it observes."""

    num_steps: Annotated[int, Field(ge=1, le=64)] | None = None
    """Initial depth or maximum number of proposed tokens, as the engine reads it: see the table of engines in
    docs/api.md."""


@model
class Depth:
    """Depth from a batch size on."""

    from_batch_size: Annotated[int, Field(ge=1, le=4096)]
    """Smallest batch size (requests in a step) that this entry applies to, up to the next entry. SGLang counts a batch
    as the CUDA graph that it is padded to."""
    num_steps: Annotated[int, Field(ge=0, le=64)]
    """Depth of the chain in tokens; 0 disables speculation."""


@model
class Custom:
    """An algorithm that this API does not name, with its flags for the engine. It is measured; few rules check it."""

    args: Arguments = ()
    """Flags of the algorithm; for what an engine takes, see the table of engines in docs/api.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A repository at a revision; the prefetch resolves its `commit`.

    `source` is `hf://OWNER/NAME`, `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `pvc://CLAIM/PATH` or `oci://REGISTRY/REPOSITORY@sha256:DIGEST`.
    """

    source: str
    revision: str = "main"
    commit: str | None = None

    @property
    def address(self) -> Source:
        return Source.parse(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft head and its algorithm; `model` is None if the algorithm needs none."""

    algorithm: str
    model: Model | None = None
    name: str | None = None
    """The engine's name of the algorithm; set for CUSTOM only."""
