"""The controllers of Jobs, Deployments and LeaderWorkerSets in a simulated cluster."""

from collections.abc import Iterator, Sequence
from itertools import count

from paceline.core.manifest import Manifest, Object
from paceline.plan.objects import finished
from paceline.plan.simulation import kubelet, scheduler
from paceline.plan.simulation.cluster import SERVERS, Cluster
from paceline.render.serving import REVISION_LABEL


def step(cluster: Cluster) -> bool:
    """Create, replace, place and start pods, then count them. False if nothing changed."""
    changes = [
        *[_make_job_pod(cluster, job) for job in cluster.of("Job")],
        *[_roll_out(cluster, servers) for servers in workloads_of(cluster)],
        scheduler.schedule_pods(cluster),
        kubelet.start_rounds(cluster),
        kubelet.end_pulls(cluster),
        *[_report(cluster, servers) for servers in workloads_of(cluster)],
    ]
    return any(changes)


def workloads_of(cluster: Cluster) -> list[Manifest]:
    return [servers for kind in SERVERS for servers in cluster.of(kind)]


def revision(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _make_job_pod(cluster: Cluster, job: Object) -> bool:
    if finished(job) or job["spec"].get("suspend") or cluster.owned("Pod", job):
        return False
    return _make_pod(cluster, job, f"{job['metadata']['name']}-pod", job["spec"]["template"])


def _roll_out(cluster: Cluster, servers: Object) -> bool:
    """Replace pods by those of the present template, unless the rollout is paused."""
    if servers["spec"].get("paused"):
        return False
    return _replace_pods(cluster, servers) if servers["kind"] == "Deployment" else _replace_groups(cluster, servers)


def _replace_pods(cluster: Cluster, servers: Object) -> bool:
    """With surge, as a Deployment with maxSurge 1 and maxUnavailable 0 does (Kubernetes,
    pkg/controller/deployment/rolling.go): there is at most one pod more than requested, and an old pod is deleted only
    for a ready new one, or if it is not ready itself. In place, all old ones are deleted at once."""
    template, asked = servers["spec"]["template"], servers["spec"].get("replicas", 1)
    more = servers["spec"].get("strategy", {}).get("rollingUpdate", {}).get("maxSurge", 0)
    pods = list(_pods_by_name(cluster, servers).values())
    new = [pod for pod in pods if revision(pod) == revision(template)]
    old = sorted((pod for pod in pods if pod not in new), key=_is_ready)
    gone = [*sorted(new, key=_first_to_stay)[asked:], *(_replaced(old, new, asked) if more else old)]
    for pod in gone:
        cluster.delete("Pod", pod["metadata"]["name"])
    missing = min(asked + more - len(pods) + len(gone), asked - len(new))
    made = [_make_pod(cluster, servers, _free_name(cluster, servers), template) for _ in range(missing)]
    return bool(gone) or any(made)


def _replaced(old: Sequence[Manifest], new: Sequence[Manifest], asked: int) -> list[Manifest]:
    """The pods of `old` to delete, unready ones first, so that at most one pod more than `asked` exists."""
    ready = sum(map(_is_ready, (*old, *new)))
    spare = len(old) + len(new) - asked - sum(not _is_ready(pod) for pod in new)
    unready = [pod for pod in old if not _is_ready(pod)][: max(0, spare)]
    return [*unready, *old[len(unready) :][: max(0, min(spare - len(unready), ready - asked))]]


def _first_to_stay(pod: Object) -> tuple[bool, str]:
    """Sort key: if there are too many pods, those without a node are deleted first, then the newest."""
    return "nodeName" not in pod["spec"], pod["metadata"]["name"]


def _is_ready(pod: Object) -> bool:
    return bool(pod["status"]["phase"] == "Running")


def _free_name(cluster: Cluster, servers: Object) -> str:
    name, taken = servers["metadata"]["name"], _pods_by_name(cluster, servers)
    return next(free for number in count() if (free := f"{name}-{number}") not in taken)


def _replace_groups(cluster: Cluster, servers: Object) -> bool:
    """A group with another template is deleted before its successor is created."""
    wanted = dict(_templates(servers))
    outdated = [
        name
        for name, pod in _pods_by_name(cluster, servers).items()
        if name not in wanted or revision(pod) != revision(wanted[name])
    ]
    for name in outdated:
        cluster.delete("Pod", name)
    kept = _pods_by_name(cluster, servers)
    made = [_make_pod(cluster, servers, name, wanted[name]) for name in wanted if name not in kept]
    return bool(outdated) or any(made)


def _make_pod(cluster: Cluster, owner: Object, name: str, template: Object) -> bool:
    """Create the pod. False if admission refuses it."""
    metadata = owner["metadata"]
    job = {"batch.kubernetes.io/job-name": metadata["name"]} if owner["kind"] == "Job" else {}
    pod = cluster.admit(
        owner,
        {
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": metadata.get("namespace", ""),
                "labels": {**template["metadata"]["labels"], **job},
                "ownerReferences": [{"kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}],
            },
            "spec": template["spec"],
        },
    )
    if pod is None:
        return False
    cluster.apply(pod)
    cluster.objects["Pod", name]["status"] = {"phase": "Pending"}
    return True


def _report(cluster: Cluster, servers: Manifest) -> bool:
    wanted, groups = {revision(template) for _, template in _templates(servers)}, _groups(cluster, servers)
    status = {
        "observedGeneration": servers["metadata"].get("generation", 1),
        "replicas": len(groups),
        "updatedReplicas": sum(set(map(revision, pods)) <= wanted for pods in groups),
        "readyReplicas": sum(all(pod["status"]["phase"] == "Running" for pod in pods) for pods in groups),
    }
    changed = not status.items() <= servers.get("status", {}).items()
    servers["status"] = status
    return changed


def _pods_by_name(cluster: Cluster, servers: Object) -> dict[str, Manifest]:
    return {pod["metadata"]["name"]: pod for pod in cluster.owned("Pod", servers)}


def _groups(cluster: Cluster, servers: Object) -> list[list[Manifest]]:
    """The pods of each replica: one for a Deployment, leader and workers for a LeaderWorkerSet."""
    groups: dict[str, list[Manifest]] = {}
    start = len(servers["metadata"]["name"]) + 1
    for name, pod in _pods_by_name(cluster, servers).items():
        groups.setdefault(name[start:].split("-")[0], []).append(pod)
    return list(groups.values())


def _templates(servers: Object) -> Iterator[tuple[str, Object]]:
    """Names and templates of the desired pods."""
    name, spec = servers["metadata"]["name"], servers["spec"]
    for number in range(spec.get("replicas", 1)):
        if servers["kind"] == "Deployment":
            yield f"{name}-{number}", spec["template"]
            continue
        group = spec["leaderWorkerTemplate"]
        yield f"{name}-{number}", group["leaderTemplate"]
        for worker in range(1, group["size"]):
            yield f"{name}-{number}-{worker}", group["workerTemplate"]
