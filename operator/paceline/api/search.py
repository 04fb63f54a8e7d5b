"""What a search may try, in place of named candidates."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from paceline.api.model import Finding, Model, Rule


def _upside_down(bounds: "Range") -> Iterator[Finding]:
    if bounds.min > bounds.max:
        yield ".min", f"min must be at most max = {bounds.max}; got {bounds.min}"


class Range(Model):
    """A range of integers, both ends included."""

    rules = (
        Rule(
            cel="self.min <= self.max",
            message="min must be at most max",
            say="'min must be at most max = %d; got %d'.format([self.max, self.min])",
            field=".min",
            broken=_upside_down,
        ),
    )

    min: Annotated[int, Field(ge=1, le=64)]
    """Smallest value."""
    max: Annotated[int, Field(ge=1, le=64)]
    """Largest value."""


class Widths(Range):
    """A range of verify widths, both ends included."""

    min: Annotated[int, Field(ge=2, le=512)]
    """Smallest value."""
    max: Annotated[int, Field(ge=2, le=512)]
    """Largest value."""


class SearchSpec(Model):
    """Trees that a search may try."""

    num_steps: Range
    """Depths."""
    top_k: Range
    """Branchings."""
    num_draft_tokens: Widths
    """Verify widths."""
