"""A round that has its node, and so its accelerators, but whose containers do not start."""

import re
from datetime import datetime, timedelta

from paceline.evidence.failures import Failure
from paceline.plan.objects import Object
from paceline.plan.run.snapshot import End, Round
from paceline.plan.step import parse_time

START_PATIENCE = timedelta(minutes=10)
"""Until a pod's volumes and network are there. A volume of a node that was lost is let go of after six minutes
(kube-controller-manager's maxWaitForUnmountDuration), and then attached."""
IMAGES_PATIENCE = timedelta(hours=1)
"""Until its images are there: an engine's has tens of gigabytes."""
SANDBOX = "PodReadyToStartContainers"
"""Condition of a pod whose volumes and network are there (Kubernetes 1.29; before, nobody says so): what it waits for
then are images."""
IN_USE = re.compile(r"Multi-Attach|already (?:exclusively )?(?:attached|used)|volume is in use", re.IGNORECASE)
"""In the words of the attach/detach controller and of CSI drivers: somebody else's pod has it, and will end."""


def placed_since(pod: Object) -> datetime | None:
    """Since when accelerators are kept for it: since it has its node, or since that has taken note of it where the
    scheduler does not say."""
    said = pod.get("status", {})
    placed = [c for c in said.get("conditions", ()) if c["type"] == "PodScheduled" and c["status"] == "True"]
    times = [said.get("startTime"), *(c.get("lastTransitionTime") for c in placed)]
    return min((parse_time(time) for time in times if time), default=None)


def gives_up(round: Round) -> datetime | None:
    """When it is hopeless; None for one that has started, or that has no node."""
    pod = round.pod or {}
    began = placed_since(pod)
    if began is None or not round.waits_to_start:
        return None
    return began + (START_PATIENCE if _without_sandbox(pod) else IMAGES_PATIENCE)


def hopeless_start(round: Round, said: str, now: datetime) -> End | None:
    end = gives_up(round)
    if end is None or now < end:
        return None
    pod = round.pod or {}
    if not _without_sandbox(pod):
        return End(failure=Failure.ImagePull, line=_line("its images were not there within an hour", round, said))
    minutes = START_PATIENCE // timedelta(minutes=1)
    failure = Failure.VolumeInUse if IN_USE.search(said) else Failure.NotStarted
    return End(failure=failure, line=_line(f"its containers were not started within {minutes} minutes", round, said))


def _line(what: str, round: Round, said: str) -> str:
    node = f" on {round.node}" if round.node else ""
    return f"{what}{node}: {said or 'no reason was reported'}"


def _without_sandbox(pod: Object) -> bool:
    """It waits for volumes or its network, or the kubelet has not even taken note of it."""
    said = pod.get("status", {})
    ready = next((c["status"] for c in said.get("conditions", ()) if c["type"] == SANDBOX), None)
    return ready == "False" or (ready is None and "startTime" not in said)
