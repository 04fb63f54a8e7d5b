"""A simulated node's reports on its pods: running, ready or ended."""

from paceline.core.manifest import Manifest
from paceline.engines.pod_template import CONCLUDE
from paceline.plan.objects import finished
from paceline.plan.simulation.cluster import Cluster
from paceline.plan.simulation.scheduler import is_round
from paceline.plan.step import timestamp
from paceline.render.pull import COMPONENT

_READY = ("PodScheduled", "Ready")


def start_rounds(cluster: Cluster) -> bool:
    """Start every round's pod that has a node but no container status yet. False if there is none."""
    starting = [
        pod
        for pod in cluster.of("Pod")
        if is_round(pod) and "nodeName" in pod["spec"] and pod["status"].keys() <= {"phase", "conditions"}
    ]
    for pod in starting:
        running = {"running": {"startedAt": timestamp(cluster.now)}}
        names = [container["name"] for container in pod["spec"]["initContainers"]]
        pod["status"]["initContainerStatuses"] = [{"name": name, "state": running} for name in names]
    return bool(starting)


def end_pulls(cluster: Cluster) -> bool:
    """Finish every Job with a node that pulls an image. False if nothing changed."""
    jobs = [job for job in cluster.of("Job", component=COMPONENT) if not finished(job)]
    changes = [
        _pull(cluster, job, pod) for job in jobs for pod in cluster.owned("Pod", job) if "nodeName" in pod["spec"]
    ]
    return any(changes)


def _pull(cluster: Cluster, job: Manifest, pod: Manifest) -> bool:
    state = cluster.pulling.get(pod["spec"]["containers"][0]["image"])
    if state is None:
        end_job(cluster, job, COMPONENT, 0, "")
        return True
    before, shown = pod["status"].get("containerStatuses"), [{"name": COMPONENT, "state": dict(state)}]
    pod["status"]["containerStatuses"] = shown
    return bool(before != shown)


def mark_ready(pod: Manifest) -> None:
    """The pod's server answers its readiness probe."""
    pod["status"] = {"phase": "Running", "conditions": [{"type": kind, "status": "True"} for kind in _READY]}


def end_job(cluster: Cluster, job: Manifest, container: str, exit_code: int, message: str) -> None:
    """End the Job and its pod, with the termination message of the decisive container; of a successful round `message`
    is the client's log."""
    (pod,) = cluster.owned("Pod", job)
    if container == CONCLUDE and not exit_code:
        cluster.logs[pod["metadata"]["name"]], message = message, ""
    state = {"terminated": {"exitCode": exit_code, "message": message}}
    before = [one["name"] for one in pod["spec"].get("initContainers", ())]
    kind = "initContainerStatuses" if container in before else "containerStatuses"
    pod["status"] |= {"phase": "Failed" if exit_code else "Succeeded", kind: [{"name": container, "state": state}]}
    failed = {
        "type": "Failed",
        "reason": "BackoffLimitExceeded",
        "message": "Job has reached the specified backoff limit",
    }
    outcome = failed if exit_code else {"type": "Complete"}
    job["status"] = {"conditions": [{**outcome, "status": "True", "lastTransitionTime": timestamp(cluster.now)}]}
