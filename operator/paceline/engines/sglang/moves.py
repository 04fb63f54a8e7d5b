"""What SGLang's releases change by themselves when they speculate: `data/sglang-moves.json`, read out of their wheels.

dev/sglang/extract_moves.py runs each wheel's own resolution of arguments with and without speculation and keeps what
comes out otherwise, by arm and GPU. docs/engines-sglang.md shows it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from paceline.engines.release import release

MEMORY, BACKEND = "mem_fraction_static", "attention_backend"
ADAPTIVE, TREE = "EAGLE3 adaptive", "EAGLE3 tree"
"""Arms beside those that are called as their algorithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A resolved argument that is another one under speculation.

    `by` has the arms that move it, with the GPUs on which they do; `on` the targets. `at` are the lines that set it,
    below `srt/` of the wheel. `before` and `after` are an example.
    """

    by: Mapping[str, tuple[str, ...]]
    on: Mapping[str, tuple[str, ...]]
    at: tuple[str, ...]
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """`moves` with nothing pinned, `moves_when_pinned` with a fixed attention backend and memory fraction. `lacks` are
    arms that it does not know, `memory` mem_fraction_static of a dense target by GPU and arm."""

    name: str
    lacks: frozenset[str]
    moves: Mapping[str, Moved]
    moves_when_pinned: Mapping[str, Moved]
    memory: Mapping[str, Mapping[str, float]]

    def moved_by(self, field: str) -> Mapping[str, tuple[str, ...]]:
        """Arm → GPUs; nothing where the field stays."""
        return self.moves[field].by if field in self.moves else {}


@cache
def releases() -> tuple[Release, ...]:
    """From the oldest on."""
    text = (resources.files("paceline.engines") / "data" / "sglang-moves.json").read_text()
    read: Mapping[str, Any] = json.loads(text)["releases"]
    return tuple(
        Release(
            name=name,
            lacks=frozenset(one["lacks"]),
            moves={field: _moved(row) for field, row in one["moves"].items()},
            moves_when_pinned={field: _moved(row) for field, row in one["movesWhenPinned"].items()},
            memory=one["memFractionStatic"],
        )
        for name, one in read.items()
    )


def of(version: str) -> Release | None:
    """The release of that name; one of the same number for another build (0.5.6+fork), the newest before it for one
    that nobody has read. None for what is older than all, or no version."""
    plain = re.sub(r"[-+].*", "", version.removeprefix("v"))
    exact = next((one for one in releases() if one.name == plain), None)
    asked = release(version)
    if exact or asked is None:
        return exact
    return next((one for one in reversed(releases()) if (release(one.name) or ()) <= asked), None)


def first_with(arm: str) -> str | None:
    """The oldest release that knows an arm."""
    return next((one.name for one in releases() if arm not in one.lacks), None)


def _moved(row: Mapping[str, Any]) -> Moved:
    return Moved(
        by={arm: tuple(gpus) for arm, gpus in row["by"].items()},
        on={arm: tuple(targets) for arm, targets in row["on"].items()},
        at=tuple(row["at"]),
        before=row["from"],
        after=row["to"],
    )
