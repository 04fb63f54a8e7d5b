"""All reading, in one place: an object of ours and everything its planner looks at.

our own object   read from the server on every pass: status is what was decided last, and must not be stale. Not that
                 of a run that has ended: it changes no more
children         from the stores; what the stores do not have under a name that we need is asked for once more,
                 because a store holds only what carries our label, and a stranger's object must not be taken over
a round's pod    asked for when its Job has ended and the result is not yet recorded: the store may lag behind
what waits       asked for its Events, where it does not say itself why it waits (plan.silence)
its neighbours   asked for then too: other pods with accelerators on its node, in the namespaces that we may look into
a run's source   the run whose rounds it is to judge: read from the server while it has none itself
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from paceline import api
from paceline.controller.cluster import GUARDS, Cluster, Key
from paceline.controller.kinds import BENCHMARK_RUN, LEADER_WORKER_SET, SPECULATIVE_DEPLOYMENT
from paceline.controller.warnings import warnings
from paceline.core import DeploymentSpec, RunSpec
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, RUN_LABEL, child_name
from paceline.kube import UNREAD, Forbidden, Manifest, Ref
from paceline.kube.resources import (
    CLAIM,
    CONFIG_MAP,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NETWORK_POLICY,
    POD,
    REVISION,
    SERVICE,
)
from paceline.plan import deployment, run
from paceline.plan.deployment.prompts import config_maps
from paceline.plan.objects import finished, owned_by, suspended
from paceline.plan.run.neighbours import neighbours
from paceline.plan.run.snapshot import Round
from paceline.plan.silence import waiting
from paceline.render import Settings, group_name

Spec = TypeVar("Spec", bound=DeploymentSpec | RunSpec)


async def gather_deployment(
    cluster: Cluster, key: Key, settings: Settings, now: datetime
) -> deployment.Snapshot | None:
    """None once the object is gone: its children go by their owner references."""
    manifest = await cluster.api.get(Ref(SPECULATIVE_DEPLOYMENT, key.namespace, key.name))
    if manifest is None or "deletionTimestamp" in manifest["metadata"]:
        cluster.known.discard(key)
        return None
    spec, invalid = _understood(api.deployment, manifest)
    mine = {DEPLOYMENT_LABEL: key.name}
    children = {
        resource.kind: tuple(cluster.select(resource.kind, key.namespace, mine))
        for resource in (JOB, POD, DEPLOYMENT, LEADER_WORKER_SET, SERVICE, REVISION, BENCHMARK_RUN, *GUARDS)
    }
    children |= {CLAIM.kind: ()}
    absent = cluster.absent(key.namespace)
    for ref in _needed(spec, key, settings):
        if ref.resource.kind not in absent and all(
            child["metadata"]["name"] != ref.name for child in children[ref.resource.kind]
        ):
            found = cluster.get(ref.resource.kind, key.namespace, ref.name) or await cluster.api.get(ref)
            children[ref.resource.kind] += (found,) if found else ()
    if any(_prefetch_ended(job) for job in children[JOB.kind]) and "modelsHash" not in (manifest.get("status") or {}):
        children[POD.kind] = tuple(await _pods(cluster, key.namespace, selector=f"{DEPLOYMENT_LABEL}={key.name}"))
    return deployment.Snapshot(
        manifest=manifest,
        spec=spec,
        invalid=invalid,
        children=children,
        settings=settings,
        absent=absent,
        warnings=await warnings(cluster, waiting(children), now),
        refusals=cluster.refusals.get(key, {}),
        config_maps=await _keys(cluster, key.namespace, config_maps(spec)) if spec else {},
    )


async def _keys(cluster: Cluster, namespace: str, names: tuple[str, ...]) -> dict[str, frozenset[str] | None]:
    """Of ConfigMaps. Nobody watches them: of the cluster's, these are the few that hold prompts."""
    found: dict[str, frozenset[str] | None] = {}
    for name in names:
        with suppress(Forbidden):  # rights of an older release
            manifest = await cluster.api.get(Ref(CONFIG_MAP, namespace, name))
            found[name] = (
                frozenset({**manifest.get("data", {}), **manifest.get("binaryData", {})}) if manifest else None
            )
    return found


async def gather_run(cluster: Cluster, key: Key, settings: Settings, now: datetime) -> run.Snapshot | None:
    manifest = cluster.get(BENCHMARK_RUN.kind, key.namespace, key.name)
    if manifest is None or not finished(manifest):  # what has ended changes no more: thousands of them are kept
        manifest = await cluster.api.get(Ref(BENCHMARK_RUN, key.namespace, key.name))
    if manifest is None or "deletionTimestamp" in manifest["metadata"]:
        return None
    spec, invalid = _understood(api.run, manifest)
    uid = manifest["metadata"]["uid"]
    mine = {RUN_LABEL: key.name}
    jobs = [job for job in cluster.select(JOB.kind, key.namespace, mine) if owned_by(job, uid)]
    status = manifest.get("status") or {}
    recorded = {record["job"] for record in status.get("rounds", ())}
    jobs += await _missed(cluster, manifest, {job["metadata"]["name"] for job in jobs} | recorded)
    pods = cluster.select(POD.kind, key.namespace, mine)
    if any(finished(job) and job["metadata"]["name"] not in recorded for job in jobs):
        pods = await _pods(cluster, key.namespace, selector=f"{RUN_LABEL}={key.name}")
    rounds = [Round(job=job, pod=_pod_of(job, pods)) for job in jobs]
    rounds = [
        replace(one, neighbours=await _neighbours(cluster, one, spec.server.accelerator.resource_name))
        if spec and one.node and one.ended and one.name not in recorded
        else one
        for one in rounds
    ]
    return run.Snapshot(
        manifest=manifest,
        spec=spec,
        invalid=invalid,
        rounds=tuple(rounds),
        namespaces=cluster.spaces(BENCHMARK_RUN.kind),
        suspended=suspended(manifest),
        settings=settings,
        warnings=await warnings(cluster, waiting({"Job": jobs, "Pod": pods}), now),
        source=await _source(cluster, manifest),
        refusals=cluster.refusals.get(key, {}),
    )


async def _source(cluster: Cluster, run: Manifest) -> Manifest | None:
    """The run whose rounds are to be judged by this one; only asked for while it has none in status."""
    name = run["spec"].get("roundsOf") if isinstance(run.get("spec"), dict) else None
    if not name or "rounds" in (run.get("status") or {}):
        return None
    found = await cluster.api.get(Ref(BENCHMARK_RUN, run["metadata"]["namespace"], name))
    return None if found is None or UNREAD in found else found


def _understood(read: Callable[[Manifest], Spec], manifest: Manifest) -> tuple[Spec | None, str]:
    """The spec, or what is wrong with it."""
    if UNREAD in manifest:
        return None, manifest[UNREAD]
    try:
        return read(manifest), ""
    except api.InvalidManifestError as error:
        return None, str(error)


async def _missed(cluster: Cluster, run: Manifest, known: set[str]) -> list[Manifest]:
    """The Job that was there when the run was last looked at, if the store alone has lost it: a list may be behind, and
    a round is not to be taken for deleted that goes on."""
    progress = (run.get("status") or {}).get("progress", {})
    if not progress.get("seen") or progress.get("job", "") in known:
        return []
    found = await cluster.api.get(Ref(JOB, run["metadata"]["namespace"], progress["job"]))
    return [found] if found and owned_by(found, run["metadata"]["uid"]) else []


async def _neighbours(cluster: Cluster, one: Round, resource: str) -> tuple[str, ...]:
    found = [
        pod
        for namespace in cluster.namespaces or (None,)
        if not cluster.closed(namespace)
        for pod in await _pods(cluster, namespace, fields=f"spec.nodeName={one.node}")
    ]
    return neighbours(one.pod, found, resource)


async def _pods(cluster: Cluster, namespace: str | None, selector: str = "", fields: str = "") -> list[Manifest]:
    """As they are now; what cannot be read of them is none of ours."""
    listing = await cluster.api.list(POD, namespace, selector, fields=fields)
    return [pod for pod in listing.items if UNREAD not in pod]


def _needed(spec: DeploymentSpec | None, key: Key, settings: Settings) -> Iterator[Ref]:
    """Names that we are going to write and that somebody else may hold."""
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
        if settings.disruption_budgets:
            yield Ref(DISRUPTION_BUDGET, key.namespace, child_name(key.name, pool.name))


def _prefetch_ended(job: Manifest) -> bool:
    return finished(job) and job["metadata"]["labels"].get(COMPONENT_LABEL) == "fetch"


def _pod_of(job: Manifest, pods: list[Manifest]) -> Manifest | None:
    return next((pod for pod in pods if owned_by(pod, job["metadata"]["uid"])), None)
