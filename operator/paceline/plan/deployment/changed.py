"""What changed since a pool's question was decided last."""

from paceline.core import Purpose
from paceline.evidence.changes import summary
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.runs import Run


def asked_anew(pool: Pool) -> str:
    """What changed from the question that was decided last to the present one; "" if none was decided."""
    last = decided_last(pool)
    return summary(last.spec, pool.wanted) if last else ""


def decided_last(pool: Pool) -> Run | None:
    """The run whose winner is served, if it decided another question than the present one; else the latest such run."""
    searches = pool.run_spec.purpose is Purpose.SEARCH
    alike = [run for run in pool.runs if run.searches == searches and (run.outcome or run.found)]
    others = [run for run in alike if run is not pool.decided and run.question != pool.question]
    evidence = pool.remembered.target.evidence.run if pool.remembered.target else None
    latest = sorted(others, key=lambda run: (run.name == evidence, run.completion_time))
    return latest[-1] if latest else None
