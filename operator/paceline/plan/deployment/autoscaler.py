"""A pool whose servers a HorizontalPodAutoscaler scales: its number is the autoscaler's, whatever `replicas` says."""

from dataclasses import replace

from paceline.core import PoolSpec
from paceline.core.names import child_name
from paceline.plan.deployment.snapshot import Snapshot
from paceline.render import group_name
from paceline.render.group import KIND as GROUPS

AUTOSCALER = "HorizontalPodAutoscaler"


def autoscaler_of(snapshot: Snapshot, pool: str) -> str | None:
    """The name of one that has the pool's servers for its target. KEDA makes such an object, too."""
    servers = {("Deployment", child_name(snapshot.name, pool)), (GROUPS, group_name(snapshot.name, pool))}
    for autoscaler in snapshot.of(AUTOSCALER):
        target = autoscaler["spec"]["scaleTargetRef"]
        if (target.get("kind"), target.get("name")) in servers:
            return str(autoscaler["metadata"]["name"])
    return None


def left_to_it(snapshot: Snapshot, pool: PoolSpec) -> PoolSpec:
    """The pool without a number of its own where an autoscaler has one: two that write it take servers away from each
    other."""
    return replace(pool, replicas=None) if autoscaler_of(snapshot, pool.name) else pool


def ignored(snapshot: Snapshot, pool: str) -> str:
    """That `replicas` is ignored, and the ways out; "" if it is not."""
    asked = next((each.replicas for each in snapshot.spec.pools if each.name == pool), None) if snapshot.spec else None
    autoscaler = autoscaler_of(snapshot, pool)
    if asked is None or autoscaler is None:
        return ""
    return (
        f"replicas is {asked}, but {AUTOSCALER} {autoscaler} decides: remove replicas from the pool, "
        "or delete the autoscaler"
    )
