"""What the cluster will not do for us, told for as long as a revision may take, and Stalled after that.

A quota, an admission policy, a node that nobody has, a volume that cannot be mounted: nobody's revision is at fault, no
other revision would help, and waiting does not either. Lack of room is none of it: room comes back by itself.
"""

from collections.abc import Mapping
from datetime import datetime

from paceline.api import Cause, Reason
from paceline.plan.deployment.fields import with_field
from paceline.plan.deployment.snapshot import Pool, Snapshot
from paceline.plan.pods import Trouble
from paceline.plan.step import StepResult

IN_THE_END: Mapping[Reason, Reason] = {
    Reason.PodRefused: Reason.RefusedForLong,
    Reason.Unplaceable: Reason.NeverPlaced,
    Reason.CannotStart: Reason.NeverStarted,
}
"""What a trouble makes of Ready → of Stalled, once it has lasted."""


def refused(snapshot: Snapshot, _: datetime) -> StepResult:
    """What the API server did not let us write. It is tried again, and what belongs to other pools goes on."""
    written = snapshot.manifest.get("spec")
    notes = (f"{kind} {name}: {with_field(words, written)}" for (kind, name), words in snapshot.refusals.items())
    return StepResult(causes=tuple(Cause(Reason.WriteRefused, None, note) for note in notes))


def stuck(pool: Pool, now: datetime) -> StepResult:
    """Of a pool's servers."""
    there = pool.servers
    found = there.trouble if there and not there.settled else None
    return lasting(pool.snapshot, found, pool.name, now)


def lasting(snapshot: Snapshot, found: Trouble | None, pool: str | None, now: datetime) -> StepResult:
    """Stalled once a trouble has lasted for promotion.progressDeadline, in its own words; and when that will be."""
    if found is None or found.since is None or found.says not in IN_THE_END or snapshot.spec is None:
        return StepResult()
    end = found.since + snapshot.spec.promotion.progress_deadline
    if end > now:
        return StepResult(requeue_at=end)
    return StepResult(causes=(Cause(IN_THE_END[found.says], pool, found.what),))
