"""What is speculated with: the draft head and the shape of its proposals."""

from dataclasses import dataclass

CUSTOM = "Custom"
"""The algorithm that stands for every one that there is no word for."""


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
    """A chain whose depth the engine chooses while it serves. `num_steps` is the depth to begin with (SGLang), or the
    most that it proposes (vLLM); None is left to the engine, or to Paceline where the engine has none."""

    num_steps: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """From `from_batch_size` requests at a time on, chains of `num_steps` draft tokens; 0: no speculation."""

    from_batch_size: int
    num_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Custom:
    """An algorithm of the engine that has no words here: its own flags, as pasted."""

    args: tuple[str, ...] = ()


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
    name: str | None = None
    """What the engine calls it; of CUSTOM alone."""
