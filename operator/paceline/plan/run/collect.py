"""What the ended Jobs measured goes into status, once."""

from collections.abc import Mapping, Sequence
from typing import Any

from paceline.evidence import AnswerError, decode, failed_round, judge, round_status
from paceline.plan.pods import exit_text, terminated
from paceline.plan.run.look import DISRUPTED, Round, Snapshot
from paceline.plan.terms import condition

HEARTBEAT_LOST = 70
"""The wrapper's exit code when the client fell silent."""
TAKEN_AWAY = ("Evicted", "Preempting", "NodeLost", "NodeShutdown", "NodeAffinity", "Shutdown", "Terminated")
"""A pod's own reason, where the cluster ended it."""
LONGEST = 600
"""Of an error in status, in characters."""


def collect(snapshot: Snapshot) -> tuple[Mapping[str, Any], ...]:
    """The rounds recorded so far and those that have ended since, or never will, in order."""
    records = list(snapshot.status.get("rounds", ()))
    known = {record["job"] for record in records}
    for round in snapshot.rounds:
        if round.name not in known and (round.ended or round.hopeless):
            records.append(_record(round, records))
    return tuple(sorted(records, key=lambda r: (r["round"], r["try"])))


def next_try(records: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The number of the round that comes after these, and of the try."""
    number = sum(1 for record in records if not record.get("error"))
    return number, sum(1 for record in records if record["round"] == number)


def _record(round: Round, before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if round.unreadable:
        number, attempt = next_try(before)
        return failed_round(
            round=number, attempt=attempt, job=round.name, node=round.node, error=round.unreadable[:LONGEST]
        )
    asked = round.plan
    client = terminated(round.pod, "client") if round.pod else None
    try:
        result = decode((client or {}).get("message", ""))
    except AnswerError as unreadable:
        return failed_round(
            round=asked.round,
            attempt=asked.attempt,
            job=round.name,
            node=round.node,
            error=(_why(round, client) or str(unreadable))[:LONGEST],
        )
    entry = round_status(asked, result, judge(asked, result), round.name, round.node, round.image)
    return entry | ({"neighbours": list(round.neighbours)} if round.neighbours else {})


def _why(round: Round, client: Mapping[str, Any] | None) -> str:
    """The most useful thing that is known of a round without a result."""
    if taken := _taken_away(round):
        return DISRUPTED + taken
    if round.hopeless:
        return round.hopeless
    failed = condition(round.job, "Failed") or {}
    said = f"{failed['reason']}: {failed.get('message', '')}" if failed.get("reason") else ""
    if failed.get("reason") == "DeadlineExceeded":  # its containers only saw that they were ended
        return said
    server = (terminated(round.pod, "server") if round.pod else None) or {}
    if server.get("exitCode", 0) not in (0, HEARTBEAT_LOST):  # the client only saw that it was gone
        return exit_text("server container", server)
    if client and client.get("exitCode"):
        return exit_text("client", client)
    if server.get("exitCode") == HEARTBEAT_LOST:
        return "the client fell silent and the wrapper ended the server"
    return said


def _taken_away(round: Round) -> str:
    """What the cluster says of a round that it ended for its own reasons: preempted, evicted, its node lost."""
    status = (round.pod or {}).get("status", {})
    if status.get("reason") in TAKEN_AWAY:
        return f"{status['reason']}: {status.get('message', '')}"
    if round.pod and (target := condition(round.pod, "DisruptionTarget")):
        return f"{target.get('reason', 'DisruptionTarget')}: {target.get('message', '')}"
    failed = condition(round.job, "Failed")
    if round.pod is None and failed and failed.get("reason") == "BackoffLimitExceeded":
        return "its pod is gone"  # who fails leaves a pod behind; who is evicted or preempted is deleted
    return ""
