"""The controller's view of the cluster: the API, a store of each child kind, and the queue of objects to reconcile."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from zlib import crc32

from paceline.controller.kinds import (
    BENCHMARK_PROFILE,
    BENCHMARK_RUN,
    HTTP_ROUTE,
    INFERENCE_POOL,
    LEADER_WORKER_SET,
    SPECULATIVE_DEPLOYMENT,
)
from paceline.controller.remade import Remade
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, RUN_LABEL
from paceline.evidence import ENVIRONMENT
from paceline.kube import UNREAD, Api, Manifest, Reflector, Resource, Store, WorkQueue, selector
from paceline.kube.reading import without_managed_fields
from paceline.kube.resources import (
    AUTOSCALER,
    CLAIM,
    CLAIM_TEMPLATE,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NETWORK_POLICY,
    POD,
    REVISION,
    SERVICE,
    version_of,
)
from paceline.plan.objects import brings_rounds
from paceline.watch import Judgement, Watched

GUARDS = (NETWORK_POLICY, DISRUPTION_BUDGET)
ROUTE_KINDS = (HTTP_ROUTE, INFERENCE_POOL)
CHILDREN: tuple[Resource, ...] = (
    JOB,
    POD,
    DEPLOYMENT,
    SERVICE,
    REVISION,
    CLAIM,
    BENCHMARK_RUN,
    LEADER_WORKER_SET,
    CLAIM_TEMPLATE,
    *GUARDS,
    *ROUTE_KINDS,
)
WATCHED = (SPECULATIVE_DEPLOYMENT, BENCHMARK_PROFILE, *CHILDREN, AUTOSCALER)
OPTIONAL = (BENCHMARK_PROFILE, LEADER_WORKER_SET, CLAIM_TEMPLATE, *GUARDS, *ROUTE_KINDS, AUTOSCALER)
"""Kinds that a cluster may lack, or not show us (a role of an older release): nothing waits for these."""
_OURS = selector(MANAGED_BY)
INDEXED = (DEPLOYMENT_LABEL, RUN_LABEL, COMPONENT_LABEL)
"""Labels by which passes select objects."""
_OF_ANYBODY = (SPECULATIVE_DEPLOYMENT, BENCHMARK_PROFILE, BENCHMARK_RUN, AUTOSCALER)
"""Kinds of which we also read objects without our label."""


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """One object to reconcile."""

    plural: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.plural}/{self.namespace}/{self.name}"


def turn_of(key: ObjectKey) -> tuple[str, str]:
    """Group of a key in the queue: one namespace's thousand objects must not block another namespace, nor its
    deployments block its runs, whose accelerators idle between rounds."""
    return key.namespace, key.plural


def phase(of: str) -> float:
    """A number from 0 to 1, fixed for each text: spreads periodic work of objects of one kind."""
    return crc32(of.encode()) % 1000 / 1000


class WatchedCluster:
    """The watched cluster: `reflectors` fill the stores and queue the owners of changed objects."""

    def __init__(self, api: Api, namespaces: tuple[str, ...] = ()) -> None:
        self.api = api
        self.namespaces = namespaces
        """The namespaces that the operator works in; empty means all."""
        self.queue: WorkQueue[ObjectKey] = WorkQueue(group=turn_of)
        self.known: set[ObjectKey] = set()
        """Known deployments: a changed claim, profile or run measured without a cluster concerns all of them in its
        namespace."""
        self.doubted: set[ObjectKey] = set()
        """Our objects whose stored version is known to be outdated: the next pass reads them."""
        self.refusals: dict[ObjectKey, Mapping[tuple[str, str], str]] = {}
        """Key → kind and name → message of each object that the API server rejected in the last pass."""
        self.unread: dict[str, datetime] = {}
        """UID of a round's pod → time since which its client's log cannot be read."""
        self.remade = Remade()
        self.watched: dict[ObjectKey, Mapping[str, Watched]] = {}
        """Deployment → pools with judged counters, from its last pass."""
        self.judgements: dict[ObjectKey, Mapping[str, Judgement]] = {}
        """Deployment → pool → judgement of its servers' counters."""
        self.reflectors: tuple[Reflector, ...] = tuple(
            Reflector(
                api,
                resource,
                namespace=namespace,
                selector="" if resource in _OF_ANYBODY else _OURS,
                prune=LEAN.get(resource, without_managed_fields),
                on_change=self._changed,
                indexed=INDEXED,
                packed=True,
                optional=resource in OPTIONAL,
                on_presence=self._wake_deployments,
            )
            for resource in WATCHED
            for namespace in namespaces or (None,)
        )

    def absent(self, namespace: str) -> frozenset[str]:
        """Kinds that the cluster lacks, or that the operator cannot list in this namespace."""
        here = [reflector for reflector in self.reflectors if reflector.namespace in (None, namespace)]
        return frozenset(reflector.resource.kind for reflector in here if reflector.absent)

    def closed(self, namespace: str | None) -> bool:
        """The namespace is gone or forbidden; objects in it are left unchanged."""
        return any(reflector.closed for reflector in self.reflectors if reflector.namespace == namespace)

    def hear(self, key: ObjectKey, version: int | None = None) -> None:
        """Queue one of our objects that may have changed, unless the store has this version or a later one: it was then
        queued when that version arrived. `version`: None if unknown."""
        if key.plural == SPECULATIVE_DEPLOYMENT.plural:
            self.known.add(key)
        if version is not None:
            stored = self.get(SPECULATIVE_DEPLOYMENT.kind, key.namespace, key.name)
            if stored is not None and version_of(stored) >= version:
                return
            self.doubted.add(key)
        self.queue.hint(key)

    def watch(self, key: ObjectKey, pools: Mapping[str, Watched]) -> None:
        """From now on judge these pools' counters, and no other pool's of this deployment."""
        self.watched.pop(key, None)
        if pools:
            self.watched[key] = pools
        self.judgements[key] = {pool: each for pool, each in self.judgements.pop(key, {}).items() if pool in pools}
        if not self.judgements[key]:
            del self.judgements[key]

    def forget(self, key: ObjectKey) -> None:
        """Drop a deleted deployment."""
        self.known.discard(key)
        self.doubted.discard(key)
        self.watch(key, {})

    def stores(self, kind: str) -> list[Store]:
        return [reflector.store for reflector in self.reflectors if reflector.resource.kind == kind]

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        return next((obj for store in self.stores(kind) if (obj := store.get(namespace, name))), None)

    def select(self, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Manifest]:
        """Objects with these labels, except those too large or too deep to read, which are not ours."""
        return [obj for store in self.stores(kind) for obj in store.select(namespace, labels) if UNREAD not in obj]

    def spaces(self, kind: str) -> tuple[str, ...]:
        """The namespaces that have objects of this kind."""
        return tuple(sorted({namespace for store in self.stores(kind) for namespace in store.namespaces}))

    def saw(self, manifest: Manifest) -> None:
        """Store the response to our own write, ahead of the watch."""
        for reflector in self.reflectors:
            if reflector.resource.kind == manifest["kind"] and reflector.namespace in (
                None,
                manifest["metadata"]["namespace"],
            ):
                reflector.store.saw(manifest)

    def _changed(self, event: str, obj: Manifest, old: Manifest | None) -> None:
        metadata = obj["metadata"]
        labels, namespace = metadata.get("labels") or {}, metadata["namespace"]
        if obj.get("kind") == SPECULATIVE_DEPLOYMENT.kind:
            self.hear(ObjectKey(SPECULATIVE_DEPLOYMENT.plural, namespace, metadata["name"]))
            return
        if obj.get("kind") == BENCHMARK_RUN.kind:
            self.queue.hint(ObjectKey(BENCHMARK_RUN.plural, namespace, metadata["name"]))
        if RUN_LABEL in labels:
            self.queue.hint(ObjectKey(BENCHMARK_RUN.plural, namespace, labels[RUN_LABEL]))
        elif DEPLOYMENT_LABEL in labels:
            self.queue.hint(ObjectKey(SPECULATIVE_DEPLOYMENT.plural, namespace, labels[DEPLOYMENT_LABEL]))
        elif (
            obj.get("kind") in (CLAIM.kind, BENCHMARK_PROFILE.kind)
            or (obj.get("kind") == AUTOSCALER.kind and _scales_anew(event, obj, old))
            or (obj.get("kind") == BENCHMARK_RUN.kind and brings_rounds(obj))
        ):
            for key in self.known:
                if key.namespace == namespace:
                    self.queue.hint(key)

    def _wake_deployments(self) -> None:
        """Queue all deployments after a kind appeared or vanished, because those that wait for it get no event."""
        for key in self.known:
            self.queue.hint(key)


def _scales_anew(event: str, autoscaler: Manifest, old: Manifest | None) -> bool:
    """Whether the autoscaler's target changed. The status changes every few seconds and does not matter here."""
    return event == "DELETED" or old is None or old["spec"] != autoscaler["spec"]


def lean_pod(pod: Manifest) -> Manifest:
    """The pod with only the node and restart policy of its spec; the rest is kilobytes per pod that no planner reads.
    If a planner needs more of a pod's spec, add it here."""
    lean = without_managed_fields(pod)
    spec = {name: lean["spec"][name] for name in ("nodeName", "restartPolicy") if name in lean.get("spec", {})}
    return lean | {"spec": spec}


def lean_job(job: Manifest) -> Manifest:
    """The Job with only `suspend` and its round's plan in its spec: the wrapper's script has nine kilobytes, and Jobs
    are kept as long as their runs."""
    lean = without_managed_fields(job)
    spec = lean.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = [
        {"name": container["name"], "env": [var for var in container.get("env") or () if var["name"] == ENVIRONMENT]}
        for container in pod.get("initContainers") or ()
    ]
    suspend = {"suspend": spec["suspend"]} if "suspend" in spec else {}
    return lean | {"spec": suspend | {"template": {"spec": {"initContainers": containers}}}}


def lean_autoscaler(autoscaler: Manifest) -> Manifest:
    """The autoscaler with only the target in its spec, and without a status."""
    lean = without_managed_fields(autoscaler)
    target = (lean.get("spec") or {}).get("scaleTargetRef") or {}
    return {name: lean[name] for name in ("apiVersion", "kind", "metadata") if name in lean} | {
        "spec": {"scaleTargetRef": target}
    }


LEAN: Mapping[Resource, Callable[[Manifest], Manifest]] = {POD: lean_pod, JOB: lean_job, AUTOSCALER: lean_autoscaler}
"""Kind → function that reduces an object for the store; other kinds are stored almost completely."""
