"""The recorded rounds of a run, and everything computed from them, once per pass."""

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from paceline.api.round import PointRecord, Round
from paceline.core import BASELINE, INCUMBENT, Answers, ArmOutcome, Measurement, Purpose, RunSpec, Verdict
from paceline.evidence import Failure
from paceline.evidence.round_status import answers, last_tries, measurements
from paceline.gate import ClassResult, Crossover, Finding, LoadLevel, best_by_class, crossover, decide
from paceline.plan.run.searching import Searching

_ACCEPT_LENGTH = "acceptLength"
"""The metric's name in a measurement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedReplicate:
    """Why an arm gave no evidence in one round: the failure, and the reason of its first invalid point."""

    failure: Failure
    why: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A run's rounds, including those that ended in this pass."""

    spec: RunSpec
    records: tuple[Round, ...]
    signer: str = ""
    """Id of the listed key that has signed them, if they were measured elsewhere."""

    @property
    def sweep(self) -> bool:
        return self.spec.purpose is Purpose.SWEEP

    @property
    def searches(self) -> bool:
        return self.spec.purpose is Purpose.SEARCH

    @cached_property
    def searching(self) -> Searching:
        """The search over these rounds; only for a run that searches."""
        return Searching(spec=self.spec, records=self.records)

    @cached_property
    def results(self) -> tuple[Round, ...]:
        """Rounds with a result."""
        return tuple(record for record in self.records if not record.error)

    @property
    def since_result(self) -> tuple[Round, ...]:
        """The latest consecutive tries without a result, newest first."""
        return tuple(itertools.takewhile(lambda record: bool(record.error), reversed(self.records)))

    @cached_property
    def measurements(self) -> tuple[Measurement, ...]:
        return tuple(measurements(self.records))

    @cached_property
    def answers(self) -> tuple[Answers, ...]:
        return tuple(answers(self.records))

    @cached_property
    def verdict(self) -> Verdict:
        """The gate's verdict on the rounds so far."""
        return decide(
            self.spec.gate,
            [arm.name for arm in self.spec.arms],
            {workload.name: workload.weight for workload in self.spec.workloads},
            self.measurements,
            self.answers if self.spec.parity else (),
            [workload.name for workload in self.spec.workloads if workload.rate],
        )

    @cached_property
    def crossover(self) -> Crossover | None:
        """Bounds by concurrency, of datasets at several: other prompts say nothing about the load. None without one,
        and for a search; workloads at a rate and ramps do not count."""
        loops = [workload for workload in self.spec.workloads if workload.at_one_load]
        times = Counter(workload.dataset.name for workload in loops)
        loads = {
            workload.name: LoadLevel(concurrency=workload.concurrency, weight=workload.weight)
            for workload in loops
            if times[workload.dataset.name] > 1
        }
        if self.searches or not loads or len(self._asked) < 2:
            return None
        return crossover(self.spec.gate, self._asked, loads, self.measurements)

    @cached_property
    def classes(self) -> tuple[ClassResult, ...]:
        """The fastest arm of each dataset, by its closed loops; empty with a single one."""
        loads: dict[str, dict[str, float]] = {}
        for workload in self.spec.workloads:
            if workload.at_one_load:
                loads.setdefault(workload.dataset.name, {})[workload.name] = workload.weight
        return best_by_class(self.spec.gate, self._asked, loads, self.measurements) if len(loads) > 1 else ()

    @property
    def _asked(self) -> list[str]:
        """The baseline and its candidates."""
        return [arm.name for arm in self.spec.arms if arm.name != INCUMBENT]

    @cached_property
    def valid_points(self) -> Mapping[tuple[str, str], Sequence[PointRecord]]:
        """(arm, workload) → its valid points, from the last try of each round."""
        found: dict[tuple[str, str], list[PointRecord]] = {}
        for record in last_tries(self.results):
            for point in record.points:
                if point.valid:
                    found.setdefault((point.arm, point.workload), []).append(point)
        return found

    @cached_property
    def accept_lengths(self) -> Mapping[tuple[str, str], float]:
        """(arm, workload) → mean acceptance length of its valid measurements."""
        lengths: dict[tuple[str, str], list[float]] = {}
        for measurement in self.measurements:
            if measurement.valid and _ACCEPT_LENGTH in measurement.metrics:
                key = measurement.arm, measurement.workload
                lengths.setdefault(key, []).append(measurement.metrics[_ACCEPT_LENGTH])
        return {key: sum(values) / len(values) for key, values in lengths.items()}

    @cached_property
    def references(self) -> tuple[str, ...]:
        """The arms that others are compared with, and that every round contains: the baseline and the incumbent. One
        that the gate found unreliable beside the other is left out."""
        named = tuple(arm.name for arm in self.spec.arms if arm.name in (BASELINE, INCUMBENT))
        if self.searches or len(named) < 2:
            return named
        left = (name for name in named if not _unreliable(self.verdict, name))
        return tuple(left)

    def failures(self, arm: str) -> tuple[FailedReplicate, ...]:
        """This arm's current run of consecutive failed rounds, newest first.

        A round fails if any of the arm's points is invalid (in a Sweep: if all are). Rounds without the arm, or without
        a result, are skipped; for a candidate, rounds with a failed baseline are skipped too, because then no candidate
        is valid, unless the incumbent lived; of baseline and incumbent, those without the other one.
        """
        rounds = [record for record in reversed(self.results) if arm in _arms(record)]
        if arm in self.references:
            rounds = [record for record in rounds if {*self.references} <= _arms(record)]
        else:
            rounds = [record for record in rounds if not self._compares_nothing(record)]
        failures = (_failed(record, arm, every=self.sweep) for record in rounds)
        return tuple(failed for failed in itertools.takewhile(bool, failures) if failed)

    def _compares_nothing(self, record: Round) -> bool:
        """All arms that candidates are compared with failed in it."""
        there = [name for name in (BASELINE, INCUMBENT) if name in _arms(record)]
        return bool(there) and all(_failed(record, name, every=self.sweep) for name in there)


def _unreliable(verdict: Verdict, name: str) -> bool:
    found = verdict.arms.get(name)
    return found is not None and found.outcome is ArmOutcome.REJECTED and found.reason == Finding.UNRELIABLE


def _arms(record: Round) -> set[str]:
    return {point.arm for point in record.points}


def _failed(record: Round, arm: str, *, every: bool) -> FailedReplicate | None:
    points = [point for point in record.points if point.arm == arm]
    whys = [point.why for point in points if not point.valid]
    if not whys or (every and len(whys) < len(points)):
        return None
    reasons = [replicate.reason for replicate in record.replicates if replicate.arm == arm and replicate.reason]
    return FailedReplicate(failure=failure_named(reasons[0] if reasons else ""), why=whys[0])


def failure_named(reason: str) -> Failure:
    """The failure of this name in status; NotMeasured for a name unknown to this release."""
    return Failure.__members__.get(reason, Failure.NotMeasured)
