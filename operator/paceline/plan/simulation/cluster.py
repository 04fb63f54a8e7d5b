"""The objects of a simulated cluster, stored as in an API server."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from paceline.core.manifest import Manifest, Object
from paceline.kube.difference import needs_apply, stamped
from paceline.plan.objects import owned_by
from paceline.plan.step import timestamp
from paceline.render.group import GROUPS

Handle = tuple[str, str]
"""Kind and name: a simulation has one namespace."""
Admission = Callable[[Object, Manifest], Manifest | None]
"""A pod's owner and the pod → the pod after the admission webhooks; None if they refuse it."""

ROUND = "BenchmarkRound"
SERVERS = ("Deployment", GROUPS)
_KEPT = ("uid", "generation", "creationTimestamp")
"""Metadata set by the API server, which an apply does not change."""


def passes_admission(_owner: Object, pod: Manifest) -> Manifest:
    return pod


@dataclass(kw_only=True)
class Cluster:
    """`nodes` maps names to accelerators; only the caller advances `now`."""

    now: datetime
    nodes: Mapping[str, float]
    objects: dict[Handle, Manifest] = field(default_factory=dict)
    admit: Admission = passes_admission
    one_round_per_node: bool = True
    """Rounds' pod anti-affinity; off if one node stands for all nodes."""
    unplaced: Mapping[str, Any] = field(default_factory=dict)
    """Overrides for the condition PodScheduled of a pod that fits nowhere."""
    pulling: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Image → `state` of a container that pulls it; images without an entry are pulled at once."""
    logs: dict[str, str] = field(default_factory=dict)
    """Pod → its client's log."""
    created: int = 0

    def of(self, kind: str, **labels: str) -> list[Manifest]:
        """Objects of a kind whose labels have these values; `pool` stands for paceline.dev/pool."""
        wanted = {f"paceline.dev/{key}": value for key, value in labels.items()}
        return [
            stored
            for (stored_kind, _), stored in self.objects.items()
            if stored_kind == kind and wanted.items() <= (stored["metadata"].get("labels") or {}).items()
        ]

    def owned(self, kind: str, owner: Object) -> list[Manifest]:
        return [stored for stored in self.of(kind) if owned_by(stored, owner["metadata"].get("uid", ""))]

    def apply(self, manifest: Object) -> bool:
        """Server-side apply by the only writer of the object. False if nothing changed."""
        wanted = stamped(deepcopy(dict(manifest)))
        key = handle_of(wanted)
        current = self.objects.get(key)
        if current is None:
            self.created += 1
            uid, created_at = f"uid-{self.created}", timestamp(self.now)
            wanted["metadata"] |= {"uid": uid, "generation": 1, "creationTimestamp": created_at}
            if wanted["kind"] in SERVERS:
                wanted["spec"].setdefault("replicas", 1)
            self.objects[key] = wanted
            return True
        if not needs_apply(current, wanted):
            return False
        if wanted["kind"] == ROUND and current["spec"] != wanted["spec"]:
            raise ValueError(f"{key[1]}: a round is measured once")  # like the CRD's rule
        if wanted["kind"] in SERVERS:  # the executor hands over the number of replicas
            wanted["spec"].setdefault("replicas", current["spec"].get("replicas", 1))
            wanted["spec"] |= {"paused": True} if current["spec"].get("paused") else {}  # a field set by a person
        wanted["metadata"] |= {name: current["metadata"][name] for name in _KEPT if name in current["metadata"]}
        if current.get("spec") != wanted.get("spec"):
            wanted["metadata"]["generation"] = current["metadata"].get("generation", 0) + 1
        self.objects[key] = wanted | ({"status": current["status"]} if "status" in current else {})
        return True

    def delete(self, kind: str, name: str) -> None:
        """Delete the object and, like the garbage collector, everything that it owns."""
        deleted = self.objects.pop((kind, name))
        for key, stored in list(self.objects.items()):
            if key in self.objects and owned_by(stored, deleted["metadata"].get("uid", "")):
                self.delete(*key)


def handle_of(manifest: Object) -> Handle:
    return str(manifest["kind"]), str(manifest["metadata"]["name"])
