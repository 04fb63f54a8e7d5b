"""Trouble that the cluster causes is reported as Stalled once it has lasted for promotion.progressDeadline.

A quota, an admission policy, a node that does not exist, a volume that cannot be mounted: no other revision would help,
and neither does waiting. Lack of capacity is not among them: capacity comes back without a person.
"""

from collections.abc import Mapping
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.pods import Trouble
from paceline.plan.step import StepResult

STALLED: Mapping[Reason, Reason] = {
    Reason.PodRefused: Reason.RefusedForLong,
    Reason.Unplaceable: Reason.NeverPlaced,
    Reason.CannotStart: Reason.NeverStarted,
}
"""Reason of a trouble → reason of Stalled once it has lasted."""


def report_lasting(snapshot: Snapshot, problem: Trouble | None, pool: str | None, now: datetime) -> StepResult:
    """Stalled with the trouble's message, or when it will become so."""
    if problem is None or problem.since is None or problem.reason not in STALLED or snapshot.spec is None:
        return StepResult()
    end = problem.since + snapshot.spec.promotion.progress_deadline
    if end > now:
        return StepResult(requeue_at=end)
    return StepResult(causes=(Cause(STALLED[problem.reason], pool, problem.message),))
