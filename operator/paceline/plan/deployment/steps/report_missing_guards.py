"""Guards that the installation wants, and the operator may not make, are reported."""

from datetime import datetime

from paceline.plan.deployment.guard import settings_of_guards
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult


def report_missing_guards(snapshot: Snapshot, _: datetime) -> StepResult:
    """Note each kind of guard that is absent; the servers serve without it."""
    missing = {kind: value for kind, value in settings_of_guards(snapshot.settings).items() if kind in snapshot.absent}
    return StepResult(
        notes=tuple(
            f"no {kind} is made for servers: the operator may not list them; let its ClusterRole be that of its own "
            f"release's chart, or switch them off ({value})"
            for kind, value in missing.items()
        )
    )
