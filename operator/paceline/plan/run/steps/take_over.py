"""Step 3: take over the rounds of another run, to be judged by this run's gate (0033)."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime

from paceline.api.round import Round, in_order
from paceline.core import BASELINE
from paceline.core.manifest import Object
from paceline.evidence import same_arms, surroundings
from paceline.plan.objects import brings_rounds
from paceline.plan.run.conclusion import Conclusion, error
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.imported import of_elsewhere
from paceline.plan.run.origin import own
from paceline.plan.run.rounds import counting_rounds, new, of_its_question
from paceline.plan.run.snapshot import Snapshot
from paceline.plan.run.statement import is_signed


def take_over(snapshot: Snapshot, evidence: Evidence, now: datetime) -> Evidence | Conclusion | None:
    """Before this run measures, take over the rounds of the run in gate.roundsOf, if it still exists. Ends a run whose
    roundsOf does not fit; the operator itself never creates such a run."""
    source = snapshot.source
    if source is None or own(evidence.records) or snapshot.jobs:
        return None
    if not snapshot.superseded and (why := unlike(snapshot.manifest, source)):
        return error(why)
    records = counting_rounds(source, of_its_question(source, snapshot.source_objects))
    if brings_rounds(source) and not is_signed(source, records, snapshot.settings.signers):
        return None
    taken = _rounds_of(source, records, snapshot.manifest)
    return replace(evidence, records=in_order((*evidence.records, *new(taken, evidence.records))))


def unlike(run: Object, source: Object) -> str | None:
    """Why `run` cannot judge the rounds of `source`, and what to do."""
    name = source["metadata"]["name"]
    if surroundings(run["spec"]) != surroundings(source["spec"]):
        return (
            f"spec.gate.roundsOf: {name} measured another server or other workloads; leave it out to measure all rounds"
        )
    if not same_arms(run["spec"], source["spec"]):
        return f"spec.gate.roundsOf: {name} measured none of these candidates; leave it out to measure all rounds"
    return None


def _rounds_of(source: Object, records: Iterable[Round], run: Object) -> tuple[Round, ...]:
    arms = {BASELINE, *same_arms(run["spec"], source["spec"])}
    if brings_rounds(source):
        records = tuple(map(of_elsewhere, records))
    return tuple(_narrowed(record, source, arms) for record in records if not record.error)


def _narrowed(record: Round, source: Object, arms: Collection[str]) -> Round:
    """The round without the arms that this run lacks. A round with only the baseline stays too, because the number of
    rounds determines the next round's number and thus its prompts."""
    return replace(
        record,
        replicates=tuple(replicate for replicate in record.replicates if replicate.arm in arms),
        points=tuple(point for point in record.points if point.arm in arms),
        run=record.run or str(source["metadata"]["name"]),
    )
