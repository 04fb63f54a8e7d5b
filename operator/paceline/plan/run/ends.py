"""Why a round has no result, or will never have one: the failure, and the last useful line about it."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from paceline.api import Reason
from paceline.api.run_status import BenchmarkRunStatus
from paceline.core.manifest import Object
from paceline.core.names import QUEUE_LABEL
from paceline.engines.log_tail import failure_line
from paceline.engines.pod_template import CLIENT, CONCLUDE, arm_container, is_arm
from paceline.evidence.failures import MEMORY, Failure
from paceline.plan.objects import condition
from paceline.plan.run.snapshot import End, RoundJob
from paceline.plan.run.starting import PULL_PATIENCE, gives_up, hopeless_start, placed_since
from paceline.plan.step import parse_time
from paceline.plan.trouble import container_statuses, exit_text, last_line, not_startable, terminated

HEARTBEAT_LOST, TERMINATED = 70, 143
"""The wrapper's exit codes if the client's heartbeat stops, and on SIGTERM."""
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
"""Reason of a pod ended by the cluster, or of its condition DisruptionTarget → failure."""


def end_of(round: RoundJob, unread: str) -> End:
    """Why a finished Job gave no result; `unread`: why its client's message could not be read."""
    pod, failed = round.pod or {}, condition(round.job, "Failed") or {}
    if end := taken_away(round):
        return end
    job_failed = f"{failed['reason']}: {failed.get('message', '')}" if failed.get("reason") else ""
    if _late(round):  # its containers' exit codes only show that they were killed
        return End(failure=Failure.TimedOut, line=job_failed or str(pod.get("status", {}).get("message", "")))
    if first := _failed_before(pod):  # later containers never started
        name, ended = first
        if is_arm(name) and ended["exitCode"] == HEARTBEAT_LOST:
            line = "the client stopped responding and the wrapper stopped the server"
            return End(failure=Failure.ClientFailed, line=line)
        return _ended(name, ended)
    concluded = terminated(pod, CONCLUDE) or {}
    if concluded.get("exitCode"):
        return End(failure=Failure.ClientFailed, line=exit_text(CLIENT, concluded))
    return End(failure=Failure.Unreadable, line=job_failed or unread)


def killed_arm(round: RoundJob) -> tuple[str, End] | None:
    """The arm's container that was killed as a whole, for want of memory or by anybody, and how: the pod ended with it,
    so no later arm ran. None if the pod was taken away or deleted or late, or if the wrapper itself gave up."""
    first = _failed_before(round.pod or {})
    if first is None or not is_arm(first[0]) or first[1]["exitCode"] in (HEARTBEAT_LOST, TERMINATED):
        return None
    if taken_away(round) or _late(round) or "deletionTimestamp" in (round.pod or {}).get("metadata", {}):
        return None
    return first[0], _ended(*first)


def unpulled_arm(round: RoundJob, now: datetime) -> tuple[str, End] | None:
    """The container of an arm with an image of its own that could not be pulled, and so ends the round: the image that
    arms share is nobody's fault."""
    own = () if round.unreadable else (arm.name for arm in round.plan.arms if arm.held is not None)
    found = _unpulled(round.pod or {}, now)
    return found if found and found[0] in map(arm_container, own) else None


def lost_arm(round: RoundJob, now: datetime) -> tuple[str, End] | None:
    """The arm with whose container the round ended."""
    return killed_arm(round) or (None if round.ended else unpulled_arm(round, now))


def may_have_result(round: RoundJob, now: datetime) -> bool:
    """Whether the log of its client is worth reading: its last container succeeded, or the round ended with an arm."""
    concluded = terminated(round.pod or {}, CONCLUDE)
    return lost_arm(round, now) is not None if concluded is None else not concluded.get("exitCode")


def _late(round: RoundJob) -> bool:
    reasons = (condition(round.job, "Failed") or {}, (round.pod or {}).get("status", {}))
    return any(said.get("reason") == "DeadlineExceeded" for said in reasons)


def _ended(name: str, ended: Mapping[str, Any]) -> End:
    failure = Failure.OutOfMemory if _no_memory(ended) else Failure.ServerCrashed
    return End(failure=failure, line=exit_text(_container(name), ended))


def _failed_before(pod: Object) -> tuple[str, Mapping[str, Any]] | None:
    """The first init container that failed: its name and its `terminated` state. The client's end is known by others:
    the kubelet restarts it, and in the end kills it."""
    statuses = pod.get("status", {}).get("initContainerStatuses", ())
    ends = ((status["name"], status.get("state", {}).get("terminated") or {}) for status in statuses)
    return next(((name, ended) for name, ended in ends if ended.get("exitCode") and name != CLIENT), None)


def _container(name: str) -> str:
    """What a person calls the init container."""
    if name in (CLIENT, CONCLUDE):
        return name
    return f"container {name}" if is_arm(name) else f"init container {name}"


def stopped_by_its_queue(round: RoundJob, before: BenchmarkRunStatus) -> End | None:
    """Kueue has suspended the Job again while it was measured, by the status `before`: so it preempts, and so it ends a
    pod that is not Ready in time: no round's is. It counts as a try, or the queue would begin it anew without end."""
    queue = (round.job["metadata"].get("labels") or {}).get(QUEUE_LABEL)
    seen = before.progress and before.progress.seen and before.progress.job == round.name
    measured = any(condition.reason == Reason.RunMeasuring.text for condition in before.conditions)
    if not (queue and round.suspended and seen and measured):
        return None
    line = (
        f"queue {queue} has stopped it: kubectl get events shows why; if PodsReadyTimeout, turn Kueue's "
        "waitForPodsReady off, or set its timeout above the length of a round"
    )
    return End(failure=Failure.Evicted, line=line)


def hopeless(round: RoundJob, warning: str, now: datetime) -> End | None:
    """Why a round under way can no longer give a result although it holds GPUs. A round without a node holds none and
    may wait indefinitely. `warning`: the latest Event about its pod."""
    if round.unreadable:
        return End(failure=Failure.Unreadable, line=round.unreadable)
    pod = round.pod or {}
    if "deletionTimestamp" in pod.get("metadata", {}) and (lost := taken_away(round)):
        # A pod on an unreachable node never reports its end, so its Job would never end.
        return lost if lost.failure is Failure.NodeLost else None
    unpulled = _unpulled(pod, now)
    return unpulled[1] if unpulled else hopeless_start(round, warning, now)


def deadlines(round: RoundJob) -> tuple[datetime, ...]:
    """Times at which a round that does not start becomes hopeless."""
    pod = round.pod or {}
    began = _waits_since(pod)
    pulled_by = began + PULL_PATIENCE if began and any(_waiting(pod)) else None
    return tuple(time for time in (pulled_by, gives_up(round)) if time)


def held_seconds(round: RoundJob, now: datetime) -> int | None:
    """How long its pod has held accelerators; None if the start is not recorded."""
    pod = round.pod or {}
    began = placed_since(pod)
    if began is None:
        return None
    statuses = pod["status"].get("containerStatuses", ())
    first = _failed_before(pod)
    last = [first[1]] if first else [status.get("state", {}).get("terminated", {}) for status in statuses]
    ends = [parse_time(ended["finishedAt"]) for ended in last if "finishedAt" in ended]
    over = max(ends) if ends and len(ends) == len(last) else now
    return max(0, math.ceil((over - began).total_seconds()))


def taken_away(round: RoundJob) -> End | None:
    """Why the cluster itself ended the round."""
    status = (round.pod or {}).get("status", {})
    if failure := TAKEN_AWAY.get(status.get("reason", "")) or _refused(status):
        return End(failure=failure, line=f"{status['reason']}: {status.get('message', '')}".removesuffix(": "))
    if round.pod and (target := condition(round.pod, "DisruptionTarget")):
        reason = target.get("reason", "DisruptionTarget")
        line = f"{reason}: {target.get('message', '')}".removesuffix(": ")
        return End(failure=TAKEN_AWAY.get(reason, Failure.Evicted), line=line)
    failed = condition(round.job, "Failed")
    if round.pod is None and failed and failed.get("reason") == "BackoffLimitExceeded":
        # A failed pod stays; an evicted or preempted pod is deleted.
        return End(failure=Failure.Evicted, line="its pod is gone")
    return None


def _refused(status: Mapping[str, Any]) -> Failure | None:
    """A kubelet that refuses a pod ends it before any container runs. Each release adds names for that:
    UnexpectedAdmissionError, OutOfnvidia.com/gpu, TopologyAffinityError, NodeAffinity, …"""
    not_refused = not status.get("reason") or status["reason"] == "DeadlineExceeded"
    if status.get("phase") != "Failed" or not_refused or container_statuses({"status": status}):
        return None
    return Failure.NodeRefused


def _no_memory(ended: Mapping[str, Any]) -> bool:
    return bool(MEMORY.search(f"{ended.get('reason', '')} {failure_line(ended.get('message', ''))}"))


def _waiting(pod: Object) -> dict[str, Mapping[str, Any]]:
    """Container → why it cannot be started. A pod with a waiting init container holds accelerators, too."""
    waits = ((status["name"], not_startable(status)) for status in container_statuses(pod))
    return {name: waiting for name, waiting in waits if waiting}


def _unpulled(pod: Object, now: datetime) -> tuple[str, End] | None:
    """A container that cannot be started, given up once PULL_PATIENCE is over; the pod would stay Pending."""
    began = _waits_since(pod)
    too_long = began is not None and now - began >= PULL_PATIENCE
    for name, waiting in _waiting(pod).items():
        if too_long or waiting["reason"] in NEVER_PULLED:
            said = f"{waiting['reason']}: {last_line(waiting.get('message', ''))}".removesuffix(": ")
            return name, End(failure=Failure.ImagePull, line=f"the {_container(name)} never started: {said}")
    return None


def _waits_since(pod: Object) -> datetime | None:
    """Since when the container whose turn it is could have run: when the one before ended, or the pod was placed."""
    statuses = pod.get("status", {}).get("initContainerStatuses", ())
    ends = [status.get("state", {}).get("terminated", {}).get("finishedAt") for status in statuses]
    return max(map(parse_time, filter(None, ends)), default=placed_since(pod))
