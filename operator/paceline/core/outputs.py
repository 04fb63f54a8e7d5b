"""Comparison of the arms' answers: its settings, and the answers of one round."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from paceline.core.model import model

NEAR_TIE = 0.25
"""A divergence counts as rounding if the baseline's token is at most this many nats likelier than the other arm's (why:
docs/decisions/0018)."""


@model
class Parity:
    """Comparison of the candidates' outputs with the baseline's. Every arm of every round answers the first prompts of
    the first dataset, one at a time, at temperature 0. A candidate that differs by more than rounding explains is
    rejected; if the comparison is not possible, no candidate is promoted."""

    # No default: an empty `parity` would not change the fingerprint. More answers add no information.
    samples: Annotated[int, Field(ge=1, le=32)]
    """Number of prompts."""
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = 128
    """Maximum tokens per answer."""


UNASKED = Parity(samples=16)
"""What a run about a changed spec compares if nobody has asked for it. Such a comparison rejects nothing."""
MOST_COMPARED = 17
"""Arms whose answers a round compares; a pool has no more, its incumbent included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers of one round. `baseline` has a digest of each of its answers, in order; `diverged` maps a candidate
    to the prompts on which it differed from the baseline's answer by more than a near tie."""

    round: int
    baseline: tuple[str, ...]
    diverged: Mapping[str, frozenset[int]]
