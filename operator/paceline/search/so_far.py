"""The state of every arm after some rounds, for people who follow a search. No decision uses it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.core import Bounds
from paceline.gate.interval import ratio
from paceline.search.found import Z_OF_95_PERCENT
from paceline.search.question import Observation, Question
from paceline.search.rank import rank
from paceline.search.standing import Standing, standing_rows
from paceline.search.steps import reference_chain
from paceline.search.table import Table


class State(StrEnum):
    """State of a measured arm."""

    BEST = "best"
    OPEN = "may be best"
    BEHIND = "behind"
    FEW = "too few points"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmSoFar:
    """A measured arm. `speed`: relative to the baseline; None until that is measured, and for the baseline itself."""

    name: str
    points: int
    state: State
    speed: Bounds | None = None
    error: str = ""


def arms_so_far(question: Question, points: Sequence[Observation]) -> tuple[ArmSoFar, ...]:
    """The measured arms, best first, failed ones last."""
    table = Table.of(question, points)
    home = reference_chain(table)
    failed = [_failed(table, name) for name in table.failed if table.out(question.names.index(name))]
    if home is None or not table.counts[home].any():
        return tuple(failed)
    now = standing_rows(table, rank(table, home), home)
    out = {one.name for one in failed}
    rows = [i for i, name in enumerate(question.names) if table.counts[i].any() and name not in out]
    rows.sort(key=lambda row: -float(now.values[row]))
    return (*(_one(table, now, row) for row in rows), *failed)


def _failed(table: Table, name: str) -> ArmSoFar:
    row = table.question.names.index(name)
    return ArmSoFar(name=name, points=int(table.counts[row].sum()), state=State.FAILED, error=table.errors[name])


def _one(table: Table, now: Standing, row: int) -> ArmSoFar:
    points = int(table.counts[row].sum())
    if row in now.alive:
        state = State.BEST if row == now.alive[0] else State.OPEN
    else:
        state = State.FEW if points < 2 else State.BEHIND
    return ArmSoFar(name=table.question.names[row], points=points, state=state, speed=_speed(table, now, row))


def _speed(table: Table, now: Standing, row: int) -> Bounds | None:
    """Speed relative to the baseline; missing workloads are estimated from acceptance."""
    baseline = table.question.baseline
    counts = table.counts[row].sum(), table.counts[baseline].sum()
    if row == baseline or not all(counts):
        return None
    mean = float(now.values[row] - now.values[baseline])
    error = Z_OF_95_PERCENT * now.noise * math.sqrt(sum(1 / count for count in counts))
    return Bounds(ratio=ratio(mean), lower=ratio(mean - error), upper=ratio(mean + error))
