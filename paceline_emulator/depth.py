"""How many tokens a step proposes, where an engine decides that while it serves.

SGLang 0.5.23 (`speculative/adaptive_spec_params.py`): a table has for each batch size the depths that may be taken, and
each entry moves by its own mean of what was accepted. A batch is taken for the next larger size that a graph was
captured for, and then for the largest entry that is not above that. At depth 0 the root alone is verified, which counts
as a call of length 1, and the head still reads along.

vLLM 0.33.0: a schedule gives the depth by batch size, and at depth 0 nothing is counted; adaptive verification proposes
always as many, and verifies as many of them as its costs say.
"""

import bisect
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline_emulator.profile import Pace, Shape

Paces = Mapping[str | None, Pace]
"""By dataset."""

AT_REST = Shape(steps=1, branches=1, width=1)
"""Nothing is proposed, and the head pays a step to keep its own cache going."""

OWN_TABLE: Mapping[str, Mapping[str, Any]] = {
    "1": {"candidate_steps": [1, 3, 5, 7], "down_hysteresis": -0.25},
    "8": {"candidate_steps": [0, 1, 3], "down_hysteresis": 0.0},
    "32": {"candidate_steps": [0, 1], "down_hysteresis": 0.0},
    "64": {"candidate_steps": [0], "down_hysteresis": 0.0},
}
GRAPHS = (*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8))
"""Batch sizes that graphs are captured for where an engine speculates (`cuda_graph_hook.py:518`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafting:
    """One step: how fast, how many tokens it proposes for a request, and whether it counts as a verify call."""

    paces: Paces
    proposed: int
    counted: bool


@dataclass(slots=True, kw_only=True)
class Slot:
    """A batch size's own depth and the mean of accepted drafts that it goes by."""

    steps: tuple[int, ...]
    now: int
    down: float
    up: float
    alpha: float
    interval: int
    warmup: int
    ceiling: float
    """The depth is at most so many times the mean, rounded up, once it does not rise; 0: however deep."""
    mean: float = 0.0
    seen: int = 0

    def learn(self, accepted: Sequence[int]) -> None:
        """Of one step's requests; the depth changes only now and then."""
        if self.now > 0 and accepted:
            self.mean += self.alpha * (sum(accepted) / len(accepted) - self.mean)
        self.seen += 1
        if self.seen > self.warmup and (self.seen - self.warmup) % self.interval == 0:
            self._move()

    def _move(self) -> None:
        place = self.steps.index(self.now)
        if self.now == 0:  # a look at the least there is
            self.now = self.steps[min(place + 1, len(self.steps) - 1)]
            if self.now > 0 and self.mean < 0:  # nothing was drafted yet
                self.mean = self.now - 1.0
            return
        fell = place
        while fell > 0 and self.mean <= self._enough_for(self.steps[fell - 1]) + self.down:
            fell -= 1
        rose = place
        while rose < len(self.steps) - 1 and self.mean > self.steps[rose] - 0.5 + self.up:
            rose += 1
        to = fell if fell < place else rose
        most = max(1, math.ceil(self.mean * self.ceiling))
        while self.ceiling > 0 and 0 < to <= place and self.steps[to] > most:
            to -= 1
        self.now = self.steps[to]

    @staticmethod
    def _enough_for(steps: int) -> float:
        return 0.5 if steps == 0 else steps - 0.5


@dataclass(slots=True)
class Adaptive:
    """SGLang's own choice. `paces` by depth."""

    paces: Callable[[int], Paces]
    slots: Mapping[int, Slot]
    _known: dict[int, Paces] = field(default_factory=dict)

    def of(self, batch: int) -> Drafting:
        steps = self._slot(batch).now
        if steps not in self._known:
            self._known[steps] = self.paces(steps)
        return Drafting(paces=self._known[steps], proposed=steps, counted=True)

    def learn(self, batch: int, accepted: Sequence[int]) -> None:
        self._slot(batch).learn(accepted)

    def _slot(self, batch: int) -> Slot:
        above = bisect.bisect_left(GRAPHS, batch)
        padded = GRAPHS[above] if above < len(GRAPHS) else batch
        sizes = sorted(self.slots)
        return self.slots[sizes[max(0, bisect.bisect_right(sizes, padded) - 1)]]


def table(path: str | None) -> Mapping[str, Any]:
    """`--speculative-adaptive-config`, or SGLang's own; raises what SGLang raises."""
    found: Mapping[str, Any] = json.loads(Path(path).read_text()) if path else OWN_TABLE
    entries = {size: entry for size, entry in found.items() if size.isdigit()}
    for size, entry in entries.items():
        steps = entry.get("candidate_steps")
        if not isinstance(steps, list) or not steps or not all(isinstance(step, int) and step >= 0 for step in steps):
            raise ValueError(f"BS {size}: candidate_steps must be a list of non-negative ints, got {steps!r}")
    if not entries:
        raise ValueError(
            "speculative_adaptive_config must contain at least one integer-string BS key, e.g. "
            f'{{"1": {{"candidate_steps": [1,3,7]}}}}. Got keys: {list(found)}'
        )
    return found


def depths(found: Mapping[str, Any]) -> list[int]:
    """All that may be taken, rising."""
    return sorted({step for size, entry in found.items() if size.isdigit() for step in entry["candidate_steps"]})


def slots(found: Mapping[str, Any], begins: int) -> dict[int, Slot]:
    """What is said beside the entries holds for all of them."""
    return {int(size): _slot({**found, **entry}, begins) for size, entry in found.items() if size.isdigit()}


def _slot(said: Mapping[str, Any], begins: int) -> Slot:
    steps = tuple(sorted(set(said["candidate_steps"])))
    now = begins if begins in steps else steps[len(steps) // 2]
    return Slot(
        steps=steps,
        now=now,
        mean=now - 1.0,
        down=said.get("down_hysteresis", -0.25),
        up=said.get("up_hysteresis", 0.0),
        alpha=said.get("ema_alpha", 0.2),
        interval=said.get("update_interval", 5),
        warmup=said.get("warmup_batches", 10),
        ceiling=said.get("ceiling_coeff", 0),
    )


def by_schedule(ranges: Sequence[Sequence[int]], paces: Callable[[int], Paces]) -> Callable[[int], Drafting]:
    """vLLM's: of `[from, to, depth]`, the last that begins at or below the batch (a gap goes on like what was)."""
    starts = [(first, steps) for first, _, steps in sorted(map(tuple, ranges))]
    known = {steps: paces(steps) for _, steps in starts}

    def of(batch: int) -> Drafting:
        steps = [steps for first, steps in starts if first <= max(1, batch)][-1]
        return Drafting(paces=known[steps], proposed=steps, counted=steps > 0)

    return of


def by_cost(proposed: int, paces: Callable[[int], Paces]) -> Callable[[int], Drafting]:
    """vLLM's adaptive verification: so many are proposed and counted, and the fastest number of them is verified."""
    known = {verified: paces(verified) for verified in range(proposed + 1)}

    def of(batch: int) -> Drafting:
        fastest = max(known, key=lambda verified: known[verified][None].throughput(max(1, batch)))
        return Drafting(paces=known[fastest], proposed=proposed, counted=True)

    return of
