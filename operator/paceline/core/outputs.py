"""What the arms answer, not how fast: the question and what a round shows of it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """The first `samples` prompts of the first dataset, one after another at temperature 0, answers of at most
    `max_tokens`. `near_tie` is in nats: by so much the baseline's token may be likelier than the one the other arm goes
    on with, and rounding explains it. Why 0.25: docs/decisions/0018."""

    samples: int
    max_tokens: int = 128
    near_tie: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One round. `baseline` has a digest of each of its answers, in the order of prompts; `diverged` says by candidate
    at which prompts it left the baseline's answer further than a near tie explains."""

    round: int
    baseline: tuple[str, ...]
    diverged: Mapping[str, frozenset[int]]
