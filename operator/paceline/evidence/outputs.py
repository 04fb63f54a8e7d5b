"""The arms' answers to the prompts of parity, and their form in the round's message."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

DIGEST = 4
"""Hex digits of an answer's SHA-256: two different answers have the same digits once in 65,536 times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """One arm's answers to the prompts of parity. The baseline has `digests`, one per answer; a candidate has the
    comparison with the baseline of the same round.

    `diverged`: prompts, counted from 0, whose answer diverges from the baseline's without a near tie to explain it.
    `first`: earliest token, counted from 0, at which any answer diverges, near ties included; `gap`: widest gap in nats
    at such a token. `unknown`: why nothing was compared; "" if it was.
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


def to_columns(outputs: Sequence[Outputs | None], longest: int) -> list[list[Any]]:
    """One column per field, for the message; empty if no arm has outputs. `longest`: characters of `unknown`."""
    if not any(outputs):
        return []
    rows = [
        (
            arm.unknown[:longest],
            "".join(arm.digests),
            arm.samples,
            arm.near_ties,
            f"{sum(1 << prompt for prompt in arm.diverged):x}",
            arm.first,
            None if arm.gap is None else round(arm.gap, 2),
        )
        if arm
        else (None,) * 7
        for arm in outputs
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
    """The digests of a text, one per answer."""
    return (digests[start : start + DIGEST] for start in range(0, len(digests), DIGEST))
