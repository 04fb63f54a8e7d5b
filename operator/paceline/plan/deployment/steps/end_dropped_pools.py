"""Pools that spec.pools no longer has are deleted."""

from collections.abc import Set
from datetime import datetime

from paceline.core.names import COMPONENT_LABEL, POOL_LABEL
from paceline.plan.deployment.guard import GUARDS
from paceline.plan.deployment.routes import ROUTES
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import Object, owned_by
from paceline.plan.step import Delete, StepResult
from paceline.render.devices import KIND as CLAIM_TEMPLATE
from paceline.render.group import KIND as GROUPS
from paceline.render.pull import COMPONENT

KINDS = ("Deployment", GROUPS, "Service", "BenchmarkRun", "ControllerRevision", CLAIM_TEMPLATE, *GUARDS, *ROUTES)


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
    dropped += [job for job in snapshot.of("Job") if _pulls_for_none(job, snapshot, pools)]
    return StepResult(actions=tuple(Delete(child, "its pool is no longer in spec.pools") for child in dropped))


def _pulls_for_none(job: Object, snapshot: Snapshot, pools: Set[str]) -> bool:
    """The prefetch is of no pool, and stays."""
    labels = job["metadata"].get("labels", {})
    of_a_pull = labels.get(COMPONENT_LABEL) == COMPONENT and owned_by(job, snapshot.owner.uid)
    return of_a_pull and labels.get(POOL_LABEL) not in pools
