"""Reads one of our objects and everything that its planner needs; no other module reads for a planner.

our own object   from its store, unless that is known to be behind. Decisions based on old versions are never written: a
                 status is applied at the version that was read, and before any other write the server is asked whether
                 it is still that version (`confirm`)
its profile      from its store: only the watch updates it, so that a pass makes no request
children         from the stores. If a store lacks a name that we are about to write, we ask the server: a store has
                 only objects with our label, and a foreign object must not be taken over
a round's pod    from the server if its Job has ended but the store's pod has not: the store may lag behind
a round's log    from the server if its client has ended but the round is not recorded: the log has the result
neighbours       from the server at the same time: other pods with GPUs on the round's node, in readable namespaces
imported runs    from the store: the namespace's runs that were measured without a cluster, if allowed
warnings         Events of objects that wait without a reason in their status (plan.trouble)
a run's rounds   from the server: they are not watched
a run's source   the run whose rounds it judges, with its rounds: from the server, until this run has measured one
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from paceline import api
from paceline.api import Reason
from paceline.api.round import belongs
from paceline.api.run_status import BenchmarkRunStatus
from paceline.controller.cluster import GUARDS, ROUTE_KINDS, ObjectKey, WatchedCluster
from paceline.controller.kinds import (
    BENCHMARK_PROFILE,
    BENCHMARK_ROUND,
    BENCHMARK_RUN,
    HTTP_ROUTE,
    INFERENCE_POOL,
    LEADER_WORKER_SET,
    RECONCILED_KINDS,
    SPECULATIVE_DEPLOYMENT,
)
from paceline.controller.warnings import warnings
from paceline.core import DeploymentSpec, RunSpec, source_run
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, RUN_LABEL, child_name
from paceline.core.record import kept_status
from paceline.engines.pod_template import CLIENT
from paceline.kube import UNREAD, ApiError, Conflict, Forbidden, Manifest, NotFound, Ref, Resource, ref_of
from paceline.kube.resources import (
    AUTOSCALER,
    CLAIM,
    CLAIM_TEMPLATE,
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NETWORK_POLICY,
    POD,
    REVISION,
    SERVICE,
    version_of,
)
from paceline.plan import deployment, run
from paceline.plan.deployment.models import config_maps
from paceline.plan.deployment.snapshot import SpecRead, read_deployment
from paceline.plan.objects import brings_rounds, finished, is_suspended, owned_by
from paceline.plan.run.ends import may_have_result
from paceline.plan.run.neighbours import neighbours
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.trouble import waiting
from paceline.render import Settings, group_name

LOG_PATIENCE = timedelta(minutes=10)
"""Longer than a kubelet's restart, and than a lost node keeps its pods."""


async def gather_deployment(
    cluster: WatchedCluster, key: ObjectKey, settings: Settings, now: datetime
) -> deployment.Snapshot | None:
    """The snapshot of a deployment; None if it is gone: owner references remove its children."""
    manifest = await _own(cluster, SPECULATIVE_DEPLOYMENT, key)
    if manifest is None or "deletionTimestamp" in manifest["metadata"]:
        cluster.forget(key)
        return None
    manifest, spec, invalid, refused = _read(cluster, manifest, settings)
    mine = {DEPLOYMENT_LABEL: key.name}
    children = {
        resource.kind: tuple(cluster.select(resource.kind, key.namespace, mine))
        for resource in (
            *(JOB, POD, DEPLOYMENT, LEADER_WORKER_SET, SERVICE, REVISION, BENCHMARK_RUN, CLAIM_TEMPLATE),
            *GUARDS,
            *ROUTE_KINDS,
        )
    }
    children |= {CLAIM.kind: (), AUTOSCALER.kind: tuple(cluster.select(AUTOSCALER.kind, key.namespace, {}))}
    absent = cluster.absent(key.namespace)
    for ref in _needed(spec, key, settings):
        if ref.resource.kind not in absent and all(
            child["metadata"]["name"] != ref.name for child in children[ref.resource.kind]
        ):
            child = cluster.get(ref.resource.kind, key.namespace, ref.name) or await cluster.api.get(ref)
            children[ref.resource.kind] += (child,) if child else ()
    if any(_prefetch_ended(job) for job in children[JOB.kind]) and not _has_pinned(manifest):
        children[POD.kind] = tuple(await _pods(cluster, key.namespace, selector=f"{DEPLOYMENT_LABEL}={key.name}"))
    return deployment.Snapshot(
        manifest=manifest,
        spec=spec,
        invalid=invalid,
        refused=refused,
        children=children,
        settings=settings,
        absent=absent,
        warnings=await warnings(cluster, waiting(children), now),
        refusals=cluster.refusals.get(key, {}),
        imported=tuple(filter(brings_rounds, cluster.select(BENCHMARK_RUN.kind, key.namespace, {})))
        if settings.imported_evidence
        else (),
        config_maps=await _keys(cluster, key.namespace, config_maps(spec)) if spec else {},
        judgements=cluster.judgements.get(key, {}),
    )


def _has_pinned(manifest: Manifest) -> bool:
    return "volume" in ((manifest.get("status") or {}).get("internal") or {})


async def _own(cluster: WatchedCluster, resource: Resource, key: ObjectKey) -> Manifest | None:
    """The object of a pass; None if it is gone."""
    found = cluster.get(resource.kind, key.namespace, key.name)
    if found is not None and key not in cluster.doubted:
        return found
    found = await cluster.api.get(Ref(resource, key.namespace, key.name))
    cluster.doubted.discard(key)
    if found is not None:
        cluster.saw(found)
    return found


async def confirm(cluster: WatchedCluster, key: ObjectKey, manifest: Manifest) -> None:
    """Raises Conflict if the object of a pass has changed since it was read, or is gone."""
    live = await cluster.api.get(ref_of(manifest, RECONCILED_KINDS))
    if live is None or version_of(live) != version_of(manifest):
        cluster.doubted.add(key)
        raise Conflict(409, "Conflict", f"{key} has changed since it was read; it is decided again")


def _read(cluster: WatchedCluster, manifest: Manifest, settings: Settings) -> SpecRead:
    if UNREAD in manifest:
        return manifest, None, manifest[UNREAD], Reason.InvalidSpec
    namespace, name = manifest["metadata"]["namespace"], api.profile_of(manifest)
    profile = cluster.get(BENCHMARK_PROFILE.kind, namespace, name) if name else None
    return read_deployment(manifest, None if profile is None or UNREAD in profile else profile, settings)


async def _keys(cluster: WatchedCluster, namespace: str, names: tuple[str, ...]) -> dict[str, frozenset[str] | None]:
    """Name → keys of a ConfigMap; None if it does not exist, no entry if they cannot be known. Only these few are read:
    ConfigMaps are not watched."""
    keys: dict[str, frozenset[str] | None] = {}
    for name in names:
        with suppress(Forbidden):  # the role is from an older release and does not allow reading ConfigMaps
            manifest = await cluster.api.get(Ref(CONFIG_MAP, namespace, name))
            if manifest and UNREAD in manifest:
                continue  # too large to be read here; a round's pod reads it as a file
            keys[name] = frozenset({**manifest.get("data", {}), **manifest.get("binaryData", {})}) if manifest else None
    return keys


async def gather_run(cluster: WatchedCluster, key: ObjectKey, settings: Settings, now: datetime) -> run.Snapshot | None:
    manifest = await _own(cluster, BENCHMARK_RUN, key)
    if manifest is None or "deletionTimestamp" in manifest["metadata"]:
        return None
    spec, invalid = _parse(manifest)
    uid = manifest["metadata"]["uid"]
    mine = {RUN_LABEL: key.name}
    named = cluster.select(JOB.kind, key.namespace, mine)
    jobs = [job for job in named if owned_by(job, uid)]
    over, unread = finished(manifest), ""
    rounds: tuple[Manifest, ...] = ()
    try:
        rounds = () if over else await _rounds(cluster, key.namespace, key.name)
    except (Forbidden, NotFound) as error:  # the role or the CRDs are from an older release
        unread = str(error)
    recorded = {_name(one) for one in rounds if belongs(one, manifest)}
    jobs += await _missed(cluster, manifest, {_name(job) for job in jobs} | recorded)
    pods = cluster.select(POD.kind, key.namespace, mine)
    unrecorded = {} if over else {_name(job): job for job in jobs if finished(job) and _name(job) not in recorded}
    if not all(_has_ended(_pod_of(job, pods)) for job in unrecorded.values()):
        pods = await _pods(cluster, key.namespace, selector=f"{RUN_LABEL}={key.name}")
    of_jobs = [RoundJob(job=job, pod=_pod_of(job, pods)) for job in jobs]
    of_jobs = [one if over or one.name in recorded else await _with_log(cluster, one, now) for one in of_jobs]
    of_jobs = [
        replace(one, neighbours=await _neighbours(cluster, one, spec.server.accelerator.resource_name))
        if spec and one.node and one.name in unrecorded
        else one
        for one in of_jobs
    ]
    source = await _source(cluster, manifest, rounds)
    return run.Snapshot(
        manifest=manifest,
        spec=spec,
        invalid=invalid,
        jobs=tuple(of_jobs),
        namespaces=cluster.spaces(BENCHMARK_RUN.kind),
        suspended=is_suspended(manifest),
        settings=settings,
        warnings=await warnings(cluster, waiting({"Job": jobs, "Pod": pods}), now),
        objects=rounds,
        unread=unread,
        source=source,
        source_objects=await _rounds(cluster, key.namespace, source["metadata"]["name"]) if source else (),
        left=tuple(job for job in named if not job["metadata"].get("ownerReferences")),
        refusals=cluster.refusals.get(key, {}),
        absent=cluster.absent(key.namespace),
    )


async def _rounds(cluster: WatchedCluster, namespace: str, run: str) -> tuple[Manifest, ...]:
    """BenchmarkRounds are not watched: a run under way reads its own, and a finished run needs none."""
    listing = await cluster.api.list(BENCHMARK_ROUND, namespace, f"{RUN_LABEL}={run}")
    return tuple(one for one in listing.items if UNREAD not in one)


async def _source(cluster: WatchedCluster, run: Manifest, rounds: Sequence[Manifest]) -> Manifest | None:
    """The run whose rounds this one judges; read only until this run has measured a round."""
    name = source_run(run["spec"]) if isinstance(run.get("spec"), dict) else ""
    if not name or finished(run) or any(belongs(one, run) and not one["spec"].get("run") for one in rounds):
        return None
    source = await cluster.api.get(Ref(BENCHMARK_RUN, run["metadata"]["namespace"], name))
    return None if source is None or UNREAD in source else source


def _parse(manifest: Manifest) -> tuple[RunSpec | None, str]:
    """A run's spec, or else the error in it."""
    if UNREAD in manifest:
        return None, manifest[UNREAD]
    try:
        return api.run(manifest), ""
    except api.InvalidManifestError as error:
        return None, str(error)


async def _missed(cluster: WatchedCluster, run: Manifest, known: set[str]) -> list[Manifest]:
    """The Job of the last pass, if the store lacks it but the server has it: a list may lag behind, and a running round
    must not count as deleted."""
    progress = kept_status(BenchmarkRunStatus, run.get("status")).progress
    if progress is None or not progress.seen or progress.job in known:
        return []
    job = await cluster.api.get(Ref(JOB, run["metadata"]["namespace"], progress.job))
    return [job] if job and owned_by(job, run["metadata"]["uid"]) else []


async def _with_log(cluster: WatchedCluster, round: RoundJob, now: datetime) -> RoundJob:
    """The round with its client's log, if that may have a result. If the kubelet cannot be reached, passes retry for a
    while from the first failed attempt, so that rounds that ended while the operator was down are not lost at once."""
    if round.pod is None or not may_have_result(round, now):
        return round
    metadata = round.pod["metadata"]
    pod = Ref(POD, metadata["namespace"], metadata["name"])
    try:
        read = replace(round, log=await cluster.api.log(pod, CLIENT))
    except NotFound:
        read = round
    except ApiError as error:
        over = now > cluster.unread.setdefault(metadata["uid"], now) + LOG_PATIENCE
        return replace(round, unread=f"the log of its client cannot be read: {error}", given_up=over)
    cluster.unread.pop(metadata["uid"], None)
    return read


async def _neighbours(cluster: WatchedCluster, round: RoundJob, resource: str) -> tuple[str, ...]:
    pods = [
        pod
        for namespace in cluster.namespaces or (None,)
        if not cluster.closed(namespace)
        for pod in await _pods(cluster, namespace, fields=f"spec.nodeName={round.node}")
    ]
    return neighbours(round.pod, pods, resource)


async def _pods(cluster: WatchedCluster, namespace: str | None, selector: str = "", fields: str = "") -> list[Manifest]:
    """Pods from the server. Unreadable ones are omitted: we did not create them."""
    listing = await cluster.api.list(POD, namespace, selector, fields=fields)
    return [pod for pod in listing.items if UNREAD not in pod]


def _needed(spec: DeploymentSpec | None, key: ObjectKey, settings: Settings) -> Iterator[Ref]:
    """Objects that we are about to write under a name that a foreign object may have."""
    if spec is None:
        return
    if spec.cache_claim:
        yield Ref(CLAIM, key.namespace, spec.cache_claim.name)
    for pool in spec.pools:
        if spec.server.accelerator.nodes > 1:
            yield Ref(LEADER_WORKER_SET, key.namespace, group_name(key.name, pool.name))
        else:
            yield Ref(DEPLOYMENT, key.namespace, child_name(key.name, pool.name))
        yield Ref(SERVICE, key.namespace, child_name(key.name, pool.name))
        if "servers" in settings.network_policies:
            yield Ref(NETWORK_POLICY, key.namespace, child_name(key.name, pool.name))
        if spec.gateway:
            yield Ref(HTTP_ROUTE, key.namespace, child_name(key.name, pool.name))
        if pool.endpoint_picker_ref:
            yield Ref(INFERENCE_POOL, key.namespace, child_name(key.name, pool.name))
        if settings.disruption_budgets:
            yield Ref(DISRUPTION_BUDGET, key.namespace, child_name(key.name, pool.name))


def _prefetch_ended(job: Manifest) -> bool:
    return finished(job) and job["metadata"]["labels"].get(COMPONENT_LABEL) == "fetch"


def _name(one: Manifest) -> str:
    return str(one["metadata"]["name"])


def _has_ended(pod: Manifest | None) -> bool:
    """Whether the pod exists and will not change any more, so that the store is up to date."""
    return pod is not None and (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _pod_of(job: Manifest, pods: list[Manifest]) -> Manifest | None:
    return next((pod for pod in pods if owned_by(pod, job["metadata"]["uid"])), None)
