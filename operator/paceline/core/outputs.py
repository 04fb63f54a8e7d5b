"""Comparison of the arms' answers: its settings, and the answers of one round."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """Send the first `samples` prompts of the first dataset one by one at temperature 0, with at most `max_tokens`
    each. A divergence counts as rounding if the baseline's token is at most `near_tie` nats likelier than the other
    arm's (why 0.25: docs/decisions/0018)."""

    samples: int
    max_tokens: int = 128
    near_tie: float = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of one round. `baseline` has a digest of each of its answers, in order; `diverged` maps a
    candidate to the prompts on which it left the baseline's answer by more than a near tie."""

    round: int
    baseline: tuple[str, ...]
    diverged: Mapping[str, frozenset[int]]
