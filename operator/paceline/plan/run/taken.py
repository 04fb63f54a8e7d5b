"""Rounds that another run has measured, judged by this one's gate (0033)."""

from collections.abc import Collection, Iterable
from dataclasses import replace

from paceline.api.record import from_status
from paceline.api.run_status import BenchmarkRunStatus, Round
from paceline.core import BASELINE
from paceline.evidence import same_arms, surroundings
from paceline.plan.objects import Object
from paceline.plan.run.snapshot import Evidence, Snapshot


def unlike(snapshot: Snapshot) -> str:
    """Why the rounds that `roundsOf` names cannot be judged here, and the way out; "" if they can. The operator asks
    for none that cannot."""
    source = snapshot.source
    if source is None or snapshot.status.rounds is not None:
        return ""
    mine, theirs = snapshot.manifest["spec"], source["spec"]
    name = source["metadata"]["name"]
    if surroundings(mine) != surroundings(theirs):
        return f"spec.roundsOf: {name} measured another server or other workloads; leave it out to measure all rounds"
    if not same_arms(mine, theirs):
        return f"spec.roundsOf: {name} measured none of these candidates; leave it out to measure all rounds"
    return ""


def rounds_so_far(snapshot: Snapshot) -> tuple[Round, ...]:
    """Of status; before the first status those of the run that `roundsOf` names, if it is still there."""
    if snapshot.status.rounds is not None or snapshot.source is None:
        return snapshot.status.rounds or ()
    source = snapshot.source
    arms = {BASELINE, *same_arms(snapshot.manifest["spec"], source["spec"])}
    theirs = from_status(BenchmarkRunStatus, source.get("status")).rounds or ()
    results = [record for record in theirs if not record.error]
    return tuple(_of(record, source, arms) for record in results)


def own(records: Iterable[Round]) -> tuple[Round, ...]:
    """Those that took accelerators for this run."""
    return tuple(record for record in records if not record.run)


def judged_again(evidence: Evidence) -> str:
    """For the end of a verdict's message: whose rounds it is of. "" if they are its own."""
    taken = [record.run for record in evidence.records if record.run]
    if not taken:
        return ""
    mine = sum(1 for record in own(evidence.records) if not record.error)
    names = " and ".join(dict.fromkeys(taken))
    beside = f", and on {_rounds(mine)} of its own" if mine else ", and nothing was measured for it"
    return f"judged again on {_rounds(len(taken))} of {names}{beside}"


def _rounds(count: int) -> str:
    return f"{count} round" if count == 1 else f"{count} rounds"


def _of(record: Round, source: Object, arms: Collection[str]) -> Round:
    """Without the arms that are asked about no more. Every round stays, also one of the baseline alone: the next one's
    number, and with it its prompts, follows from how many there are."""
    return replace(
        record,
        replicates=tuple(one for one in record.replicates if one.arm in arms),
        points=tuple(one for one in record.points if one.arm in arms),
        run=record.run or str(source["metadata"]["name"]),
    )
