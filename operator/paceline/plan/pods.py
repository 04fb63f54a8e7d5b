"""What a pod says of itself: why it does not run, how it ended."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from paceline.api.reasons import Reason
from paceline.core.text import printable
from paceline.engines.log_tail import LONGEST, failure_line
from paceline.plan.objects import Object, condition
from paceline.plan.silence import placed_at, since, waits_since, without_pod
from paceline.plan.step import parse_time

ON_ITS_WAY = ("ContainerCreating", "PodInitializing", "CrashLoopBackOff")
"""Why a container waits that has been or will be started. Of all other reasons (its image, its volumes, its name) the
kubelet knows more with every release, and they mean the same: it cannot be started."""
ROOM = re.compile(r"Insufficient|Too many pods|unschedulable|anti-affinity|free ports|node\.kubernetes\.io/")
"""Of the scheduler's words: what others may give back, on a node that is otherwise what is asked for."""
NEVER = re.compile(r"node affinity/selector|untolerated taint|[Pp]ersistent ?[Vv]olume")
"""And what no waiting changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Why a pod is no use. `fatal`: trying again changes nothing, a person must act. `says`: what it makes of Ready."""

    what: str
    fatal: bool = False
    says: Reason = Reason.ServersStarting
    since: datetime | None = None
    """By the cluster's own account; None where that does not tell."""
    final: datetime | None = None
    """From then on it is fatal, if nothing has changed by then."""


def trouble(
    pods: Iterable[Object], warnings: Mapping[str, str] | None = None, now: datetime | None = None
) -> Trouble | None:
    """The worst of these pods' troubles, in the order refused, unplaced, on a silent node, unstartable, crashed,
    evicted; of equal ones the first pod's. `warnings` are what Events say of those that are silent, by uid. Without a
    time none becomes fatal by lasting."""
    pods = list(pods)
    staying = [pod for pod in pods if "deletionTimestamp" not in pod.get("metadata", {})]
    kinds = (unplaced, _on_a_silent_node, _unpulled, lambda pod: _held_up(pod, warnings or {}), _crashed)
    found = [found for kind in kinds for pod in staying if (found := kind(pod))]
    worst = next(iter(found), None) or next(filter(None, map(_evicted, pods)), None)
    lasts = now is not None and worst is not None and worst.final is not None and now >= worst.final
    return replace(worst, fatal=True, final=None) if worst and lasts else worst


def refused(found: Object, warnings: Mapping[str, str]) -> Trouble | None:
    """Of servers whose pods nobody may make: a quota, an admission policy, a PriorityClass that is not there. A
    Deployment says so itself, of a LeaderWorkerSet Events do."""
    failure = condition(found, "ReplicaFailure")
    if failure is not None:
        return Trouble(what=_refusal(failure.get("message", "")), says=Reason.PodRefused, since=since(failure))
    said = warnings.get(found["metadata"].get("uid", ""))
    return Trouble(what=_refusal(said), says=Reason.PodRefused, since=waits_since(found)) if said else None


def paused(found: Object) -> Trouble | None:
    """Of a Deployment that `kubectl rollout pause` keeps from changing its pods. We never pause one."""
    if not found["spec"].get("paused"):
        return None
    way = f"kubectl rollout resume deployment/{found['metadata']['name']}"
    return Trouble(what=f"nothing is rolled out until {way}", says=Reason.Paused)


def _refusal(said: str) -> str:
    """Without the pod's name, which is another one at each try."""
    told = re.sub(r"^(Error creating|create Pod \S+ in StatefulSet \S+ failed error): ", "", said)
    told = re.sub(r'pods "[^"]*" is forbidden: ', "", told)
    return told and f"refused: {told}"


def of_job(job: Object, pods: Iterable[Object], warnings: Mapping[str, str], now: datetime) -> Trouble | None:
    """Of a Job that has not ended. It says nothing itself of a pod that it may not make: its Events do."""
    pods = list(pods)
    if pods or not without_pod(job, now):
        return trouble(pods, warnings)
    made = job["metadata"]["creationTimestamp"]
    if job["spec"].get("suspend"):
        return Trouble(what=f"Job {job['metadata']['name']} is suspended, not by Paceline", says=Reason.NoCapacity)
    said = _refusal(warnings.get(job["metadata"].get("uid", ""), ""))
    what = said or f"no pod was made since {made}: kubectl describe job {job['metadata']['name']}"
    return Trouble(what=what, says=Reason.PodRefused, since=parse_time(made))


def unplaced(pod: Object) -> Trouble | None:
    """In the scheduler's own words what is missing."""
    for found in pod.get("status", {}).get("conditions", ()):
        if found["type"] == "PodScheduled" and found["status"] == "False":
            said = re.sub(r"\. not found\.?$", "", found.get("message") or found.get("reason", ""))
            never = NEVER.search(said) and not ROOM.search(said)
            says = Reason.Unplaceable if never else Reason.NoCapacity
            return Trouble(what=f"not placed: {said}", says=says, since=since(found))
    return None


def _on_a_silent_node(pod: Object) -> Trouble | None:
    """Its containers were ready when its node was last heard of, and the cluster has taken it off its Services since.
    A pod's own readiness gates say which of them is missing; of a node that is silent nobody gives a reason."""
    said = {found["type"]: found for found in pod.get("status", {}).get("conditions", ())}
    ready, containers = said.get("Ready", {}), said.get("ContainersReady", {})
    if (ready.get("status"), containers.get("status")) != ("False", "True") or ready.get("reason"):
        return None
    silent = f", since {ready['lastTransitionTime']}" if "lastTransitionTime" in ready else ""
    what = f"node {pod['spec'].get('nodeName', '')} does not answer{silent}"
    return Trouble(what=what, says=Reason.NodeNotReady, since=since(ready))


def _evicted(pod: Object) -> Trouble | None:
    """A drain, a taint or the scheduler takes it away, and its successor is on the way."""
    target = condition(pod, "DisruptionTarget")
    if target is None:
        return None
    why = ": ".join(part for part in (target.get("reason", ""), target.get("message", "")) if part)
    return Trouble(what=f"taken off node {pod['spec'].get('nodeName', '')}: {why}", says=Reason.Evicted)


def _held_up(pod: Object, warnings: Mapping[str, str]) -> Trouble | None:
    """Placed, and its volumes or sandbox cannot be had: only Events tell."""
    said = warnings.get(pod.get("metadata", {}).get("uid", ""))
    if not said or placed_at(pod) is None:
        return None
    return Trouble(what=f"not started: {said}", says=Reason.CannotStart, since=placed_at(pod))


def container(pod: Object, name: str) -> Mapping[str, Any]:
    """What the pod's status says of one of its containers: image, imageID, state."""
    statuses: Iterable[Mapping[str, Any]] = pod.get("status", {}).get("containerStatuses", ())
    return next((status for status in statuses if status["name"] == name), {})


def terminated(pod: Object, name: str) -> Mapping[str, Any] | None:
    """The `terminated` state of a container: exitCode, message, reason."""
    ended: Mapping[str, Any] | None = container(pod, name).get("state", {}).get("terminated")
    return ended


def failed_before(pod: Object) -> tuple[str, Mapping[str, Any]] | None:
    """Of the containers that run before the others, the one that ended badly: its name and its `terminated` state."""
    statuses: Iterable[Mapping[str, Any]] = pod.get("status", {}).get("initContainerStatuses", ())
    found = ((status["name"], status.get("state", {}).get("terminated") or {}) for status in statuses)
    return next(((name, ended) for name, ended in found if ended.get("exitCode")), None)


def not_startable(status: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `waiting` state of a container that the kubelet cannot start: reason, message. Empty for every other."""
    waiting: Mapping[str, Any] = status.get("state", {}).get("waiting") or {}
    return waiting if waiting.get("reason", ON_ITS_WAY[0]) not in ON_ITS_WAY else {}


def not_started(pod: Object) -> bool:
    """It has a node, and none of its containers has ever run."""
    said = pod.get("status", {})
    found = (*said.get("initContainerStatuses", ()), *said.get("containerStatuses", ()))
    ran = any({"running", "terminated"} & status.get("state", {}).keys() or status.get("lastState") for status in found)
    return bool(pod["spec"].get("nodeName")) and said.get("phase", "Pending") == "Pending" and not ran


def last_line(message: str, limit: int = LONGEST) -> str:
    """The last line that says something: of the kubelet and of our own programs, which end with their reason. Of one
    that is too long the end, from a word on."""
    lines = [line for line in (printable(line).strip() for line in message.splitlines()) if line]
    line = lines[-1] if lines else ""
    if len(line) <= limit:
        return line
    end = line[-(limit - 1) :]
    return "…" + (end if line[-limit] == " " else end.partition(" ")[2] or end)


def exit_text(who: str, ended: Mapping[str, Any]) -> str:
    """`the server exited with 2: error: unrecognized arguments: --x`, of a `terminated` state."""
    said = printable(failure_line(ended.get("message", ""))) or ended.get("reason", "")
    return ": ".join(part for part in (f"the {who} exited with {ended.get('exitCode', 0)}", said) if part)


def _statuses(pod: Object) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Of every container, the user's that run first included; whether ending well is all it is there for."""
    found, forever = pod.get("status", {}), pod["spec"].get("restartPolicy") != "Never"
    yield from ((status, True) for status in found.get("initContainerStatuses", ()))
    yield from ((status, not forever) for status in found.get("containerStatuses", ()))


def _unpulled(pod: Object) -> Trouble | None:
    for status, _ in _statuses(pod):
        if waiting := not_startable(status):
            what = f"{waiting['reason']}: {last_line(waiting.get('message', ''))}"
            began = placed_at(pod)
            final = began + START_PATIENCE if began else None
            return Trouble(what=what, says=Reason.CannotStart, since=began, final=final)
    return None


USAGE_ERROR = 2
"""argparse's exit code: the arguments will be as wrong the next time."""
MANY_RESTARTS = 3
LONG_LIFE = timedelta(minutes=10)
"""Who has run for so long before it ended is in no crash loop: after that the kubelet forgets its back-off, too
(twice its longest one)."""
START_PATIENCE = timedelta(minutes=1)
"""How long a node may fail to start a container, for its image, its Secret or its name, before that is for good:
nothing answers meanwhile, and a wrong tag is to be told within two minutes."""


def _lived(ended: Mapping[str, Any]) -> timedelta:
    """From a `terminated` state; nothing, where that does not say."""
    times = [parse_time(ended[key]) for key in ("startedAt", "finishedAt") if ended.get(key)]
    return times[1] - times[0] if len(times) == 2 else timedelta()


def _crashed(pod: Object) -> Trouble | None:
    """A server that ends is always in trouble; what is there to end only if it did not end well."""
    for status, once in _statuses(pod):
        state = status.get("state", {})
        ended = state.get("terminated") or status.get("lastState", {}).get("terminated")
        if not ended or (once and not ended.get("exitCode")):
            continue
        hopeless = ended.get("exitCode") == USAGE_ERROR
        # It will end the same way again, so that it runs for a moment in between is no news.
        if "running" in state and (status.get("ready") or not hopeless):
            continue
        again = status.get("restartCount", 0) >= MANY_RESTARTS and _lived(ended) < LONG_LIFE
        fatal = hopeless or again
        says = Reason.Crashing if fatal else Reason.ServersStarting
        since = parse_time(ended["finishedAt"]) if ended.get("finishedAt") else None
        return Trouble(what=exit_text(status["name"], ended), fatal=fatal, says=says, since=since)
    return None
