"""What a round says of its arms' answers, and how it stands in the round's message and in status."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.core import Answers

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
        digests=tuple(_cut(digests)),
        samples=samples,
        near_ties=near_ties,
        diverged=tuple(prompt for prompt in range(mask.bit_length()) if mask >> prompt & 1),
        first=first,
        gap=gap,
    )


def _cut(digests: str) -> Iterable[str]:
    return (digests[at : at + DIGEST] for at in range(0, len(digests), DIGEST))


def outputs_status(found: Outputs) -> dict[str, Any]:
    """`parity` of a replicate in status."""
    if found.unknown:
        return {"unknown": found.unknown}
    if found.digests:
        return {"samples": len(found.digests), "outputs": "".join(found.digests)}
    entry: dict[str, Any] = {
        "samples": found.samples,
        "identical": found.identical,
        "nearTies": found.near_ties,
        "diverged": len(found.diverged),
    }
    if found.diverged:
        entry["divergedAt"] = list(found.diverged)
    if found.first is not None:
        entry["firstDivergence"] = found.first
    if found.gap is not None:
        entry["largestGap"] = f"{found.gap:.2f}"
    return entry


def answers(rounds: Iterable[Mapping[str, Any]]) -> list[Answers]:
    """What the gate reads: of every round that gave a result and whose baseline answered, in order."""
    return [found for entry in rounds if not entry.get("error") and (found := _answers(entry))]


def _answers(entry: Mapping[str, Any]) -> Answers | None:
    said = {one["arm"]: one.get("parity") or {} for one in entry.get("replicates", ())}
    baseline = next((parity["outputs"] for parity in said.values() if parity.get("outputs")), "")
    if not baseline:
        return None
    return Answers(
        round=entry["round"],
        baseline=tuple(_cut(baseline)),
        diverged={arm: frozenset(parity.get("divergedAt", ())) for arm, parity in said.items() if "diverged" in parity},
    )
