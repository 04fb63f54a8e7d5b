"""Step 2: the rounds that the run brings along, measured without a cluster (0059). It starts no round."""

from dataclasses import replace
from datetime import datetime

from paceline.api import Reason
from paceline.plan.run.conclusion import Conclusion
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.imported import UnfitError, brought
from paceline.plan.run.snapshot import Snapshot

ASK = (
    "to have its rounds judged here, ask the administrator for evidence.imported=true in the chart's values, delete "
    "this run and apply it again; to have them measured here, apply it without spec.measured"
)


def take_in(snapshot: Snapshot, evidence: Evidence, now: datetime) -> Evidence | Conclusion | None:
    """The evidence with these rounds, judged anew; or the end of a run whose rounds do not count here. It has no
    verdict then: no pool may take it for an answer."""
    measured = evidence.spec.measured
    if measured is None or snapshot.superseded:
        return None
    if not snapshot.settings.imported_evidence:
        return Conclusion(reason=Reason.ImportNotAllowed, message=ASK)
    try:
        return replace(evidence, records=brought(snapshot.owner, evidence.spec, measured, now))
    except UnfitError as error:
        return Conclusion(reason=Reason.ImportRefused, message=str(error))
