"""What is speculated with: the draft head and the shape of its proposals."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Tree:
    """The shape of one draft proposal.

    `num_steps` is the depth, `top_k` the branching, `num_draft_tokens` the verify width with the root included.
    """

    num_steps: int
    top_k: int
    num_draft_tokens: int

    @property
    def widest(self) -> int:
        """The most draft tokens this depth and branching can fill: one root, then top_k, then top_k² a level."""
        return 1 + self.top_k + (self.num_steps - 1) * self.top_k**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Ngram:
    """Drafting from the text itself; None is the engine's own value.

    `breadth` is how many continuations are kept (1 is a chain); a match has `min_match` to `max_match` tokens.
    """

    num_draft_tokens: int | None = None
    breadth: int | None = None
    min_match: int | None = None
    max_match: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Adaptive:
    """A chain whose depth the engine chooses while it serves; `num_steps` is the depth to begin with."""

    num_steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A repository at a revision; `commit` is known once the prefetch has resolved it.

    `source` is `hf://OWNER/NAME` or `pvc://CLAIM/PATH`.
    """

    source: str
    revision: str = "main"
    commit: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft head and the algorithm that drives it; `model` is None where the algorithm needs none."""

    algorithm: str
    model: Model | None = None
