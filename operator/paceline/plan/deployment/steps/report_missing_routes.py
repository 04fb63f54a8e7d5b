"""Routes and InferencePools that the spec asks for, and that cannot be made, are reported."""

from datetime import datetime

from paceline.plan.deployment.routes import unrouted
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult


def report_missing_routes(snapshot: Snapshot, _: datetime) -> StepResult:
    """Note each; the servers serve without it."""
    return StepResult(notes=tuple(dict.fromkeys(unrouted(snapshot))))
