"""Servers that the cluster keeps from starting for too long are reported as Stalled."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.api import Cause, Reason
from paceline.plan.deployment.lasting import report_lasting
from paceline.plan.deployment.rollout import Rollout
from paceline.plan.deployment.servers import pod_template
from paceline.plan.step import StepResult


def report_stuck_servers(rollout: Rollout, now: datetime) -> StepResult:
    """Stalled once the trouble of servers that are not settled has lasted for promotion.progressDeadline; at once where
    they have lost the models that are images."""
    pool, servers = rollout.pool, rollout.pool.servers
    if lost := _lost_images(rollout):
        way_out = "turn on the feature gate ImageVolume of API servers and kubelets, or use hf:// or pvc://"
        cause = Cause(Reason.NoImageVolumes, pool.name, f"{', '.join(sorted(lost))}: {way_out}")
        return StepResult(causes=(cause,))
    problem = servers.trouble if servers and not servers.settled else None
    return report_lasting(pool.snapshot, problem, pool.name, now)


def _lost_images(rollout: Rollout) -> set[str]:
    """Images that the servers' template should have and has not: an API server without the feature gate leaves such
    volumes out without a word (Kubernetes, pkg/api/pod, dropImageVolumes)."""
    pool, revision = rollout.pool, rollout.choice.revision
    kept = pool.kept.get(revision)
    if kept is None or pool.servers is None or pool.servers.revision != revision:
        return set()
    return _images(kept["data"]["template"]) - _images(pod_template(pool.servers.manifest))


def _images(template: Mapping[str, Any]) -> set[str]:
    volumes = template["spec"].get("volumes") or ()
    return {volume["image"]["reference"] for volume in volumes if "image" in volume}
