"""What the ended Jobs measured goes into status, once."""

from collections.abc import Mapping
from typing import Any

from paceline.evidence import AnswerError, decode, failed_round, judge, round_status
from paceline.plan.pods import exit_text, terminated
from paceline.plan.run.look import Round, Snapshot
from paceline.plan.terms import condition

HEARTBEAT_LOST = 70
"""The wrapper's exit code when the client fell silent."""


def collect(snapshot: Snapshot) -> tuple[Mapping[str, Any], ...]:
    """The rounds recorded so far and those that have ended since, in order."""
    recorded = list(snapshot.status.get("rounds", ()))
    known = {record["job"] for record in recorded}
    ended = [round for round in snapshot.rounds if round.ended and round.name not in known]
    return tuple(sorted([*recorded, *(_record(round) for round in ended)], key=lambda r: (r["round"], r["try"])))


def _record(round: Round) -> dict[str, Any]:
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
            error=_why(round, client) or str(unreadable),
        )
    return round_status(asked, result, judge(asked, result), round.name, round.node)


def _why(round: Round, client: Mapping[str, Any] | None) -> str:
    """The most useful thing that is known of a round without a result."""
    pod_status = (round.pod or {}).get("status", {})
    if pod_status.get("reason") in ("Evicted", "Preempting", "NodeLost", "NodeShutdown", "DeadlineExceeded"):
        return f"{pod_status['reason']}: {pod_status.get('message', '')}"
    if client and client.get("exitCode"):
        return exit_text("client", client)
    server = terminated(round.pod, "server") if round.pod else None
    if server and server.get("exitCode") == HEARTBEAT_LOST:
        return "the client fell silent and the wrapper ended the server"
    failed = condition(round.job, "Failed")
    return f"{failed.get('reason', '')}: {failed.get('message', '')}" if failed else ""
