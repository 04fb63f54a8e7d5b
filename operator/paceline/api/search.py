"""What a search may try, in place of named candidates."""

from typing import Annotated

from pydantic import Field

from paceline.api.model import Model
from paceline.api.rules import Rule


class Range(Model):
    """A range of integers, both ends included."""

    rules = (
        Rule(
            cel="self.min <= self.max",
            message="min must be at most max = {self.max}; got {self.min}",
            field=".min",
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
