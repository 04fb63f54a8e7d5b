"""The cluster has the kinds that the spec needs."""

from datetime import datetime

from paceline.api import Cause, Reason
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult
from paceline.render.group import KIND

RELEASE = "v0.10.0"
"""The latest release of kubernetes-sigs/lws in August 2026; any since v0.5 will do."""
INSTALL = (
    f"kubectl apply --server-side -f https://github.com/kubernetes-sigs/lws/releases/download/{RELEASE}/manifests.yaml"
)


def check_kinds(snapshot: Snapshot, _: datetime) -> StepResult:
    """Block while servers of several nodes need a LeaderWorkerSet and the cluster has no such kind."""
    spec = snapshot.spec
    if spec is None or spec.server.accelerator.nodes == 1 or KIND not in snapshot.absent:
        return StepResult()
    note = f"spec.accelerator.nodes is {spec.server.accelerator.nodes}; install it: {INSTALL}"
    return StepResult(causes=(Cause(Reason.NoLeaderWorkerSet, None, note),), blocks=True)
