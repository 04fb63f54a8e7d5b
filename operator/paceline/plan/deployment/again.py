"""Rounds that may be judged again (decision 0033): a change of the gate or of the candidates measures none of them
twice."""

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
    return sum(run.status.arm_rounds.get(arm, 0) for arm in arms)
