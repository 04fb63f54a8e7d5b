"""Pools that spec.pools no longer has are deleted."""

from datetime import datetime

from paceline.core.names import POOL_LABEL
from paceline.plan.deployment.guard import GUARDS
from paceline.plan.deployment.routes import ROUTES
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import owned_by
from paceline.plan.step import Delete, StepResult
from paceline.render.group import KIND as GROUPS

KINDS = ("Deployment", GROUPS, "Service", "BenchmarkRun", "ControllerRevision", *GUARDS, *ROUTES)


def end_dropped_pools(snapshot: Snapshot, _: datetime) -> StepResult:
    """Delete every object of a pool that is not in the spec."""
    if snapshot.spec is None:
        return StepResult()
    pools = {pool.name for pool in snapshot.spec.pools}
    dropped = [
        child
        for kind in KINDS
        for child in snapshot.of(kind)
        if owned_by(child, snapshot.owner.uid) and child["metadata"].get("labels", {}).get(POOL_LABEL) not in pools
    ]
    return StepResult(actions=tuple(Delete(child, "its pool is no longer in spec.pools") for child in dropped))
