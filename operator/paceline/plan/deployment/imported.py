"""Runs that people have measured without a cluster and applied (0059). A pool reads them as its own, and neither
changes nor deletes them: who applied one deletes it."""

from collections.abc import Iterator

from paceline.api.reasons import Reason
from paceline.evidence import same_arms, surroundings
from paceline.evidence.changes import summary
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run
from paceline.plan.objects import finished


def not_used(pool: Pool) -> Iterator[str]:
    """For each of the pool's, why it decides nothing. None while another run decides."""
    if pool.decided:
        return
    for manifest in pool.snapshot.imported_of(pool.name):
        run = Run(manifest=manifest)
        if finished(manifest) and (why := _why_not(pool, run)):
            yield f"BenchmarkRun {run.name}, measured without a cluster, is not used: {why}"


def _why_not(pool: Pool, run: Run) -> str:
    """ "" for one whose rounds are judged again."""
    if run.question != pool.question:
        again = run.decides and surroundings(run.spec) == surroundings(pool.wanted)
        return "" if again and same_arms(pool.wanted, run.spec) else summary(run.spec, pool.wanted)
    stale = next((one.stale for one in pool.runs if one.name == run.name), "")
    if stale or run.outcome:
        return stale or f"its verdict is {run.outcome}"
    ends = (condition for condition in run.status.conditions if condition.type == Reason.ImportRefused.value.condition)
    return next((condition.reason for condition in ends), "it has no verdict")
