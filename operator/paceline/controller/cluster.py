"""What the controller knows of the cluster: the API, a store of each child kind, and the queue of what to look at."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paceline.controller.kinds import BENCHMARK_RUN, LEADER_WORKER_SET, SPECULATIVE_DEPLOYMENT
from paceline.core.names import DEPLOYMENT_LABEL, MANAGED_BY, RUN_LABEL
from paceline.evidence import ENVIRONMENT
from paceline.kube import UNREAD, Api, Manifest, Reflector, Resource, Store, WorkQueue, selector
from paceline.kube.reading import without_managed_fields
from paceline.kube.resources import (
    CLAIM,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    JOB,
    NETWORK_POLICY,
    POD,
    REVISION,
    SERVICE,
)

GUARDS = (NETWORK_POLICY, DISRUPTION_BUDGET)
CHILDREN: tuple[Resource, ...] = (
    JOB,
    POD,
    DEPLOYMENT,
    SERVICE,
    REVISION,
    CLAIM,
    BENCHMARK_RUN,
    LEADER_WORKER_SET,
    *GUARDS,
)
OPTIONAL = (LEADER_WORKER_SET, *GUARDS)
"""Kinds that a cluster may lack, or not show us (a role of an older release): nothing waits for them."""
OURS = selector(MANAGED_BY)


@dataclass(frozen=True, slots=True)
class Key:
    """One object to reconcile."""

    plural: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.plural}/{self.namespace}/{self.name}"


class Cluster:
    """Stores are filled by `reflectors`, whose changes put the owners' keys into `queue`."""

    def __init__(self, api: Api, namespaces: tuple[str, ...] = ()) -> None:
        self.api = api
        self.namespaces = namespaces
        """That we may look into; none named: all of them."""
        self.queue: WorkQueue[Key] = WorkQueue()
        self.known: set[Key] = set()
        """Deployments heard of: a claim that changes concerns all of them in its namespace."""
        self.refusals: dict[Key, Mapping[tuple[str, str], str]] = {}
        """What the API server refused in the last pass of an object of ours: by kind and name, in its words."""
        self.reflectors: tuple[Reflector, ...] = tuple(
            Reflector(
                api,
                resource,
                namespace=namespace,
                selector="" if resource is BENCHMARK_RUN else OURS,
                prune=LEAN.get(resource, without_managed_fields),
                on_change=self._changed,
                optional=resource in OPTIONAL,
                on_presence=self._wake_deployments,
            )
            for resource in CHILDREN
            for namespace in namespaces or (None,)
        )

    def absent(self, namespace: str) -> frozenset[str]:
        """Kinds that the cluster does not know, or does not show us in this namespace."""
        seen_here = [one for one in self.reflectors if one.namespace in (None, namespace)]
        return frozenset(one.resource.kind for one in seen_here if one.absent)

    def closed(self, namespace: str | None) -> bool:
        """The namespace is gone, or we may not look into it: what is there of ours is left alone."""
        return any(one.closed for one in self.reflectors if one.namespace == namespace)

    def hear(self, key: Key) -> None:
        """Something may have happened to this object of ours."""
        if key.plural == SPECULATIVE_DEPLOYMENT.plural:
            self.known.add(key)
        self.queue.add(key)

    def stores(self, kind: str) -> list[Store]:
        return [reflector.store for reflector in self.reflectors if reflector.resource.kind == kind]

    def get(self, kind: str, namespace: str, name: str) -> Manifest | None:
        return next((found for store in self.stores(kind) if (found := store.get(namespace, name))), None)

    def select(self, kind: str, namespace: str | None, labels: Mapping[str, str]) -> list[Manifest]:
        """What has been left unread, because it is too large or too deep, is nothing that we made."""
        return [
            found for store in self.stores(kind) for found in store.select(namespace, labels) if UNREAD not in found
        ]

    def spaces(self, kind: str) -> tuple[str, ...]:
        """The namespaces that have objects of this kind."""
        return tuple(sorted({namespace for store in self.stores(kind) for namespace in store.namespaces}))

    def saw(self, manifest: Manifest) -> None:
        """The answer to an own write, ahead of the watch."""
        for reflector in self.reflectors:
            if reflector.resource.kind == manifest["kind"] and reflector.namespace in (
                None,
                manifest["metadata"]["namespace"],
            ):
                reflector.store.saw(manifest)

    def _changed(self, event: str, found: Manifest, old: Manifest | None) -> None:
        metadata = found["metadata"]
        labels, namespace = metadata.get("labels") or {}, metadata["namespace"]
        if found.get("kind") == BENCHMARK_RUN.kind:
            self.queue.add(Key(BENCHMARK_RUN.plural, namespace, metadata["name"]))
        if RUN_LABEL in labels:
            self.queue.add(Key(BENCHMARK_RUN.plural, namespace, labels[RUN_LABEL]))
        elif DEPLOYMENT_LABEL in labels:
            self.queue.add(Key(SPECULATIVE_DEPLOYMENT.plural, namespace, labels[DEPLOYMENT_LABEL]))
        elif found.get("kind") == CLAIM.kind:
            for key in self.known:
                if key.namespace == namespace:
                    self.queue.add(key)

    def _wake_deployments(self) -> None:
        """A kind has come or gone: who waits for it has no event of their own."""
        for key in self.known:
            self.queue.add(key)


def lean_pod(pod: Manifest) -> Manifest:
    """The pod with only the node and restart policy of its spec; the rest is kilobytes per pod that no planner reads. A
    planner that reads more of a pod's spec must have it added here."""
    lean = without_managed_fields(pod)
    spec = {name: lean["spec"][name] for name in ("nodeName", "restartPolicy") if name in lean.get("spec", {})}
    return lean | {"spec": spec}


def lean_job(job: Manifest) -> Manifest:
    """Of a Job's spec, whether somebody holds it back and what its round was asked: the wrapper's script alone has
    nine kilobytes, and Jobs are kept as long as their runs."""
    lean = without_managed_fields(job)
    spec = lean.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = [
        {"name": one["name"], "env": [said for said in one.get("env") or () if said["name"] == ENVIRONMENT]}
        for one in pod.get("containers") or ()
    ]
    held = {"suspend": spec["suspend"]} if "suspend" in spec else {}
    return lean | {"spec": held | {"template": {"spec": {"containers": containers}}}}


LEAN: Mapping[Resource, Callable[[Manifest], Manifest]] = {POD: lean_pod, JOB: lean_job}
"""Kind → what the store keeps of it, where that is not nearly all."""
