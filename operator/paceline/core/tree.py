"""The draft head and the shape of its proposals."""

from dataclasses import dataclass

from paceline.core.source import Source

CUSTOM = "Custom"
"""The algorithm for engine algorithms that the API does not know by name."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Tree:
    """The shape of one draft proposal.

    `num_steps` is the depth, `top_k` the branching, `num_draft_tokens` the number of verified tokens, root included.
    """

    num_steps: int
    top_k: int
    num_draft_tokens: int

    @property
    def widest(self) -> int:
        """The most tokens that this depth and branching can fill: the root, then top_k, then top_k² per level."""
        return 1 + self.top_k + (self.num_steps - 1) * self.top_k**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Whole numbers, both ends included."""

    min: int
    max: int

    def __contains__(self, number: int) -> bool:
        return self.min <= number <= self.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The trees that a search may try, of one head or several."""

    draft: "Draft"
    num_steps: Range
    top_k: Range
    num_draft_tokens: Range
    heads: "tuple[Head, ...]" = ()
    """Beside `draft`."""

    @property
    def drafts(self) -> "dict[str, Draft]":
        """Name → head; `draft` has none."""
        return {"": self.draft, **{head.name: head.draft for head in self.heads}}

    def __contains__(self, tree: Tree) -> bool:
        return (
            tree.num_steps in self.num_steps
            and tree.top_k in self.top_k
            and tree.num_draft_tokens in self.num_draft_tokens
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ngram:
    """Draft from n-grams of the text; None leaves a value to the engine.

    `breadth` is the number of continuations (1 is a chain); a match has `min_match` to `max_match` tokens.
    """

    num_draft_tokens: int | None = None
    breadth: int | None = None
    min_match: int | None = None
    max_match: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """A chain whose depth the engine chooses while it serves. `num_steps` is the initial depth (SGLang) or the largest
    (vLLM); None leaves it to the engine, or to Paceline if the engine has no default."""

    num_steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Depth:
    """From a batch of `from_batch_size` requests on, draft `num_steps` tokens; 0 stops speculation."""

    from_batch_size: int
    num_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """An algorithm that only the engine knows, given by the engine's flags."""

    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A repository at a revision; the prefetch resolves its `commit`.

    `source` is `hf://OWNER/NAME`, `pvc://CLAIM/PATH` or `oci://REGISTRY/REPOSITORY@sha256:DIGEST`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A draft head that is searched beside the spec's. The names of its arms end in its name."""

    name: str
    draft: Draft
