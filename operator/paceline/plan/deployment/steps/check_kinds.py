"""The cluster has the kinds that the spec needs."""

from datetime import datetime

from paceline.api import Cause, Reason
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.devices import WITHOUT_CLAIMS
from paceline.plan.step import StepResult
from paceline.render.devices import KIND as CLAIM_TEMPLATE
from paceline.render.group import KIND

RELEASE = "v0.10.0"
"""The latest release of kubernetes-sigs/lws in August 2026; any since v0.5 will do."""
INSTALL = (
    f"kubectl apply --server-side -f https://github.com/kubernetes-sigs/lws/releases/download/{RELEASE}/manifests.yaml"
)


def check_kinds(snapshot: Snapshot, _: datetime) -> StepResult:
    """Block while servers need a kind that the cluster lacks: for devices that they claim, or over several nodes."""
    spec = snapshot.spec
    if spec and spec.server.accelerator.claims and CLAIM_TEMPLATE in snapshot.absent:
        return StepResult(causes=(Cause(Reason.NoResourceClaims, None, f"spec.{WITHOUT_CLAIMS}"),), blocks=True)
    if spec is None or spec.server.accelerator.nodes == 1 or KIND not in snapshot.absent:
        return StepResult()
    note = f"spec.accelerator.nodes is {spec.server.accelerator.nodes}; install it: {INSTALL}"
    return StepResult(causes=(Cause(Reason.NoLeaderWorkerSet, None, note),), blocks=True)
