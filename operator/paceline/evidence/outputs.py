"""The arms' answers to the prompts of parity."""

from collections.abc import Iterable
from dataclasses import dataclass

DIGEST_DIGITS = 4
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


def cut(digests: str) -> Iterable[str]:
    """The digests of a text, one per answer."""
    return (digests[start : start + DIGEST_DIGITS] for start in range(0, len(digests), DIGEST_DIGITS))
