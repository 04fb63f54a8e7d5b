"""A search over a run's rounds: its question, its points, and its next step (docs/searching.md).

`paceline.search` implements it; the points in status are its whole state. It uses numpy, which is imported only when a
search runs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from paceline.api.gate import MOST_POINTS
from paceline.api.round import Round
from paceline.core import BASELINE, Arm, Draft, RunSpec
from paceline.engines import ENGINES
from paceline.evidence.round_status import judged_speed, last_tries

if TYPE_CHECKING:
    from paceline.search import ArmSoFar, Found, Measure, Observation, Question


@dataclass(frozen=True, kw_only=True)
class Searching:
    spec: RunSpec
    records: tuple[Round, ...]

    @cached_property
    def question(self) -> "Question":
        from paceline.search import Option, Question

        engine, head = ENGINES[self.spec.server.engine.type], _head(self.spec.arms)
        return Question(
            options=tuple(
                Option(
                    name=arm.name,
                    tree=arm.tree if arm.draft == head and not arm.args else None,
                    draft_tokens=engine.verify_tokens(arm) - 1,
                )
                for arm in self.spec.arms
            ),
            workloads={workload.name: workload.weight for workload in self.spec.workloads},
            mixed=len({workload.concurrency for workload in self.spec.workloads}) > 1,
        )

    @cached_property
    def points(self) -> "tuple[Observation, ...]":
        """All measured cells of rounds with a result. An invalid measurement counts as a failure of its arm."""
        return tuple(_points(self.records))

    @cached_property
    def step(self) -> "Measure | Found":
        """The next step. A pool with several loads first measures chains at each load, because step times differ
        between loads; the search continues from their points."""
        from paceline.search.chains import sweep

        chains = sweep(self.question, self.points) if self.question.mixed else None
        return chains or _proceed(QuestionKey(self.question), self.points)

    @property
    def ended_now(self) -> "Found":
        """The result if no more is measured: the best so far."""
        from paceline.search import Found, Limits, proceed

        step = proceed(replace(self.question, limits=Limits(points=len(self.points))), self.points)
        if isinstance(step, Found):  # no note about a spent budget, because no user set this limit
            return replace(step, notes=tuple(note for note in step.notes if not note.startswith("the budget of ")))
        running = [arm for arm in self.arms_so_far if not arm.error]
        if not running:
            return Found(winner=None, complete=False)
        return Found(winner=running[0].name, speed_up=running[0].speed, complete=False)

    @cached_property
    def arms_so_far(self) -> "tuple[ArmSoFar, ...]":
        return _so_far(QuestionKey(self.question), self.points) if self.points else ()

    @cached_property
    def cells(self) -> Mapping[str, tuple[str, ...]]:
        """The cells of the next round: arm → its workloads, in running order. Limited to the arms that one round can
        report."""
        from paceline.search import Measure

        cells: dict[str, tuple[str, ...]] = {}
        if isinstance(self.step, Measure):
            for cell in self.step.cells:
                cells[cell.arm] = (*cells.get(cell.arm, ()), cell.workload)
        fitting, points = dict[str, tuple[str, ...]](), 0
        for arm, workloads in cells.items():
            points += len(workloads)
            if points <= MOST_POINTS:
                fitting[arm] = workloads
        return fitting

    @property
    def why(self) -> str:
        """The purpose of the next round; "" at the end."""
        from paceline.search import Measure

        return self.step.why if isinstance(self.step, Measure) else ""


def _head(arms: Iterable[Arm]) -> Draft | None:
    """The head with most trees: only its trees are ranked, because the ranking does not fit another head's."""
    heads = Counter(arm.draft for arm in arms if arm.draft and arm.tree and not arm.args)
    return heads.most_common(1)[0][0] if heads else None


class QuestionKey:
    """A hashable question for caching: passes repeat the same questions, and each answer takes tens of milliseconds."""

    def __init__(self, question: "Question") -> None:
        self.question = question
        self.key = question.options, tuple(question.workloads.items()), question.mixed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QuestionKey) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=64)
def _proceed(question: QuestionKey, points: "tuple[Observation, ...]") -> "Measure | Found":
    from paceline.search import proceed

    return proceed(question.question, points)


@lru_cache(maxsize=64)
def _so_far(question: QuestionKey, points: "tuple[Observation, ...]") -> "tuple[ArmSoFar, ...]":
    from paceline.search import arms_so_far

    return arms_so_far(question.question, points)


def _points(records: tuple[Round, ...]) -> "Iterator[Observation]":
    from paceline.search import ArmOnWorkload, Observation

    for record in last_tries(records):
        for point in record.points:
            yield Observation(
                round=record.round,
                cell=ArmOnWorkload(arm=point.arm, workload=point.workload),
                throughput=judged_speed(point) if point.valid else None,
                accept_length=point.accept_length if point.arm != BASELINE else None,
                error="" if point.valid else point.why or "not valid",
            )
