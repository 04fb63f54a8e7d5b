"""What the ended Jobs measured goes into status, once."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from paceline.evidence import AnswerError, Failure, decode, failed_round, judge, round_status
from paceline.evidence.failures import LEAVES_THE_NODE
from paceline.plan.pods import terminated
from paceline.plan.run.ends import End, end_of, held_seconds, hopeless, unplaced_since
from paceline.plan.run.look import Round, Snapshot, failure
from paceline.plan.run.taken import rounds_so_far

LONGEST = 600
"""Of an error in status, in characters."""


def collect(snapshot: Snapshot, now: datetime) -> tuple[Mapping[str, Any], ...]:
    """The rounds recorded so far and those that have ended since, or never will, in order."""
    records = list(rounds_so_far(snapshot))
    known = {record["job"] for record in records}
    node = run_node(snapshot.status.get("node"), records)
    for round in snapshot.rounds:
        if round.name in known:
            continue
        unplaced = unplaced_since(round, snapshot.status.get("progress", {}), now)
        never = None if round.ended else hopeless(round, node, unplaced, now)
        if round.ended or never:
            records.append(_record(round, never, records, now))
    return tuple(sorted(records, key=lambda r: (r["round"], r["try"])))


def next_try(records: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The number of the round that comes after these, and of the try."""
    number = sum(1 for record in records if not record.get("error"))
    return number, sum(1 for record in records if record["round"] == number)


def block_ended(records: Sequence[Mapping[str, Any]]) -> bool:
    """The run's node is lost or has no room: whatever comes next runs where it can. Rounds are paired within
    themselves, so those measured so far count as they did (0015)."""
    last = records[-1] if records else {}
    return bool(last.get("error")) and failure(last.get("reason", "")) in LEAVES_THE_NODE


def run_node(remembered: str | None, records: Sequence[Mapping[str, Any]]) -> str | None:
    """Where the next round must run; None while any node will do."""
    if block_ended(records):
        return None
    return remembered or next((record["node"] for record in reversed(records) if record["node"]), None)


def moved(image: str, before: Sequence[Mapping[str, Any]]) -> str:
    """That this is not the image that the run's first round ran from, and the way out; "" if it is, or nobody can tell.

    A node that pulled it says REPOSITORY@DIGEST, one on which it was put by hand an id of its own: of these two kinds
    one cannot be compared with the other.
    """
    first = next((record["image"] for record in before if record.get("image")), "")
    (pulled, digest), (as_first, asked) = (("@" in name, name.rpartition("@")[2]) for name in (image, first))
    if not (digest and asked) or pulled is not as_first or digest == asked:
        return ""
    return (
        f"the server ran from {image}, and from {first} in the rounds before: its tag has moved; name the image by its "
        "digest (engine.image: REPOSITORY@sha256:…)"
    )


def _record(round: Round, never: End | None, before: Sequence[Mapping[str, Any]], now: datetime) -> dict[str, Any]:
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
    entry = round_status(
        asked,
        result,
        judge(asked, result),
        round.name,
        round.node,
        image,
        held_seconds(round, now),
        round.image("client"),
    )
    return entry | ({"neighbours": list(round.neighbours)} if round.neighbours else {})


def _lost(round: Round, end: End, before: Sequence[Mapping[str, Any]], now: datetime) -> dict[str, Any]:
    number, attempt = next_try(before) if round.unreadable else (round.plan.round, round.plan.attempt)
    return failed_round(
        round=number,
        attempt=attempt,
        job=round.name,
        node=round.node,
        reason=end.failure,
        error=end.line[:LONGEST] or end.failure.value.message,
        held_seconds=held_seconds(round, now),
    )
