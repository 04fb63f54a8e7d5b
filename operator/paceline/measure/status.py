"""The status of a round's Job and pod, as a cluster would report the fate of its processes. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from paceline.core.manifest import Manifest
from paceline.engines.pod_template import CONCLUDE
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.step import timestamp

FAILED_CONDITION = {"reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}
_LATE = {"reason": "DeadlineExceeded", "message": "Pod was active on the node longer than the specified deadline"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerEnd:
    """Exit code and last output of a container."""

    code: int
    message: str


def running_pod(job: Manifest, node: str, began: datetime) -> RoundJob:
    """The round while its arms run."""
    names = [container["name"] for container in job["spec"]["template"]["spec"]["initContainers"]]
    running = {"running": {"startedAt": timestamp(began)}}
    status = {
        "phase": "Pending",
        "initContainerStatuses": [{"name": name, "state": running} for name in names],
        **_placed(began),
    }
    return RoundJob(job={**job, "status": {}}, pod=_pod(job, node, status))


def over(
    job: Manifest,
    node: str,
    began: datetime,
    ended: datetime,
    how: Mapping[str, ContainerEnd],
    log: str,
    *,
    late: bool = False,
) -> RoundJob:
    """The round after its containers have ended. `log` is the client's; `late`: activeDeadlineSeconds had passed."""
    good = not late and CONCLUDE in how and not how[CONCLUDE].code
    outcome = {"type": "Complete"} if good else {"type": "Failed", **(_LATE if late else FAILED_CONDITION)}
    states = [{"name": name, "state": {"terminated": _terminated(one, began, ended)}} for name, one in how.items()]
    status = {
        "phase": "Succeeded" if good else "Failed",
        "initContainerStatuses": [state for state in states if state["name"] != CONCLUDE],
        "containerStatuses": [state for state in states if state["name"] == CONCLUDE],
        **_placed(began),
        **(_LATE if late else {}),
    }
    condition = {**outcome, "status": "True", "lastTransitionTime": timestamp(ended)}
    return RoundJob(job={**job, "status": {"conditions": [condition]}}, pod=_pod(job, node, status), log=log)


def _terminated(one: ContainerEnd, began: datetime, ended: datetime) -> Manifest:
    return {
        "exitCode": one.code,
        "reason": "Error" if one.code else "Completed",
        "message": one.message,
        "startedAt": timestamp(began),
        "finishedAt": timestamp(ended),
    }


def _placed(began: datetime) -> Manifest:
    at = timestamp(began)
    return {"startTime": at, "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}]}


def _pod(job: Manifest, node: str, status: Manifest) -> Manifest:
    name = job["metadata"]["name"]
    metadata = {"name": name, "namespace": job["metadata"]["namespace"], "uid": name}
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}, "status": status}
