"""What the controllers of Jobs, Deployments and LeaderWorkerSets do with their pods in a simulated cluster."""

from collections.abc import Iterator

from paceline.plan.objects import Object, finished
from paceline.plan.simulation import kubelet, scheduler
from paceline.plan.simulation.cluster import SERVERS, Cluster
from paceline.plan.step import Manifest
from paceline.render.serving import REVISION_LABEL


def step(cluster: Cluster) -> bool:
    """Pods are made, replaced, placed and started, then counted. False if nothing changed."""
    changes = [
        *[_make_job_pod(cluster, job) for job in cluster.of("Job")],
        *[_roll_out(cluster, servers) for servers in servers_of(cluster)],
        scheduler.place(cluster),
        kubelet.start_rounds(cluster),
        *[_report(cluster, servers) for servers in servers_of(cluster)],
    ]
    return any(changes)


def servers_of(cluster: Cluster) -> list[Manifest]:
    return [servers for kind in SERVERS for servers in cluster.of(kind)]


def revision(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def _make_job_pod(cluster: Cluster, job: Object) -> bool:
    if finished(job) or job["spec"].get("suspend") or cluster.owned("Pod", job):
        return False
    return _make_pod(cluster, job, f"{job['metadata']['name']}-pod", job["spec"]["template"])


def _roll_out(cluster: Cluster, servers: Object) -> bool:
    """No surge: a pod of another template goes before its successor comes; none does while the rollout is paused."""
    if servers["spec"].get("paused"):
        return False
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
    """False if admission refuses it."""
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
    """The pods of each replica: one of a Deployment, leader and workers of a LeaderWorkerSet."""
    groups: dict[str, list[Manifest]] = {}
    start = len(servers["metadata"]["name"]) + 1
    for name, pod in _pods_by_name(cluster, servers).items():
        groups.setdefault(name[start:].split("-")[0], []).append(pod)
    return list(groups.values())


def _templates(servers: Object) -> Iterator[tuple[str, Object]]:
    """Names and templates of the pods that there should be."""
    name, spec = servers["metadata"]["name"], servers["spec"]
    for number in range(spec.get("replicas", 1)):
        if servers["kind"] == "Deployment":
            yield f"{name}-{number}", spec["template"]
            continue
        group = spec["leaderWorkerTemplate"]
        yield f"{name}-{number}", group["leaderTemplate"]
        for worker in range(1, group["size"]):
            yield f"{name}-{number}-{worker}", group["workerTemplate"]
