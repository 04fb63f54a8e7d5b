"""What a search may try, in place of named candidates."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from paceline.api.model import Finding, Model, Rule


def _upside_down(bounds: "Range") -> Iterator[Finding]:
    if bounds.min > bounds.max:
        yield ".min", f"min must be at most max = {bounds.max}; got {bounds.min}"


class Range(Model):
    """From one number to another, both included."""

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
    """The smallest."""
    max: Annotated[int, Field(ge=1, le=64)]
    """The largest."""


class Widths(Range):
    """From one verify width to another, both included."""

    min: Annotated[int, Field(ge=2, le=512)]
    """The smallest."""
    max: Annotated[int, Field(ge=2, le=512)]
    """The largest."""


class SearchSpec(Model):
    """The trees that a search may try."""

    num_steps: Range
    """Depths."""
    top_k: Range
    """Branchings."""
    num_draft_tokens: Widths
    """Verify widths."""
