"""What waits without saying why: nothing in such an object tells, and only Events do.

A Job whose pod is refused, a claim that nobody provisions, a pod whose volume cannot be mounted. Nobody watches Events,
of which a cluster has more than of all else: those of such an object alone are asked for, when it has been silent for a
while and then once a minute (docs/decisions/0034).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from paceline.plan.terms import Found, condition, parse_time

SILENCE = timedelta(seconds=30)
"""What makes and starts pods does it within seconds, if it does it at all."""
ASK_AGAIN = timedelta(minutes=1)
STARTING = ("ContainerCreating", "PodInitializing")


def without_pod(job: Found, now: datetime) -> bool:
    """Whether a Job that goes on, and has no pod, should have had one by now."""
    made = job["metadata"].get("creationTimestamp")
    return bool(made) and not _ended(job) and now - parse_time(made) >= SILENCE


def silent(found: Iterable[Found], now: datetime) -> list[Found]:
    """Those of these pods, Jobs and claims that have waited for long and do not say why."""
    return [one for one in found if (began := _waits_since(one)) and now - began >= SILENCE]


def look_again(found: Iterable[Found], now: datetime) -> datetime | None:
    """When to ask what Events say of them; None if nothing waits."""
    times = (began + SILENCE for one in found if (began := _waits_since(one)))
    return min((time if time > now else now + ASK_AGAIN for time in times), default=None)


def waiting(children: Mapping[str, Iterable[Found]]) -> list[Found]:
    """Of all that is there, by kind, what may be silent: a Job only while it has no pod."""
    pods = list(children.get("Pod", ()))
    owners = {owner["uid"] for pod in pods for owner in pod["metadata"].get("ownerReferences", ())}
    jobs = [job for job in children.get("Job", ()) if job["metadata"].get("uid") not in owners]
    return [*pods, *jobs, *children.get("PersistentVolumeClaim", ())]


def placed_at(pod: Found) -> datetime | None:
    """Since when it has its node; None before."""
    scheduled = condition(pod, "PodScheduled")
    return since(scheduled) if scheduled else None


def since(said: Mapping[str, Any]) -> datetime | None:
    """Since when a condition is as it is; None where that is not told."""
    time = said.get("lastTransitionTime")
    return parse_time(time) if time else None


def words(found: Found, events: Iterable[Mapping[str, Any]]) -> str:
    """The last Warning; of a pod only if nothing was told of it since, as what it warned of may be over. "" if none."""
    told = sorted((one for one in events if one.get("reason") != "Scheduled"), key=_at)
    if found["kind"] != "Pod":
        told = [one for one in told if one.get("type") == "Warning"]
    last = told[-1] if told else {}
    return str(last.get("message", "")) if last.get("type") == "Warning" else ""


def _at(event: Mapping[str, Any]) -> str:
    """When it was told last. All are UTC; one with microseconds sorts right, too."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return max(time for time in (*times, "") if time is not None)


def _waits_since(found: Found) -> datetime | None:
    return WAITS[found["kind"]](found) if found.get("kind") in WAITS else None


def _job(found: Found) -> datetime | None:
    made = found["metadata"].get("creationTimestamp")
    return parse_time(made) if made and not _ended(found) else None


def _pod(found: Found) -> datetime | None:
    if "deletionTimestamp" in found["metadata"]:
        return None
    status = found.get("status", {})
    states = [
        one.get("state", {}) for kind in ("initContainerStatuses", "containerStatuses") for one in status.get(kind, ())
    ]
    begun = any(state.keys() & {"running", "terminated"} for state in states)
    starting = any(state.get("waiting", {}).get("reason") in STARTING for state in states)
    return placed_at(found) if starting and not begun else None


def _claim(found: Found) -> datetime | None:
    made = found["metadata"].get("creationTimestamp")
    return parse_time(made) if made and found.get("status", {}).get("phase") == "Pending" else None


def _ended(job: Found) -> bool:
    return bool(condition(job, "Complete") or condition(job, "Failed"))


WAITS = {"Job": _job, "Pod": _pod, "PersistentVolumeClaim": _claim}
"""Kind → since when an object of it waits; None if it does not."""
