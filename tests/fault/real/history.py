"""What happened in each namespace of a real API server, as a watch beside the operators' tells it: how a case ended, in
the form that tests/fault/oracle.py compares, and all its changes in their order."""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.fault.oracle import Ending, broken_promises, ending
from tests.support.memory import Cluster
from tests.support.memory.cluster import Change, Stored

from paceline.controller.kinds import BENCHMARK_ROUND, BENCHMARK_RUN, RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.kube import Api, Manifest, Ref, Reflector, Resource, Store, ref_of
from paceline.kube.resources import (
    CLAIM,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    EVENT,
    JOB,
    NETWORK_POLICY,
    POD,
    REVISION,
    SERVICE,
    version_of,
)

OBSERVED = (
    SPECULATIVE_DEPLOYMENT,
    BENCHMARK_RUN,
    BENCHMARK_ROUND,
    JOB,
    POD,
    DEPLOYMENT,
    SERVICE,
    REVISION,
    CLAIM,
    NETWORK_POLICY,
    DISRUPTION_BUDGET,
    EVENT,
)
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
OPERATOR = "paceline.dev/operator"
ADDRESSES = ("clusterIP", "clusterIPs")
"""Of a Service: whatever was free."""


@dataclass
class Past:
    """Of one namespace."""

    changes: list[Change] = field(default_factory=list)
    objects: dict[Ref, Manifest] = field(default_factory=dict)

    def of(self, resource: Resource) -> list[Manifest]:
        """What there is of a kind now, ordered by name. Do not edit it."""
        found = [manifest for ref, manifest in self.objects.items() if ref.resource == resource]
        return sorted(found, key=lambda manifest: str(manifest["metadata"]["name"]))

    def get(self, resource: Resource, name: str) -> Manifest | None:
        return next((one for one in self.of(resource) if one["metadata"]["name"] == name), None)

    def change(self, version: int, ref: Ref, new: Manifest | None) -> None:
        old = self.objects.pop(ref, None)
        if new is not None:
            self.objects[ref] = new
        self.changes.append(Change(version, ref, old, new))

    def ending(self, namespace: str) -> Ending:
        """In words that are the same in every namespace."""
        cluster = self._cluster(lambda manifest: plain(manifest, namespace))
        cluster.changes = [replace(one, ref=replace(one.ref, namespace="models")) for one in cluster.changes]
        return ending(cluster)

    def broken_promises(self) -> list[str]:
        return broken_promises(self._cluster(lambda manifest: manifest))

    def _cluster(self, put: Callable[[Manifest], Manifest]) -> Cluster:
        cluster = Cluster(kinds=RECONCILED_KINDS)
        cluster.changes = sorted(self.changes, key=lambda change: change.version)
        cluster._objects = {ref: Stored(put(manifest)) for ref, manifest in self.objects.items()}
        return cluster


class History:
    """Of all namespaces. `on_change` is told where something has changed."""

    def __init__(self, api: Api, on_change: Callable[[str], None]) -> None:
        self.of: dict[str, Past] = defaultdict(Past)
        self.gone: set[str] = set()
        """The uid of each object that was removed."""
        self._on_change = on_change
        self.reflectors = [self._reflector(api, resource) for resource in OBSERVED]

    def _reflector(self, api: Api, resource: Resource) -> Reflector:
        reflector = Reflector(api, resource)
        reflector.store = _Told(self)
        return reflector

    def tell(self, kind: str, manifest: Manifest) -> None:
        ref = ref_of(manifest, RECONCILED_KINDS)
        assert ref.namespace is not None
        if ref.resource == EVENT and manifest.get("reportingComponent") != OPERATOR:
            return  # the API server tells of the addresses of Services
        if kind == "DELETED":
            self.gone.add(manifest["metadata"]["uid"])
        self.of[ref.namespace].change(version_of(manifest), ref, None if kind == "DELETED" else manifest)
        self._on_change(ref.namespace)


class _Told(Store):
    """Keeps nothing, and tells every event: a store would pass over the versions between two that it has seen."""

    def __init__(self, history: History) -> None:
        super().__init__(lambda manifest: manifest, lambda *_: None)
        self._history = history

    def observe(self, kind: str, manifest: Manifest) -> None:
        self.version = max(self.version, version_of(manifest))
        if kind != "BOOKMARK":
            self._history.tell(kind, manifest)


def plain(manifest: Manifest, namespace: str) -> Manifest:
    """Without what no two namespaces have in common."""
    spec = {key: value for key, value in (manifest.get("spec") or {}).items() if key not in ADDRESSES}
    text = json.dumps(manifest | ({"spec": spec} if spec else {}))
    found: Manifest = json.loads(UID.sub("UID", text.replace(namespace, "models")))
    return found
