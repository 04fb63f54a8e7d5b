"""What waits without saying why: nothing in such an object tells, and only Events do.

A Job whose pod is refused, or a LeaderWorkerSet that has too few of them, a claim that nobody provisions, a pod whose
volume cannot be mounted. Nobody watches Events,
of which a cluster has more than of all else: those of such an object alone are asked for, when it has been silent for a
while and then once a minute (docs/decisions/0034).
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from paceline.plan.objects import Object, condition, finished
from paceline.plan.step import parse_time
from paceline.render.group import KIND as GROUPS

SILENCE = timedelta(seconds=30)
"""What makes and starts pods does it within seconds, if it does it at all."""
ASK_AGAIN = timedelta(minutes=1)
STARTING = ("ContainerCreating", "PodInitializing")
MAKES_A_GROUP = "StatefulSet"
"""What makes the pods of a LeaderWorkerSet, and tells of refusals in Events alone."""


def without_pod(job: Object, now: datetime) -> bool:
    """Whether a Job that goes on, and has no pod, should have had one by now."""
    made = job["metadata"].get("creationTimestamp")
    return bool(made) and not finished(job) and now - parse_time(made) >= SILENCE


def silent(found: Iterable[Object], now: datetime) -> list[Object]:
    """Those of these pods, Jobs and claims that have waited for long and do not say why."""
    return [one for one in found if (began := waits_since(one)) and now - began >= SILENCE]


def look_again(found: Iterable[Object], now: datetime) -> datetime | None:
    """When to ask what Events say of them; None if nothing waits."""
    times = (began + SILENCE for one in found if (began := waits_since(one)))
    return min((time if time > now else now + ASK_AGAIN for time in times), default=None)


def waiting(children: Mapping[str, Iterable[Object]]) -> list[Object]:
    """Of all that is there, by kind, what may be silent: a Job only while it has no pod."""
    pods = list(children.get("Pod", ()))
    owners = {owner["uid"] for pod in pods for owner in pod["metadata"].get("ownerReferences", ())}
    jobs = [job for job in children.get("Job", ()) if job["metadata"].get("uid") not in owners]
    names = {pod["metadata"]["name"] for pod in pods}
    groups = [makes for found in children.get(GROUPS, ()) if (makes := _makes_what_is_missing(found, names))]
    return [*pods, *jobs, *groups, *children.get("PersistentVolumeClaim", ())]


def of(found: Object) -> str:
    """The field selector of its Events. What makes a group's pods is not ours, so its uid is not known."""
    if found["kind"] == MAKES_A_GROUP:
        return f"involvedObject.kind={MAKES_A_GROUP},involvedObject.name={found['metadata']['name']}"
    return f"involvedObject.uid={found['metadata']['uid']}"


def waits_since(found: Object) -> datetime | None:
    """None if it does not wait, as far as it shows itself."""
    return WAITS[found["kind"]](found) if found.get("kind") in WAITS else None


def _makes_what_is_missing(group: Object, pods: Collection[str]) -> Object | None:
    """The first StatefulSet that has made too few pods, with the uid, age and conditions of the LeaderWorkerSet.

    That of the leaders has the LeaderWorkerSet's name, that of a leader's workers the leader's (v0.10.0,
    pkg/controllers/leaderworkerset_controller.go:846 and pod_controller.go:436); the number in a pod's name is its
    place in it, and that of the first worker is 1."""
    name, spec = group["metadata"]["name"], group["spec"]
    leaders = [f"{name}-{number}" for number in range(spec.get("replicas", 1))]
    ranks = range(1, spec["leaderWorkerTemplate"].get("size", 1))
    if all(leader in pods for leader in leaders):
        short = next((one for one in leaders if any(f"{one}-{rank}" not in pods for rank in ranks)), None)
    else:
        short = name
    if short is None:
        return None
    return {"kind": MAKES_A_GROUP, "metadata": {**group["metadata"], "name": short}, "status": group.get("status", {})}


def placed_at(pod: Object) -> datetime | None:
    """Since when it has its node; None before."""
    scheduled = condition(pod, "PodScheduled")
    return since(scheduled) if scheduled else None


def since(said: Mapping[str, Any]) -> datetime | None:
    """Since when a condition is as it is; None where that is not told."""
    time = said.get("lastTransitionTime")
    return parse_time(time) if time else None


def words(found: Object, events: Iterable[Mapping[str, Any]]) -> str:
    """The last Warning; of a pod, and of what makes a group's, only if nothing was told of it since, as what it warned
    of may be over. "" if none."""
    told = sorted((one for one in events if one.get("reason") != "Scheduled"), key=_at)
    if found["kind"] not in ("Pod", MAKES_A_GROUP):
        told = [one for one in told if one.get("type") == "Warning"]
    if found["kind"] == MAKES_A_GROUP:  # asked for by name: another may have had it before
        told = [one for one in told if _at(one) >= found["metadata"]["creationTimestamp"]]
    last = told[-1] if told else {}
    if found["kind"] == MAKES_A_GROUP and last.get("reason") != "FailedCreate":
        return ""
    return str(last.get("message", "")) if last.get("type") == "Warning" else ""


def _at(event: Mapping[str, Any]) -> str:
    """When it was told last. All are UTC; one with microseconds sorts right, too."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max(time for time in (*times, "") if time is not None)


def _job(found: Object) -> datetime | None:
    made = found["metadata"].get("creationTimestamp")
    return parse_time(made) if made and not finished(found) else None


def _pod(found: Object) -> datetime | None:
    if "deletionTimestamp" in found["metadata"]:
        return None
    status = found.get("status", {})
    states = [
        one.get("state", {}) for kind in ("initContainerStatuses", "containerStatuses") for one in status.get(kind, ())
    ]
    begun = any(state.keys() & {"running", "terminated"} for state in states)
    starting = any(state.get("waiting", {}).get("reason") in STARTING for state in states)
    return placed_at(found) if starting and not begun else None


def _claim(found: Object) -> datetime | None:
    made = found["metadata"].get("creationTimestamp")
    return parse_time(made) if made and found.get("status", {}).get("phase") == "Pending" else None


def _group(found: Object) -> datetime | None:
    """LeaderWorkerSet begins to count anew with every generation of it."""
    progressing = condition(found, "Progressing")
    made = found["metadata"].get("creationTimestamp")
    return (since(progressing) if progressing else None) or (parse_time(made) if made else None)


WAITS = {"Job": _job, "Pod": _pod, "PersistentVolumeClaim": _claim, MAKES_A_GROUP: _group, GROUPS: _group}
"""Kind → since when an object of it waits; None if it does not."""
