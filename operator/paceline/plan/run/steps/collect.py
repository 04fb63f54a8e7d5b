"""Step 4: collect the results of Jobs that have ended, each once."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from paceline.api import run_status
from paceline.api.round import Round, in_order
from paceline.engines.pod_template import arm_container
from paceline.evidence import AnswerError, Failure, RoundPlan, RoundResult, decode, judge_points
from paceline.evidence.round_status import failed_round, round_record
from paceline.plan.objects import differ
from paceline.plan.run.ends import end_of, held_seconds, hopeless, lost_arm, stopped_by_its_queue
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.killed import as_far_as_it_came
from paceline.plan.run.next_round import next_try
from paceline.plan.run.snapshot import End, RoundJob, Snapshot
from paceline.plan.run.starting import image_seconds

LONGEST_REASON = 600
"""Maximum characters of an error."""


def collect(snapshot: Snapshot, evidence: Evidence, now: datetime) -> Evidence:
    """The evidence with the rounds that ended since the last pass or will never end, in order."""
    records = list(evidence.records)
    recorded = {record.job for record in records}
    for round in snapshot.jobs:
        if round.name in recorded:
            continue
        end = None if round.ended else _given_up(round, snapshot, now)
        if round.ended or end:
            found = _record(round, end, records, now)
            records = [one for one in records if (one.round, one.try_) != (found.round, found.try_)] + [found]
    if job := _deleted_job(snapshot, recorded):
        records.append(_deleted(job, records, now))
    return replace(evidence, records=in_order(records))


def _given_up(round: RoundJob, snapshot: Snapshot, now: datetime) -> End | None:
    stopped = stopped_by_its_queue(round, snapshot.status)
    return stopped or hopeless(round, snapshot.warning_of(round), now)


def _deleted_job(snapshot: Snapshot, recorded: Container[str]) -> str:
    """The unrecorded Job that existed in the last pass and was deleted since, but not by us; "" if there is none. A Job
    that was only planned is planned again."""
    progress = snapshot.status.progress or run_status.RunProgress()
    existing = {job.name for job in snapshot.jobs}
    return progress.job if progress.seen and progress.job not in recorded and progress.job not in existing else ""


def image_moved(images: Mapping[str, str], before: Sequence[Round]) -> str | None:
    """Message if an image is not that of the run's first round; None if all are, or if they cannot be compared.
    `images`: arm → its own image; "" → the one that arms share."""
    for arm, image in images.items():
        first = next(filter(None, (_image(record, arm) for record in before)), "")
        if differ(image, first):
            return (
                f"the server {f'of {arm} ' if arm else ''}ran from {image}, but from {first} in earlier rounds: its "
                "tag has moved; name the image by its digest (engine.image: REPOSITORY@sha256:…)"
            )
    return None


def _image(record: Round, arm: str) -> str:
    return next((one.image for one in record.replicates if one.arm == arm), "") if arm else record.image


def _record(round: RoundJob, end: End | None, before: Sequence[Round], now: datetime) -> Round:
    """The record of a round that has ended, or that `end` gives up. A result that its client wrote counts, regardless
    of what happened to the node later."""
    if round.unreadable:
        return _lost(round, End(failure=Failure.Unreadable, line=round.unreadable), before, now)
    try:
        plan, result = _result(round, now)
    except AnswerError as error:
        return _lost(round, end or end_of(round, round.unread or str(error)), before, now)
    images = {arm.name: round.image(arm_container(arm.name)) for arm in plan.arms if arm.held is not None}
    if message := image_moved({"": round.server_image, **images}, before):
        return _lost(round, End(failure=Failure.ImageMoved, line=message), before, now)
    record = round_record(
        plan,
        result,
        judge_points(plan, result),
        round.name,
        round.node,
        round.server_image,
        held_seconds(round, now),
        round.client_image,
        images,
        image_seconds(round),
    )
    return replace(record, neighbours=round.neighbours)


def _result(round: RoundJob, now: datetime) -> tuple[RoundPlan, RoundResult]:
    """The plan as far as it was carried out, and what came of it. Raises AnswerError."""
    plan, result, lost = round.plan, decode(round.log), lost_arm(round, now)
    told = [replicate.arm for replicate in result.replicates]
    if {arm.name for arm in plan.arms} <= {*told}:
        return plan, result
    if lost and (found := as_far_as_it_came(plan, result, *lost)):
        return found
    raise AnswerError(f"the client's log has no whole result; finished: {', '.join(told) or 'no arm'}")


def _lost(round: RoundJob, end: End, before: Sequence[Round], now: datetime) -> Round:
    number, try_ = next_try(before) if round.unreadable else (round.plan.round, round.plan.try_)
    return failed_round(
        round=number,
        try_=try_,
        job=round.name,
        node=round.node,
        reason=end.failure,
        error=end.line[:LONGEST_REASON] or end.failure.value.message,
        held_seconds=held_seconds(round, now),
        ended=now,
    )


def _deleted(job: str, before: Sequence[Round], now: datetime) -> Round:
    """The record of a round whose Job was deleted. It counts as a try, because the cause (a janitor, a TTL) will delete
    the next Job, too."""
    number, try_ = next_try(before)
    return failed_round(
        round=number,
        try_=try_,
        job=job,
        node="",
        reason=Failure.JobDeleted,
        error="its Job was deleted before its result was read",
        ended=now,
    )
