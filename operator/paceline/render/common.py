"""What all builders share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core.manifest import Manifest
from paceline.core.names import MANAGED_BY

API_VERSION = "paceline.dev/v1alpha1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator's own installation decides: our image, who gives way to whom, and what its pods have where the
    user says nothing."""

    image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    """For our image: of rounds and of the prefetch, in their namespaces."""
    server_priority_class: str | None = None
    benchmark_priority_class: str | None = None
    fetch_env: tuple[Mapping[str, Any], ...] = ()
    """Of the prefetch; a resource's own wins."""
    ca_bundle: tuple[str, str] | None = None
    """ConfigMap and key of the certificates that the prefetch trusts, in its namespace."""
    resources: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """Of the containers `server`, `client` and `fetch`: `requests` and `limits`."""
    server_security: Mapping[str, Any] = field(default_factory=dict)
    """securityContext of the server's container."""
    server_pod_security: Mapping[str, Any] = field(default_factory=dict)
    """securityContext of its pod."""
    network_policies: frozenset[str] = frozenset()
    """Of `servers` and `rounds`: which of them others reach, and which reach others, is restricted."""
    disruption_budgets: bool = False
    """Whether a drain takes a pool's servers one at a time."""
    imported_evidence: bool = False
    """Whether rounds that were measured without a cluster count as evidence."""
    profile_required: frozenset[str] = frozenset()
    """Namespaces in which a deployment must name a BenchmarkProfile; `*` for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The resource that a child belongs to."""

    kind: str
    name: str
    namespace: str
    uid: str
    deployment: str = ""
    """Of a run that a SpeculativeDeployment has made: the uid of that."""

    @property
    def reference(self) -> Manifest:
        """blockOwnerDeletion stays false: it would need rights on the owner's finalizers."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }


def metadata(name: str, owner: Owner, labels: Mapping[str, str], **more: Any) -> Manifest:
    return {
        "name": name,
        "namespace": owner.namespace,
        "labels": {**MANAGED_BY, **labels},
        "ownerReferences": [owner.reference],
        **more,
    }
