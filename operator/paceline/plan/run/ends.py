"""How a round ended that gave no result, or why it never will: which failure, and the last useful line of it."""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from paceline.engines.log_tail import failure_line
from paceline.evidence.failures import ARGUMENTS, MEMORY, Failure
from paceline.plan.objects import Object, condition
from paceline.plan.pods import exit_text, failed_before, last_line, not_startable, terminated
from paceline.plan.run.snapshot import End, Round
from paceline.plan.run.starting import gives_up, hopeless_start, placed_since
from paceline.plan.step import parse_time

HEARTBEAT_LOST = 70
"""The wrapper's exit code when the client fell silent."""
PULL_PATIENCE = timedelta(minutes=5)
"""A registry may be down for a moment; the GPUs are held meanwhile."""
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
    "EvictionByEvictionAPI": Failure.Evicted,
    "TerminationByKubelet": Failure.Evicted,
}
"""A pod's own reason, or that of its condition DisruptionTarget, where the cluster ended it."""


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
        return End(failure=Failure.ClientFailed, line="the client stopped responding and the wrapper ended the server")
    return End(failure=Failure.Unreadable, line=said or unread)


def hopeless(round: Round, said: str, now: datetime) -> End | None:
    """Why a round that has not ended can give no result and would hold its GPUs all the same. One that has no node
    holds none, and waits for as long as it takes. `said` is what Events say of its pod."""
    if round.unreadable:
        return End(failure=Failure.Unreadable, line=round.unreadable)
    pod = round.pod or {}
    if "deletionTimestamp" in pod.get("metadata", {}) and (lost := taken_away(round)):
        # Of a node that does not answer nobody hears that the pod has ended: its Job goes on for ever.
        return lost if lost.failure is Failure.NodeLost else None
    return _unpulled(pod, now) or hopeless_start(round, said, now)


def wakes(round: Round) -> tuple[datetime, ...]:
    """When a round that does not start turns hopeless."""
    pod, found = round.pod or {}, []
    if any(_waiting(pod)) and (began := placed_since(pod)):
        found.append(began + PULL_PATIENCE)
    if end := gives_up(round):
        found.append(end)
    return tuple(found)


def held_seconds(round: Round, now: datetime) -> int | None:
    """How long its pod has held accelerators; None where nobody says since when."""
    pod = round.pod or {}
    began = placed_since(pod)
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
    if failure := TAKEN_AWAY.get(status.get("reason", "")) or _refused(status):
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


def _refused(status: Mapping[str, Any]) -> Failure | None:
    """A kubelet that does not take a pod ends it before anything of it runs. What it calls that, grows with every
    release: UnexpectedAdmissionError, OutOfnvidia.com/gpu, TopologyAffinityError, NodeAffinity, …"""
    of_itself = not status.get("reason") or status["reason"] == "DeadlineExceeded"
    if status.get("phase") != "Failed" or of_itself or status.get("containerStatuses"):
        return None
    return Failure.NodeRefused


def _of_container(ended: Mapping[str, Any]) -> Failure:
    if _no_memory(ended):
        return Failure.OutOfMemory
    return Failure.ServerArguments if ended.get("exitCode") == ARGUMENTS else Failure.ServerCrashed


def _no_memory(ended: Mapping[str, Any]) -> bool:
    return bool(MEMORY.search(f"{ended.get('reason', '')} {failure_line(ended.get('message', ''))}"))


def _waiting(pod: Object) -> dict[str, Mapping[str, Any]]:
    """Container → why it cannot be started. One that runs before the others holds their accelerators as they do."""
    said = pod.get("status", {})
    first = ((f"init container {status['name']}", status) for status in said.get("initContainerStatuses", ()))
    others = ((status["name"], status) for status in said.get("containerStatuses", ()))
    return {who: found for who, status in (*first, *others) if (found := not_startable(status))}


def _unpulled(pod: Object, now: datetime) -> End | None:
    """A container that cannot be started, once the other one has ended or patience has: the pod stays Pending."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    left_alone = any("terminated" in status.get("state", {}) for status in statuses)
    began = placed_since(pod)
    too_long = began is not None and now - began >= PULL_PATIENCE
    for name, found in _waiting(pod).items():
        if left_alone or too_long or found["reason"] in NEVER_PULLED:
            line = f"the {name} never started: {found['reason']}: {last_line(found.get('message', ''))}"
            return End(failure=Failure.ImagePull, line=line.removesuffix(": "))
    return None
