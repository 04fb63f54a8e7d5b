"""Rounds that may be judged again (decision 0033): a change of the gate or of the candidates measures none of them
twice."""

from collections.abc import Mapping
from typing import Any

from paceline.api.gate import MOST_MEASURED
from paceline.api.run_status import Round
from paceline.evidence import same_arms, surroundings
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run


def source(pool: Pool) -> Run | None:
    """The run whose rounds a new one takes over: the one with the most rounds of the present candidates in the same
    surroundings, of several the latest. Runs in Error, aged and stale ones, and those that a person has asked to repeat
    do not count."""
    fitting = [(count, run.completion_time, run.name, run) for run in pool.runs if (count := _rounds(pool, run))]
    return max(fitting, key=lambda entry: entry[:3])[3] if fitting else None


def _rounds(pool: Pool, run: Run) -> int:
    """Its rounds of the present candidates, counted once for each; 0 if it cannot be used."""
    if (
        run.aged
        or run.stale
        or run.outcome == "Error"
        or pool.given_up(run)
        or surroundings(run.spec) != surroundings(pool.wanted)
    ):
        return 0
    arms = same_arms(pool.wanted, run.spec)
    count = sum(_measured(record, arm) for record in run.results for arm in arms)
    return count if count and _points(run) + _points_to_come(pool.wanted) <= MOST_MEASURED else 0


def _measured(record: Round, arm: str) -> bool:
    return any(point.arm == arm and point.valid for point in record.points)


def _points(run: Run) -> int:
    return sum(len(record.points) for record in run.results)


def _points_to_come(wanted: Mapping[str, Any]) -> int:
    """The most points that the new run may add: a run's status has a limit."""
    return int(wanted["gate"]["decideAfterRounds"][-1]) * len(wanted["arms"]) * len(wanted["workloads"])
