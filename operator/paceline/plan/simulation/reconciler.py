"""The operator in a simulated cluster: gives the planners their snapshots and carries out their actions."""

from paceline import api
from paceline.core import source_run
from paceline.core.manifest import Manifest
from paceline.plan import deployment, run
from paceline.plan.deployment.companions import PROTECTION, ROUTES
from paceline.plan.deployment.snapshot import read_deployment
from paceline.plan.objects import brings_rounds, is_suspended
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.simulation.cluster import SERVERS, Cluster, Handle, handle_of
from paceline.plan.step import Action, Adopt, Apply, Plan
from paceline.render import Settings

OURS = ("SpeculativeDeployment", "BenchmarkRun")
_OF_ANYBODY = ("PersistentVolumeClaim", *SERVERS, "Service", "HorizontalPodAutoscaler", *PROTECTION, *ROUTES)
"""Kinds of which the planner also sees foreign objects, because their names or targets matter."""
LABELLED = ("Job", "Pod", "ControllerRevision", "BenchmarkRun", "ResourceClaimTemplate")
SETTINGS = Settings(image="paceline")


def owned_handles(cluster: Cluster) -> list[Handle]:
    return [key for key in cluster.objects if key[0] in OURS]


def plan_of(cluster: Cluster, key: Handle) -> Plan:
    """The present plan for this object."""
    kind, name = key
    if kind == "BenchmarkRun":
        return run.plan(run_snapshot(cluster, name), cluster.now)
    return deployment.plan(deployment_snapshot(cluster, name), cluster.now)


def deployment_snapshot(cluster: Cluster, name: str, settings: Settings = SETTINGS) -> deployment.Snapshot:
    manifest = cluster.objects["SpeculativeDeployment", name]
    profile = cluster.objects.get(("BenchmarkProfile", api.profile_of(manifest)))
    manifest, spec, invalid, refused = read_deployment(manifest, profile, settings)
    children = {kind: tuple(cluster.of(kind)) for kind in _OF_ANYBODY} | {
        kind: tuple(cluster.of(kind, deployment=name)) for kind in LABELLED
    }
    return deployment.Snapshot(
        manifest=manifest,
        spec=spec,
        invalid=invalid,
        refused=refused,
        children=children,
        settings=settings,
        imported=tuple(filter(brings_rounds, cluster.of("BenchmarkRun"))) if settings.imported_evidence else (),
    )


def run_snapshot(cluster: Cluster, name: str, settings: Settings = SETTINGS) -> run.Snapshot:
    manifest = cluster.objects["BenchmarkRun", name]
    try:
        spec, invalid = api.run(manifest), ""
    except api.InvalidManifestError as error:
        spec, invalid = None, str(error)
    source = source_run(manifest["spec"])
    return run.Snapshot(
        manifest=manifest,
        spec=spec,
        invalid=invalid,
        jobs=tuple(
            _round(cluster, job, next(iter(cluster.owned("Pod", job)), None)) for job in cluster.owned("Job", manifest)
        ),
        namespaces=(manifest["metadata"]["namespace"],),
        suspended=is_suspended(manifest),
        settings=settings,
        objects=tuple(cluster.of("BenchmarkRound", run=name)),
        source=cluster.objects.get(("BenchmarkRun", source)),
        source_objects=tuple(cluster.of("BenchmarkRound", run=source)),
    )


def _round(cluster: Cluster, job: Manifest, pod: Manifest | None) -> RoundJob:
    return RoundJob(job=job, pod=pod, log=cluster.logs.get(pod["metadata"]["name"], "") if pod else "")


def apply_action(cluster: Cluster, action: Action) -> bool:
    """Carry out the action. False if nothing changed."""
    if isinstance(action, Apply):
        return cluster.apply(action.manifest)
    key = handle_of(action.item)
    if isinstance(action, Adopt):
        metadata = cluster.objects[key]["metadata"]
        metadata["ownerReferences"] = [*metadata.get("ownerReferences", ()), action.reference]
        return True
    cluster.delete(*key)
    return True
