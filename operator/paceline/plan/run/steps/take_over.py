"""Step 3: the rounds of another run, to be judged by this run's gate (0033)."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from paceline.api.record import from_status
from paceline.api.run_status import BenchmarkRunStatus, Round
from paceline.core import BASELINE
from paceline.evidence import same_arms, surroundings
from paceline.plan.objects import Object
from paceline.plan.run.conclusion import Conclusion, error
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.snapshot import Snapshot


def take_over(snapshot: Snapshot, evidence: Evidence, now: datetime) -> Evidence | Conclusion | None:
    """On the first pass, the rounds of the run that gate.roundsOf names, if it still exists. Ends a run whose
    roundsOf names rounds that cannot be judged here; the operator itself never asks for those."""
    source = snapshot.source
    if source is None or snapshot.status.rounds is not None:
        return None
    if not snapshot.superseded and (why := unlike(snapshot.manifest, source)):
        return error(why)
    return replace(evidence, records=_rounds_of(source, snapshot.manifest))


def unlike(run: Object, source: Object) -> str | None:
    """Why the rounds of `source` cannot be judged by `run`, and the way out."""
    name = source["metadata"]["name"]
    if surroundings(run["spec"]) != surroundings(source["spec"]):
        return (
            f"spec.gate.roundsOf: {name} measured another server or other workloads; leave it out to measure all rounds"
        )
    if not same_arms(run["spec"], source["spec"]):
        return f"spec.gate.roundsOf: {name} measured none of these candidates; leave it out to measure all rounds"
    return None


def _rounds_of(source: Object, run: Object) -> tuple[Round, ...]:
    arms = {BASELINE, *same_arms(run["spec"], source["spec"])}
    records = from_status(BenchmarkRunStatus, source.get("status")).rounds or ()
    return tuple(_narrowed(record, source, arms) for record in records if not record.error)


def _narrowed(record: Round, source: Object, arms: Collection[str]) -> Round:
    """The round without the arms that this run does not have. A round of the baseline only stays too: the number of
    rounds gives the next one its number, and with it its prompts."""
    return replace(
        record,
        replicates=tuple(replicate for replicate in record.replicates if replicate.arm in arms),
        points=tuple(point for point in record.points if point.arm in arms),
        run=record.run or str(source["metadata"]["name"]),
    )
