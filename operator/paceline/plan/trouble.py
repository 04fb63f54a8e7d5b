"""Why a pod does not run, how it ended, and which objects wait without a reason in their status.

Only Events have the reason of a Job whose pod is refused, of a LeaderWorkerSet with too few pods, of an unprovisioned
claim, or of a pod whose volume cannot be mounted. A cluster has more Events than all other objects, so the operator
does not watch them: it lists only the Events of such an object, after it has been silent for a while, and then once a
minute.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api.reasons import Reason
from paceline.core.manifest import Object
from paceline.core.masking import without_secrets
from paceline.core.names import QUEUE_LABEL
from paceline.core.text import printable
from paceline.engines.log_tail import LONGEST_TAIL, failure_line
from paceline.engines.pod_template import CLIENT
from paceline.plan.objects import condition, finished
from paceline.plan.step import parse_time
from paceline.render.group import GROUPS

STARTING = ("ContainerCreating", "PodInitializing")
"""`waiting` reasons of a container that starts for the first time."""
_ON_ITS_WAY = (*STARTING, "CrashLoopBackOff")
"""`waiting` reasons of a container that has been or will be started. Any other reason (its image, its volumes, its
name) means that it cannot be started; every kubelet release adds some."""
UNALLOCATED = "cannot allocate all claims"
"""In the scheduler's messages: a node has no free devices for a pod's claim, or none that match its selectors
(Kubernetes 1.34, pkg/scheduler/framework/plugins/dynamicresources)."""
_ROOM = re.compile(
    rf"Insufficient|{UNALLOCATED}|Too many pods|unschedulable|anti-affinity|free ports|node\.kubernetes\.io/"
)
"""In the scheduler's messages: capacity that other pods may free, on an otherwise matching node."""
_NEVER = re.compile(
    r"node affinity/selector|untolerated taint|device class \S+ does not exist|[Pp]ersistent ?[Vv]olume"
)
"""In the scheduler's messages: problems that waiting does not solve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why a pod cannot be used. `message` is for people; decisions use the other fields."""

    message: str
    fatal: bool = False
    """A retry changes nothing: a person must act."""
    reason: Reason = Reason.ServersStarting
    """The problem's kind, as the reason of Ready."""
    since: datetime | None = None
    """Start time reported by the cluster; None if it does not report one."""
    final: datetime | None = None
    """When it becomes fatal if nothing changes."""


def trouble(
    pods: Iterable[Object], warnings: Mapping[str, str] | None = None, now: datetime | None = None
) -> Trouble | None:
    """The worst problem of these pods, in the order unplaced, on an unreachable node, unstartable, held up, crashed,
    evicted; of equal ones the first pod's. `warnings`: the last Warnings, by uid, of pods that give no reason. Without
    `now` no problem becomes fatal by its duration."""
    pods = list(pods)
    staying = [pod for pod in pods if "deletionTimestamp" not in pod.get("metadata", {})]
    kinds = (unplaced, _on_a_silent_node, _unpulled, lambda pod: held_up(pod, warnings or {}), _crashed)
    troubles = (problem for kind in kinds for pod in staying if (problem := kind(pod)))
    worst = next(troubles, None) or evicted(pods)
    lasts = now is not None and worst is not None and worst.final is not None and now >= worst.final
    return replace(worst, fatal=True, final=None) if worst and lasts else worst


def refused_pods(servers: Object, warnings: Mapping[str, str]) -> Trouble | None:
    """The problem of servers whose pods the API server refuses: a quota, an admission policy, a missing PriorityClass.
    A Deployment reports it in its status, a LeaderWorkerSet only in Events."""
    failure = condition(servers, "ReplicaFailure")
    if failure is not None:
        return Trouble(
            message=_refusal(failure.get("message", "")), reason=Reason.PodRefused, since=changed_since(failure)
        )
    warning = warnings.get(servers["metadata"].get("uid", ""))
    if not warning:
        return None
    return Trouble(message=_refusal(warning), reason=Reason.PodRefused, since=waits_since(servers))


def paused(servers: Object) -> Trouble | None:
    """The problem of a Deployment that `kubectl rollout pause` stopped. The operator itself never pauses one."""
    if not servers["spec"].get("paused"):
        return None
    way = f"kubectl rollout resume deployment/{servers['metadata']['name']}"
    return Trouble(message=f"nothing is rolled out until {way}", reason=Reason.Paused)


def _refusal(message: str) -> str:
    """The message without the pod's name, which differs at each try."""
    reason = re.sub(r"^(Error creating|create Pod \S+ in StatefulSet \S+ failed error): ", "", message)
    reason = re.sub(r'pods "[^"]*" is forbidden: ', "", reason)
    return reason and f"refused: {reason}"


def of_job(job: Object, pods: Iterable[Object], warnings: Mapping[str, str], now: datetime) -> Trouble | None:
    """The problem of a Job that has not ended. If its pod is refused, only the Job's Events show it."""
    pods, metadata = list(pods), job["metadata"]
    if job["spec"].get("suspend") and not pods and "creationTimestamp" in metadata:
        queue = (metadata.get("labels") or {}).get(QUEUE_LABEL)
        message = (
            f"Job {metadata['name']} waits in queue {queue}: kubectl get workloads shows why"
            if queue
            else f"Job {metadata['name']} is suspended, not by Paceline"
        )
        return Trouble(message=message, reason=Reason.NoCapacity)
    if pods or not without_pod(job, now):
        return trouble(pods, warnings)
    made = metadata["creationTimestamp"]
    refusal = _refusal(warnings.get(job["metadata"].get("uid", ""), ""))
    message = refusal or f"no pod has been made since {made}: kubectl describe job {job['metadata']['name']}"
    return Trouble(message=message, reason=Reason.PodRefused, since=parse_time(made))


def unplaced(pod: Object) -> Trouble | None:
    """The problem of a pod without a node, with the scheduler's message."""
    for each in pod.get("status", {}).get("conditions", ()):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            message = re.sub(r"\. not found\.?$", "", each.get("message") or each.get("reason", ""))
            never = _NEVER.search(message) and not _ROOM.search(message)
            reason = Reason.Unplaceable if never else Reason.NoCapacity
            return Trouble(message=f"not placed: {message}", reason=reason, since=changed_since(each))
    return None


def _on_a_silent_node(pod: Object) -> Trouble | None:
    """The problem of a pod whose containers were ready when its node last reported, and that the cluster has since
    removed from its Services. Ready then has no reason; a missing readiness gate would give one."""
    conditions = {each["type"]: each for each in pod.get("status", {}).get("conditions", ())}
    ready, containers = conditions.get("Ready", {}), conditions.get("ContainersReady", {})
    if (ready.get("status"), containers.get("status")) != ("False", "True") or ready.get("reason"):
        return None
    silent = f", since {ready['lastTransitionTime']}" if "lastTransitionTime" in ready else ""
    message = f"node {pod['spec'].get('nodeName', '')} does not answer{silent}"
    return Trouble(message=message, reason=Reason.NodeNotReady, since=changed_since(ready))


def evicted(pods: Iterable[Object]) -> Trouble | None:
    """The first eviction among these pods, by a drain, a taint or the scheduler."""
    return next(filter(None, map(_evicted, pods)), None)


def _evicted(pod: Object) -> Trouble | None:
    """The problem of a pod evicted by a drain, a taint or the scheduler. Its successor is being created."""
    target = condition(pod, "DisruptionTarget")
    if target is None:
        return None
    why = ": ".join(part for part in (target.get("reason", ""), target.get("message", "")) if part)
    return Trouble(message=f"taken off node {pod['spec'].get('nodeName', '')}: {why}", reason=Reason.Evicted)


def held_up(pod: Object, warnings: Mapping[str, str]) -> Trouble | None:
    """The problem of a pod that has a node but not its volumes or sandbox: only Events show it."""
    warning = warnings.get(pod.get("metadata", {}).get("uid", ""))
    if not warning or placed_at(pod) is None:
        return None
    return Trouble(message=f"not started: {warning}", reason=Reason.CannotStart, since=placed_at(pod))


def container(pod: Object, name: str) -> Mapping[str, Any]:
    """The status of one container: image, imageID, state. Empty if it has none yet."""
    return next((status for status in container_statuses(pod) if status["name"] == name), {})


def terminated(pod: Object, name: str) -> Mapping[str, Any] | None:
    """The `terminated` state of a container: exitCode, message, reason."""
    ended: Mapping[str, Any] | None = container(pod, name).get("state", {}).get("terminated")
    return ended


def not_startable(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `waiting` state of a container that the kubelet cannot start: reason, message. Empty for others."""
    waiting: Mapping[str, Any] = status.get("state", {}).get("waiting") or {}
    return waiting if waiting.get("reason", _ON_ITS_WAY[0]) not in _ON_ITS_WAY else {}


def last_line(message: str, limit: int = LONGEST_TAIL) -> str:
    """The last non-empty line: the kubelet and our programs end with their reason. A line that is too long loses its
    first words."""
    lines = [line for line in (without_secrets(printable(line).strip()) for line in message.splitlines()) if line]
    line = lines[-1] if lines else ""
    if len(line) <= limit:
        return line
    end = line[-(limit - 1) :]
    return "…" + (end if line[-limit] == " " else end.partition(" ")[2] or end)


def exit_text(container: str, ended: Mapping[str, Any]) -> str:
    """`the server exited with 2: error: unrecognized arguments: --x`, from a `terminated` state."""
    why = printable(failure_line(ended.get("message", ""))) or ended.get("reason", "")
    return ": ".join(part for part in (f"the {container} exited with {ended.get('exitCode', 0)}", why) if part)


def container_statuses(pod: Object) -> tuple[Mapping[str, Any], ...]:
    """Of all containers, init containers first."""
    status = pod.get("status", {})
    return (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))


def begun(pod: Object) -> bool:
    """Whether a container has run, other than the client of a round, which waits for the others."""
    others = (status for status in container_statuses(pod) if status["name"] != CLIENT)
    return any({"running", "terminated"} & status.get("state", {}).keys() for status in others)


def _unpulled(pod: Object) -> Trouble | None:
    for status in container_statuses(pod):
        if waiting := not_startable(status):
            message = f"{waiting['reason']}: {last_line(waiting.get('message', ''))}"
            began = placed_at(pod)
            final = began + _START_PATIENCE if began else None
            return Trouble(message=message, reason=Reason.CannotStart, since=began, final=final)
    return None


USAGE_ERROR = 2
"""argparse's exit code: the arguments will be wrong at the next start, too."""
MANY_RESTARTS = 3
LONG_LIFE = timedelta(minutes=10)
"""A container that ran at least this long before it ended does not count as crashing: the kubelet also resets its
back-off then (twice its longest one)."""
_START_PATIENCE = timedelta(minutes=1)
"""How long a node may fail to start a container, because of its image, its Secret or its name, before that is fatal:
nothing serves until then, and a wrong tag should be reported within two minutes."""


def _lived(ended: Mapping[str, Any]) -> timedelta:
    """How long a container ran, by its `terminated` state; zero if one of the times is missing."""
    times = [parse_time(ended[key]) for key in ("startedAt", "finishedAt") if ended.get(key)]
    return times[1] - times[0] if len(times) == 2 else timedelta()


def _crashed(pod: Object) -> Trouble | None:
    """The problem of a container that has ended: always for a server, else only if it failed."""
    never_restarted = pod["spec"].get("restartPolicy") == "Never"
    servers = () if never_restarted else pod.get("status", {}).get("containerStatuses", ())
    for status in container_statuses(pod):
        state = status.get("state", {})
        ended = state.get("terminated") or status.get("lastState", {}).get("terminated")
        if not ended or (status not in servers and not ended.get("exitCode")):
            continue
        hopeless = ended.get("exitCode") == USAGE_ERROR
        # The container will end the same way again, so a moment of running in between does not count.
        if "running" in state and (status.get("ready") or not hopeless):
            continue
        again = status.get("restartCount", 0) >= MANY_RESTARTS and _lived(ended) < LONG_LIFE
        fatal = hopeless or again
        reason = Reason.Crashing if fatal else Reason.ServersStarting
        since = parse_time(ended["finishedAt"]) if ended.get("finishedAt") else None
        return Trouble(message=exit_text(status["name"], ended), fatal=fatal, reason=reason, since=since)
    return None


_SILENCE = timedelta(seconds=30)
"""How long an object waits before its Events are read: controllers create pods, and kubelets start them, within seconds
or not at all."""
ASK_AGAIN = timedelta(minutes=1)
MAKES_A_GROUP = "StatefulSet"
"""Kind that creates the pods of a LeaderWorkerSet; it reports refusals only in Events."""


def without_pod(job: Object, now: datetime) -> bool:
    """Whether an unfinished Job without a pod is old enough to have one."""
    made = job["metadata"].get("creationTimestamp")
    return bool(made) and not finished(job) and now - parse_time(made) >= _SILENCE


def silent(waiting: Iterable[Object], now: datetime) -> list[Object]:
    """Objects that have waited for long without giving a reason."""
    return [item for item in waiting if (began := waits_since(item)) and now - began >= _SILENCE]


def recheck_at(waiting: Iterable[Object], now: datetime) -> datetime | None:
    """When to list the Events of these objects; None if none of them waits."""
    times = (began + _SILENCE for item in waiting if (began := waits_since(item)))
    return min((time if time > now else now + ASK_AGAIN for time in times), default=None)


def waiting(children: Mapping[str, Iterable[Object]]) -> list[Object]:
    """Objects that may wait silently, among these by kind; a Job only while it has no pod."""
    pods = list(children.get("Pod", ()))
    owners = {owner["uid"] for pod in pods for owner in pod["metadata"].get("ownerReferences", ())}
    jobs = [job for job in children.get("Job", ()) if job["metadata"].get("uid") not in owners]
    names = {pod["metadata"]["name"] for pod in pods}
    sets = [short for group in children.get(GROUPS, ()) if (short := _short_stateful_set(group, names))]
    return [*pods, *jobs, *sets, *children.get("PersistentVolumeClaim", ())]


def event_selector(item: Object) -> str:
    """The field selector of the object's Events. A group's StatefulSet is not ours, so its uid is unknown."""
    if item["kind"] == MAKES_A_GROUP:
        return f"involvedObject.kind={MAKES_A_GROUP},involvedObject.name={item['metadata']['name']}"
    return f"involvedObject.uid={item['metadata']['uid']}"


def waits_since(item: Object) -> datetime | None:
    """Since when the object waits, by its own status; None if it does not wait."""
    return _WAITS[item["kind"]](item) if item.get("kind") in _WAITS else None


def _short_stateful_set(group: Object, pods: Collection[str]) -> Object | None:
    """The first StatefulSet with too few pods, with the uid, age and conditions of the LeaderWorkerSet.

    The leaders' StatefulSet has the LeaderWorkerSet's name; the one of a leader's workers has the leader's name
    (v0.10.0, pkg/controllers/leaderworkerset_controller.go:846 and pod_controller.go:436). The number in a pod's name
    is its rank; workers start at 1.
    """
    name, spec = group["metadata"]["name"], group["spec"]
    leaders = [f"{name}-{number}" for number in range(spec.get("replicas", 1))]
    ranks = range(1, spec["leaderWorkerTemplate"].get("size", 1))
    if all(leader in pods for leader in leaders):
        short = next((leader for leader in leaders if any(f"{leader}-{rank}" not in pods for rank in ranks)), None)
    else:
        short = name
    if short is None:
        return None
    return {"kind": MAKES_A_GROUP, "metadata": {**group["metadata"], "name": short}, "status": group.get("status", {})}


def placed_at(pod: Object) -> datetime | None:
    """When the pod got its node; None before."""
    scheduled = condition(pod, "PodScheduled")
    return changed_since(scheduled) if scheduled else None


def changed_since(condition: Mapping[str, Any]) -> datetime | None:
    """When a condition last changed; None if that is not recorded."""
    time = condition.get("lastTransitionTime")
    return parse_time(time) if time else None


def last_warning(item: Object, events: Iterable[Mapping[str, Any]]) -> str:
    """Message of the last Warning; "" if none. A pod's or StatefulSet's Warning counts only if no other Event is later,
    because its cause may be gone."""
    ordered = sorted((event for event in events if event.get("reason") != "Scheduled"), key=_at)
    if item["kind"] not in ("Pod", MAKES_A_GROUP):
        ordered = [event for event in ordered if event.get("type") == "Warning"]
    if item["kind"] == MAKES_A_GROUP:  # selected by name: an earlier object may have had the same name
        ordered = [event for event in ordered if _at(event) >= item["metadata"]["creationTimestamp"]]
    last = ordered[-1] if ordered else {}
    if item["kind"] == MAKES_A_GROUP and last.get("reason") != "FailedCreate":
        return ""
    return str(last.get("message", "")) if last.get("type") == "Warning" else ""


def _at(event: Mapping[str, Any]) -> str:
    """Time of the Event's last occurrence. All times are UTC; times with microseconds sort correctly, too."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max(time for time in (*times, "") if time is not None)


def _job(job: Object) -> datetime | None:
    made = job["metadata"].get("creationTimestamp")
    return parse_time(made) if made and not finished(job) else None


def _pod(pod: Object) -> datetime | None:
    if "deletionTimestamp" in pod["metadata"]:
        return None
    waiting = (status.get("state", {}).get("waiting", {}) for status in container_statuses(pod))
    starting = any(state.get("reason") in STARTING for state in waiting)
    return placed_at(pod) if starting and not begun(pod) else None


def _claim(claim: Object) -> datetime | None:
    made = claim["metadata"].get("creationTimestamp")
    return parse_time(made) if made and claim.get("status", {}).get("phase") == "Pending" else None


def _group(group: Object) -> datetime | None:
    """When the group's generation began to roll out: LeaderWorkerSet then renews the condition Progressing."""
    progressing = condition(group, "Progressing")
    made = group["metadata"].get("creationTimestamp")
    return (changed_since(progressing) if progressing else None) or (parse_time(made) if made else None)


_WAITS = {"Job": _job, "Pod": _pod, "PersistentVolumeClaim": _claim, MAKES_A_GROUP: _group, GROUPS: _group}
"""Kind → function that returns since when such an object waits; None if it does not."""
