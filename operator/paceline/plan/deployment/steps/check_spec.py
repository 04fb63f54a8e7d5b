"""The spec can be carried out."""

from datetime import datetime

from paceline.api import Cause, Reason
from paceline.engines import places
from paceline.plan.deployment.effective import of_deployment
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult


def check_spec(snapshot: Snapshot, _: datetime) -> StepResult:
    """Block while the spec cannot be read, or while an engine refuses an argument in it."""
    if snapshot.spec is None:
        return StepResult(causes=(Cause(snapshot.refused, None, snapshot.invalid),), blocks=True)
    refused = places.refused(snapshot.spec, snapshot.manifest["spec"])
    if refused:
        note = "; ".join(f"{refusal.path}: {refusal.message}" for refusal in refused)
        return StepResult(causes=(Cause(Reason.InvalidSpec, None, note),), blocks=True)
    return StepResult(status=of_deployment(snapshot.spec))
