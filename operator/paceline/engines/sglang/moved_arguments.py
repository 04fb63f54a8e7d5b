"""The arguments that SGLang's releases change for speculation: `data/moves.json`, extracted from their wheels.

dev/sglang/extract_moves.py runs each wheel's own resolution of arguments with and without speculation and keeps the
differences, by arm and GPU. docs/engines-sglang.md shows it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from paceline.engines.arguments import read_data
from paceline.engines.release import release

MEMORY, BACKEND = "mem_fraction_static", "attention_backend"
ADAPTIVE, TREE = "EAGLE3 adaptive", "EAGLE3 tree"
"""Arms whose name is not their algorithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A resolved argument that differs under speculation.

    `by` maps the arms that change it to the GPUs on which they do; `on` are the targets. `at` are the lines that set
    it, below `srt/` of the wheel. `before` and `after` are an example.
    """

    by: Mapping[str, tuple[str, ...]]
    on: Mapping[str, tuple[str, ...]]
    at: tuple[str, ...]
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseMoves:
    """`moves` with nothing pinned, `moves_when_pinned` with a fixed attention backend and memory fraction. `lacks` are
    arms that the release lacks, `memory` is mem_fraction_static of a dense target by GPU and arm."""

    name: str
    lacks: frozenset[str]
    moves: Mapping[str, Moved]
    moves_when_pinned: Mapping[str, Moved]
    memory: Mapping[str, Mapping[str, float]]

    def moved_by(self, field: str) -> Mapping[str, tuple[str, ...]]:
        """Arm → GPUs; empty if the field does not change."""
        return self.moves[field].by if field in self.moves else {}


@cache
def releases() -> tuple[ReleaseMoves, ...]:
    """Oldest first."""
    rows: Mapping[str, Any] = read_data(__package__, "moves.json")["releases"]
    return tuple(
        ReleaseMoves(
            name=name,
            lacks=frozenset(row["lacks"]),
            moves={field: _moved(move) for field, move in row["moves"].items()},
            moves_when_pinned={field: _moved(move) for field, move in row["movesWhenPinned"].items()},
            memory=row["memFractionStatic"],
        )
        for name, row in rows.items()
    )


def moves_of(version: str) -> ReleaseMoves | None:
    """The release with that name; for another build (0.5.6+fork) the release with its number, for an unlisted one the
    newest earlier release. None for a version older than all, or another name."""
    plain = re.sub(r"[-+].*", "", version.removeprefix("v"))
    exact = next((row for row in releases() if row.name == plain), None)
    number = release(version)
    if exact or number is None:
        return exact
    return next((row for row in reversed(releases()) if (release(row.name) or ()) <= number), None)


def first_with(arm: str) -> str | None:
    """The oldest release with this arm."""
    return next((row.name for row in releases() if arm not in row.lacks), None)


def _moved(row: Mapping[str, Any]) -> Moved:
    return Moved(
        by={arm: tuple(gpus) for arm, gpus in row["by"].items()},
        on={arm: tuple(targets) for arm, targets in row["on"].items()},
        at=tuple(row["at"]),
        before=row["from"],
        after=row["to"],
    )
