"""Finds objects that wait without a reason in their status: only their Events have one.

A Job whose pod is refused, a LeaderWorkerSet with too few pods, an unprovisioned claim, a pod whose volume cannot be
mounted. A cluster has more Events than all other objects, so the operator does not watch them: it lists only the Events
of such an object, after it has been silent for a while, and then once a minute.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from paceline.core.manifest import Object
from paceline.plan.objects import condition, finished
from paceline.plan.step import parse_time
from paceline.render.group import GROUPS

_SILENCE = timedelta(seconds=30)
"""Controllers create pods, and kubelets start them, within seconds or not at all."""
ASK_AGAIN = timedelta(minutes=1)
STARTING = ("ContainerCreating", "PodInitializing")
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
    status = pod.get("status", {})
    containers = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    states = [container.get("state", {}) for container in containers]
    begun = any(state.keys() & {"running", "terminated"} for state in states)
    starting = any(state.get("waiting", {}).get("reason") in STARTING for state in states)
    return placed_at(pod) if starting and not begun else None


def _claim(claim: Object) -> datetime | None:
    made = claim["metadata"].get("creationTimestamp")
    return parse_time(made) if made and claim.get("status", {}).get("phase") == "Pending" else None


def _group(group: Object) -> datetime | None:
    """When its generation began to roll out: LeaderWorkerSet then renews the condition Progressing."""
    progressing = condition(group, "Progressing")
    made = group["metadata"].get("creationTimestamp")
    return (changed_since(progressing) if progressing else None) or (parse_time(made) if made else None)


_WAITS = {"Job": _job, "Pod": _pod, "PersistentVolumeClaim": _claim, MAKES_A_GROUP: _group, GROUPS: _group}
"""Kind → function that returns since when such an object waits; None if it does not."""
