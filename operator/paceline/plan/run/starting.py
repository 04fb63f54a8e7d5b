"""Handles a round whose pod has a node, and so holds accelerators, but whose containers do not start."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from paceline.core.manifest import Object
from paceline.engines.pod_template import CLIENT, arm_container
from paceline.evidence.failures import Failure
from paceline.plan.objects import IN_USE
from paceline.plan.run.snapshot import End, RoundJob
from paceline.plan.step import parse_time
from paceline.plan.trouble import container_statuses

_START_PATIENCE = timedelta(minutes=10)
"""How long a pod may wait for its volumes and network. A volume of a lost node is detached by force after six minutes
(kube-controller-manager's maxWaitForUnmountDuration), then attached here."""
PULL_PATIENCE = timedelta(minutes=5)
"""How long a pod may wait for an image whose pull fails: a registry may be down briefly (used in `ends`)."""
IMAGES_PATIENCE = timedelta(hours=1)
"""How long a pod may wait for images whose pull goes on; an engine's image has tens of gigabytes."""
SANDBOX = "PodReadyToStartContainers"
"""Condition of a pod with volumes and network (Kubernetes 1.29; older kubelets do not set it). A pod with this
condition waits for images."""


def placed_since(pod: Object) -> datetime | None:
    """When the pod began to hold accelerators: when the scheduler placed it or, if that is not recorded, when the
    kubelet acknowledged it."""
    status = pod.get("status", {})
    placed = [c for c in status.get("conditions", ()) if c["type"] == "PodScheduled" and c["status"] == "True"]
    times = [status.get("startTime"), *(c.get("lastTransitionTime") for c in placed)]
    return min((parse_time(time) for time in times if time), default=None)


def image_seconds(round: RoundJob) -> dict[str, float]:
    """Arm → how long its container waited for its image: whole seconds from the end of the arm's before it (for the
    first arm: from the start of the client) to its own start. Arms without a wait are left out."""
    statuses = {status["name"]: status.get("state", {}) for status in container_statuses(round.pod or {})}
    waits, free = dict[str, float](), _time(statuses, CLIENT, "startedAt")
    for arm in round.plan.arms:
        name = arm_container(arm.name)
        started = _time(statuses, name, "startedAt")
        if free and started and started > free:
            waits[arm.name] = (started - free).total_seconds()
        free = _time(statuses, name, "finishedAt")
    return waits


def _time(statuses: Mapping[str, Object], container: str, which: str) -> datetime | None:
    states = statuses.get(container, {})
    told = next((state[which] for kind in ("terminated", "running") if which in (state := states.get(kind) or {})), "")
    return parse_time(told) if told else None


def gives_up(round: RoundJob) -> datetime | None:
    """When waiting ends; None for a round that has started or has no node."""
    pod = round.pod or {}
    began = placed_since(pod)
    if began is None or not round.waits_to_start:
        return None
    return began + (_START_PATIENCE if _without_sandbox(pod) else IMAGES_PATIENCE)


def hopeless_start(round: RoundJob, warning: str, now: datetime) -> End | None:
    """Why the round will not start. `warning`: the latest Event about its pod."""
    end = gives_up(round)
    if end is None or now < end:
        return None
    if not _without_sandbox(round.pod or {}):
        line = _line("its images were not pulled within an hour", round, warning)
        return End(failure=Failure.ImagePull, line=line)
    minutes = _START_PATIENCE // timedelta(minutes=1)
    failure = Failure.VolumeInUse if IN_USE.search(warning) else Failure.NotStarted
    return End(failure=failure, line=_line(f"its containers were not started within {minutes} minutes", round, warning))


def _line(what: str, round: RoundJob, warning: str) -> str:
    node = f" on {round.node}" if round.node else ""
    return f"{what}{node}: {warning or 'no reason was reported'}"


def _without_sandbox(pod: Object) -> bool:
    """Whether the pod waits for volumes or network, or was not even acknowledged by the kubelet."""
    status = pod.get("status", {})
    ready = next((c["status"] for c in status.get("conditions", ()) if c["type"] == SANDBOX), None)
    return ready == "False" or (ready is None and "startTime" not in status)
