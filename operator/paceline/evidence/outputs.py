"""What a round says of its arms' answers, and how it stands in the round's message."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

DIGEST = 4
"""Hex digits of an answer's SHA-256: two answers that differ look alike once in 65,536 times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """One arm's answers to the prompts of parity. Of the baseline `digests`, one an answer; of a candidate what came of
    the comparison with the baseline in the same round.

    `diverged` are prompts, counted from 0, at which the candidate left the baseline's answer and no near tie explains
    it. `first` is the earliest token, counted from 0, at which any answer was left, near ties included; `gap` the
    widest gap in nats at such a place. `unknown` is why nothing is known; "" where all is.
    """

    unknown: str = ""
    digests: tuple[str, ...] = ()
    samples: int = 0
    near_ties: int = 0
    diverged: tuple[int, ...] = ()
    first: int | None = None
    gap: float | None = None

    @property
    def identical(self) -> int:
        return self.samples - self.near_ties - len(self.diverged)


def to_columns(found: Sequence[Outputs | None], longest: int) -> list[list[Any]]:
    """By column, for the message; nothing where no arm was asked. `longest`: characters of a reason."""
    if not any(found):
        return []
    rows = [
        (
            one.unknown[:longest],
            "".join(one.digests),
            one.samples,
            one.near_ties,
            f"{sum(1 << prompt for prompt in one.diverged):x}",
            one.first,
            None if one.gap is None else round(one.gap, 2),
        )
        if one
        else (None,) * 7
        for one in found
    ]
    return [list(column) for column in zip(*rows, strict=True)]


def from_columns(columns: Sequence[Sequence[Any]], arms: int) -> list[Outputs | None]:
    if not columns:
        return [None] * arms
    return [None if row[0] is None else _outputs(*row) for row in zip(*columns, strict=True)]


def _outputs(
    unknown: str, digests: str, samples: int, near_ties: int, diverged: str, first: int | None, gap: float | None
) -> Outputs:
    mask = int(diverged, 16)
    return Outputs(
        unknown=unknown,
        digests=tuple(cut(digests)),
        samples=samples,
        near_ties=near_ties,
        diverged=tuple(prompt for prompt in range(mask.bit_length()) if mask >> prompt & 1),
        first=first,
        gap=gap,
    )


def cut(digests: str) -> Iterable[str]:
    """One digest an answer."""
    return (digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST))
