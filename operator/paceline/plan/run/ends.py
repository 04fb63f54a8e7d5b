"""How a round ended that gave no result, or why it never will: which failure, and the last useful line of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from paceline.engines.last_words import last_words
from paceline.evidence.failures import ARGUMENTS, MEMORY, Failure
from paceline.plan.pods import exit_text, failed_before, last_line, not_startable, terminated
from paceline.plan.run.look import Round
from paceline.plan.silence import without_pod
from paceline.plan.terms import Found, condition, parse_time

HEARTBEAT_LOST = 70
"""The wrapper's exit code when the client fell silent."""
PULL_PATIENCE = timedelta(minutes=5)
"""A registry may be down for a moment; the GPUs are held meanwhile."""
PLACE_PATIENCE = timedelta(minutes=10)
"""How long a round waits for room on the run's node before it may run on another."""
NO_POD = "no pod of it was made for ten minutes"
NEVER_PULLED = ("InvalidImageName", "ErrImageNeverPull")
TAKEN_AWAY: Mapping[str, Failure] = {
    "Preempting": Failure.Preempted,
    "PreemptionByScheduler": Failure.Preempted,
    "NodeLost": Failure.NodeLost,
    "NodeShutdown": Failure.NodeLost,
    "Shutdown": Failure.NodeLost,
    "DeletionByTaintManager": Failure.NodeLost,
    "DeletionByPodGC": Failure.NodeLost,
    "Evicted": Failure.Evicted,
    "Terminated": Failure.Evicted,
    "NodeAffinity": Failure.Evicted,
    "EvictionByEvictionAPI": Failure.Evicted,
    "TerminationByKubelet": Failure.Evicted,
}
"""A pod's own reason, or that of its condition DisruptionTarget, where the cluster ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A round that is over without a result."""

    failure: Failure
    line: str


def end_of(round: Round, unread: str) -> End:
    """Of a Job that has ended; `unread` is what is wrong with its client's message."""
    pod, failed = round.pod or {}, condition(round.job, "Failed") or {}
    if taken := taken_away(round):
        return taken
    said = f"{failed['reason']}: {failed.get('message', '')}" if failed.get("reason") else ""
    late = "DeadlineExceeded" in (failed.get("reason"), pod.get("status", {}).get("reason"))
    if late:  # its containers only saw that they were ended
        return End(failure=Failure.TimedOut, line=said or str(pod.get("status", {}).get("message", "")))
    if first := failed_before(pod):  # and the others were never started
        name, ended = first
        failure = Failure.OutOfMemory if _no_memory(ended) else Failure.ServerCrashed
        return End(failure=failure, line=exit_text(f"init container {name}", ended))
    server, client = (terminated(pod, name) or {} for name in ("server", "client"))
    if server.get("exitCode", 0) not in (0, HEARTBEAT_LOST):  # the client only saw that it was gone
        return End(failure=_of_container(server), line=exit_text("server container", server))
    if client.get("exitCode"):
        return End(failure=Failure.ClientFailed, line=exit_text("client", client))
    if server.get("exitCode") == HEARTBEAT_LOST:
        return End(failure=Failure.ClientFailed, line="the client fell silent and the wrapper ended the server")
    return End(failure=Failure.Unreadable, line=said or unread)


def hopeless(round: Round, node: str | None, unplaced: datetime | None, now: datetime) -> End | None:
    """Why a round that has not ended can give no result and would hold, or wait for, its GPUs all the same. `node` is
    the run's, `unplaced` since when there is no room."""
    if round.unreadable:
        return End(failure=Failure.Unreadable, line=round.unreadable)
    pod = round.pod or {}
    if "deletionTimestamp" in pod.get("metadata", {}) and (lost := taken_away(round)):
        # Of a node that does not answer nobody hears that the pod has ended: its Job goes on for ever.
        return lost if lost.failure is Failure.NodeLost else None
    if unplaced and node and now - unplaced >= PLACE_PATIENCE:
        return End(failure=Failure.Unschedulable, line=_unplaced(pod).get("message", "") if pod else NO_POD)
    return _unpulled(pod, now)


def wakes(round: Round, node: str | None, unplaced: datetime | None) -> tuple[datetime, ...]:
    """When a round that waits turns hopeless."""
    pod, found = round.pod or {}, []
    if unplaced and node:
        found.append(unplaced + PLACE_PATIENCE)
    if any(_waiting(pod)) and (began := _began(pod)):
        found.append(began + PULL_PATIENCE)
    return tuple(found)


def held_seconds(round: Round, now: datetime) -> int | None:
    """How long its pod has held accelerators; None where nobody says since when."""
    pod = round.pod or {}
    began = _began(pod)
    if began is None:
        return None
    statuses = pod["status"].get("containerStatuses", ())
    first = failed_before(pod)
    last = [first[1]] if first else [status.get("state", {}).get("terminated", {}) for status in statuses]
    ends = [parse_time(ended["finishedAt"]) for ended in last if "finishedAt" in ended]
    over = max(ends) if ends and len(ends) == len(last) else now
    return max(0, math.ceil((over - began).total_seconds()))


def taken_away(round: Round) -> End | None:
    """What the cluster says of a round that it ended for its own reasons."""
    status = (round.pod or {}).get("status", {})
    if failure := TAKEN_AWAY.get(status.get("reason", "")):
        return End(failure=failure, line=f"{status['reason']}: {status.get('message', '')}".removesuffix(": "))
    if round.pod and (target := condition(round.pod, "DisruptionTarget")):
        reason = target.get("reason", "DisruptionTarget")
        line = f"{reason}: {target.get('message', '')}".removesuffix(": ")
        return End(failure=TAKEN_AWAY.get(reason, Failure.Evicted), line=line)
    failed = condition(round.job, "Failed")
    if round.pod is None and failed and failed.get("reason") == "BackoffLimitExceeded":
        # Who fails leaves a pod behind; who is evicted or preempted is deleted.
        return End(failure=Failure.Evicted, line="its pod is gone")
    return None


def unplaced_since(round: Round, progress: Mapping[str, Any], now: datetime) -> datetime | None:
    """Since when it was seen, by the run's own `progress`, that no node has room for it. None if it has one, or if
    somebody else holds it back (a queue, by a scheduling gate): since when nobody does, a pod does not say."""
    if round.pod is None and without_pod(round.job, now):  # nobody may make it, or somebody suspends its Job
        return parse_time(round.job["metadata"]["creationTimestamp"])
    said = _unplaced(round.pod or {})
    if not said or said.get("reason") == "SchedulingGated":
        return None
    seen = progress.get("unplacedSince") if progress.get("job") == round.name else None
    return parse_time(seen) if seen else now


def _of_container(ended: Mapping[str, Any]) -> Failure:
    if _no_memory(ended):
        return Failure.OutOfMemory
    return Failure.ServerArguments if ended.get("exitCode") == ARGUMENTS else Failure.ServerCrashed


def _no_memory(ended: Mapping[str, Any]) -> bool:
    return bool(MEMORY.search(f"{ended.get('reason', '')} {last_words(ended.get('message', ''))}"))


def _unplaced(pod: Found) -> Mapping[str, Any]:
    found = pod.get("status", {}).get("conditions", ())
    return next((c for c in found if c["type"] == "PodScheduled" and c["status"] == "False"), {})


def _began(pod: Found) -> datetime | None:
    """Since when accelerators are kept for it: since it has its node, or since that has taken note of it where the
    scheduler does not say."""
    said = pod.get("status", {})
    placed = [c for c in said.get("conditions", ()) if c["type"] == "PodScheduled" and c["status"] == "True"]
    times = [said.get("startTime"), *(c.get("lastTransitionTime") for c in placed)]
    return min((parse_time(time) for time in times if time), default=None)


def _waiting(pod: Found) -> dict[str, Mapping[str, Any]]:
    """Container → why it cannot be started. One that runs before the others holds their accelerators as they do."""
    said = pod.get("status", {})
    first = ((f"init container {status['name']}", status) for status in said.get("initContainerStatuses", ()))
    others = ((status["name"], status) for status in said.get("containerStatuses", ()))
    return {who: found for who, status in (*first, *others) if (found := not_startable(status))}


def _unpulled(pod: Found, now: datetime) -> End | None:
    """A container that cannot be started, once the other one has ended or patience has: the pod stays Pending."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    left_alone = any("terminated" in status.get("state", {}) for status in statuses)
    began = _began(pod)
    too_long = began is not None and now - began >= PULL_PATIENCE
    for name, found in _waiting(pod).items():
        if left_alone or too_long or found["reason"] in NEVER_PULLED:
            line = f"the {name} never started: {found['reason']}: {last_line(found.get('message', ''))}"
            return End(failure=Failure.ImagePull, line=line.removesuffix(": "))
    return None
