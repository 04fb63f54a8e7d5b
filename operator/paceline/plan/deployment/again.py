"""Which rounds that there are may be judged again (0033): another gate, a candidate less or more, and no round is
measured twice."""

from collections.abc import Mapping
from typing import Any

from paceline.api.gate import MOST_MEASURED
from paceline.api.run_status import Round
from paceline.evidence import same_arms, surroundings
from paceline.plan.deployment.runs import Run
from paceline.plan.deployment.snapshot import Pool


def source(pool: Pool) -> Run | None:
    """The run whose rounds a new one takes over: of those that measured some of its candidates in the same surroundings
    the one with the most rounds of them, of several the latest. None in Error, none too old for a question that is
    asked anew, and none in place of which a person has asked for another."""
    fitting = [(count, run.finished_at, run.name, run) for run in pool.runs if (count := _rounds(pool, run))]
    return max(fitting, key=lambda one: one[:3])[3] if fitting else None


def _rounds(pool: Pool, run: Run) -> int:
    """Of the candidates of now, as many rounds as it has of each; 0 if it is of no use."""
    if run.aged or run.outcome == "Error" or pool.given_up(run) or surroundings(run.spec) != surroundings(pool.wanted):
        return 0
    arms = same_arms(pool.wanted, run.spec)
    count = sum(_there(record, arm) for record in run.results for arm in arms)
    return count if count and _points(run) + _points_to_come(pool.wanted) <= MOST_MEASURED else 0


def _there(record: Round, arm: str) -> bool:
    return any(point.arm == arm and point.valid for point in record.points)


def _points(run: Run) -> int:
    return sum(len(record.points) for record in run.results)


def _points_to_come(wanted: Mapping[str, Any]) -> int:
    """At most: what a run's status can hold is bounded."""
    return int(wanted["gate"]["decideAfterRounds"][-1]) * len(wanted["arms"]) * len(wanted["workloads"])
