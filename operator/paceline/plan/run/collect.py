"""What the ended Jobs measured goes into status, once."""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import datetime

from paceline.api import run_status
from paceline.evidence import AnswerError, Failure, decode, judge
from paceline.evidence.round_status import failed_round, round_record
from paceline.plan.pods import terminated
from paceline.plan.run.again import next_try
from paceline.plan.run.ends import end_of, held_seconds, hopeless
from paceline.plan.run.snapshot import End, Round, Snapshot
from paceline.plan.run.taken import rounds_so_far

LONGEST = 600
"""Of an error in status, in characters."""


def collect(snapshot: Snapshot, now: datetime) -> tuple[run_status.Round, ...]:
    """The rounds recorded so far and those that have ended since, or never will, in order."""
    records = list(rounds_so_far(snapshot))
    known = {record.job for record in records}
    for round in snapshot.rounds:
        if round.name in known:
            continue
        never = None if round.ended else hopeless(round, snapshot.told_of(round), now)
        if round.ended or never:
            records.append(_record(round, never, records, now))
    if gone := _deleted(snapshot, known):
        records.append(_vanished(gone, records, now))
    return tuple(sorted(records, key=lambda one: (one.round, one.try_)))


def _deleted(snapshot: Snapshot, known: Container[str]) -> str:
    """The Job that was there when we last looked, and that nobody has recorded: it was deleted, not by us. "" if there
    is none. One that was only about to be made is made (again)."""
    progress = snapshot.status.progress or run_status.RunProgress()
    name = progress.job
    there = {round.name for round in snapshot.rounds}
    return name if progress.seen and name not in known and name not in there else ""


def moved(image: str, before: Sequence[run_status.Round]) -> str:
    """That this is not the image that the run's first round ran from, and the way out; "" if it is, or nobody can tell.

    A node that pulled it says REPOSITORY@DIGEST, one on which it was put by hand an id of its own: of these two kinds
    one cannot be compared with the other.
    """
    first = next((record.image for record in before if record.image), "")
    (pulled, digest), (as_first, asked) = (("@" in name, name.rpartition("@")[2]) for name in (image, first))
    if not (digest and asked) or pulled is not as_first or digest == asked:
        return ""
    return (
        f"the server ran from {image}, and from {first} in the rounds before: its tag has moved; name the image by its "
        "digest (engine.image: REPOSITORY@sha256:…)"
    )


def _record(round: Round, never: End | None, before: Sequence[run_status.Round], now: datetime) -> run_status.Round:
    """Of a round that has ended, or will `never` say more than it has: a client that was done has given its answer,
    whatever became of its node."""
    if round.unreadable:
        return _lost(round, End(failure=Failure.Unreadable, line=round.unreadable), before, now)
    asked = round.plan
    client = (terminated(round.pod, "client") if round.pod else None) or {}
    try:
        result = decode(client.get("message", ""))
    except AnswerError as unread:
        return _lost(round, never or end_of(round, str(unread)), before, now)
    image = round.image("server")
    if other := moved(image, before):
        return _lost(round, End(failure=Failure.ImageMoved, line=other), before, now)
    entry = round_record(
        asked,
        result,
        judge(asked, result),
        round.name,
        round.node,
        image,
        held_seconds(round, now),
        round.image("client"),
    )
    return replace(entry, neighbours=round.neighbours)


def _lost(round: Round, end: End, before: Sequence[run_status.Round], now: datetime) -> run_status.Round:
    number, attempt = next_try(before) if round.unreadable else (round.plan.round, round.plan.attempt)
    return failed_round(
        round=number,
        attempt=attempt,
        job=round.name,
        node=round.node,
        reason=end.failure,
        error=end.line[:LONGEST] or end.failure.value.message,
        held_seconds=held_seconds(round, now),
        ended=now,
    )


def _vanished(job: str, before: Sequence[run_status.Round], now: datetime) -> run_status.Round:
    """It counts as a try: who deletes Jobs (a janitor, a TTL) will do it again."""
    number, attempt = next_try(before)
    return failed_round(
        round=number,
        attempt=attempt,
        job=job,
        node="",
        reason=Failure.Evicted,
        error="its Job was deleted before its result was read",
        ended=now,
    )
