"""Step 2: accept rounds measured without a cluster. Such a run starts no round."""

from dataclasses import replace
from datetime import datetime, timedelta

from paceline.api import Cause, Reason
from paceline.evidence.signature import SignatureError
from paceline.plan.run.conclusion import Conclusion
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.imported import UnfitError, brought
from paceline.plan.run.snapshot import Snapshot
from paceline.plan.run.statement import StatementError, signed_by
from paceline.plan.step import StepResult, parse_time

_ASK = (
    "to have its rounds judged here, ask the administrator for evidence.imported=true in the chart's values, delete "
    "this run and apply it again; to have them measured here, apply it without spec.measured"
)
_SIGNED = "delete this run, and apply the file that `paceline evidence verify BUNDLE --key KEY -o FILE` writes"
APPLIED_WITHIN, AGAIN = timedelta(minutes=5), timedelta(seconds=2)
"""How long to wait for the run's rounds, and how often to look: `kubectl apply` of a file creates the run first, then
its rounds."""


def take_in(snapshot: Snapshot, evidence: Evidence, now: datetime) -> Evidence | Conclusion | StepResult | None:
    """The evidence with these rounds. If they do not count here, the run's end without a verdict, so that no pool takes
    the run for an answer."""
    measured = evidence.spec.measured
    if measured is None or snapshot.superseded:
        return None
    if not snapshot.settings.imported_evidence:
        return Conclusion(reason=Reason.ImportNotAllowed, message=_ASK)
    there = sum(not one.error for one in snapshot.brought)
    if there < measured.rounds:
        message = f"spec.measured.rounds: {measured.rounds}, but {there} of its BenchmarkRounds exist"
        if now > parse_time(snapshot.manifest["metadata"]["creationTimestamp"]) + APPLIED_WITHIN:
            return Conclusion(reason=Reason.ImportRefused, message=f"{message}; delete it and apply the whole file")
        return StepResult(causes=(Cause(Reason.RunWaiting, None, message),), requeue_at=now + AGAIN)
    keys = snapshot.settings.signers
    try:
        records = brought(evidence.spec, measured, snapshot.brought, now)
        signer = signed_by(snapshot.manifest, snapshot.brought, keys) if keys else ""
        return replace(evidence, records=records, signer=signer)
    except (UnfitError, StatementError) as error:
        return Conclusion(reason=Reason.ImportRefused, message=str(error))
    except SignatureError as error:
        return Conclusion(reason=Reason.ImportRefused, message=f"evidence.signers of the chart: {error}; {_SIGNED}")
