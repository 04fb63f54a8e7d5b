"""Writes that the API server has refused are reported."""

from datetime import datetime

from paceline.api import Cause, Reason
from paceline.plan.deployment.fields import with_field
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.step import StepResult


def report_refusals(snapshot: Snapshot, _: datetime) -> StepResult:
    """Stalled for each refused write of the last pass. It is tried again, and other pools go on."""
    spec = snapshot.manifest.get("spec")
    notes = (f"{kind} {name}: {with_field(why, spec)}" for (kind, name), why in snapshot.refusals.items())
    return StepResult(causes=tuple(Cause(Reason.WriteRefused, None, note) for note in notes))
