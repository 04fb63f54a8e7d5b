"""Reports problems caused by the cluster as Stalled once they have lasted for promotion.progressDeadline.

Examples are a quota, an admission policy, a node that does not exist, a volume that cannot be mounted. Neither another
revision nor waiting helps. Lack of capacity is excluded: capacity returns without a person.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason
from paceline.plan.deployment.choose import Rollout
from paceline.plan.deployment.servers import pod_template
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult
from paceline.plan.trouble import Trouble

STALLED: Mapping[Reason, Reason] = {
    Reason.PodRefused: Reason.RefusedForLong,
    Reason.Unplaceable: Reason.NeverPlaced,
    Reason.CannotStart: Reason.NeverStarted,
}
"""Reason of a problem → reason of Stalled once it has lasted."""


def report_lasting(snapshot: Snapshot, problem: Trouble | None, pool: str | None, now: datetime) -> StepResult:
    """Stalled with the problem's message once the problem has lasted; until then, the time when it will have."""
    if problem is None or problem.since is None or problem.reason not in STALLED or snapshot.spec is None:
        return StepResult()
    end = problem.since + snapshot.spec.promotion.progress_deadline
    if end > now:
        return StepResult(requeue_at=end)
    return StepResult(causes=(Cause(STALLED[problem.reason], pool, problem.message),))


def report_stuck_servers(rollout: Rollout, now: datetime) -> StepResult:
    """Stalled once the problem of unsettled servers has lasted for promotion.progressDeadline; at once if they lost
    models that are images."""
    pool, servers = rollout.pool, rollout.pool.servers
    if lost := _lost_images(rollout):
        way_out = "turn on the feature gate ImageVolume of API servers and kubelets, or use hf:// or pvc://"
        cause = Cause(Reason.NoImageVolumes, pool.name, f"{', '.join(sorted(lost))}: {way_out}")
        return StepResult(causes=(cause,))
    problem = servers.trouble if servers and not servers.settled else None
    return report_lasting(pool.snapshot, problem, pool.name, now)


def _lost_images(rollout: Rollout) -> set[str]:
    """Images missing from the servers' template: an API server without the feature gate drops such volumes silently
    (Kubernetes, pkg/api/pod, dropImageVolumes)."""
    pool, revision = rollout.pool, rollout.choice.revision
    kept = pool.kept.get(revision)
    if kept is None or pool.servers is None or pool.servers.revision != revision:
        return set()
    return _images(kept["data"]["template"]) - _images(pod_template(pool.servers.manifest))


def _images(template: Mapping[str, Any]) -> set[str]:
    volumes = template["spec"].get("volumes") or ()
    return {volume["image"]["reference"] for volume in volumes if "image" in volume}
