"""Shared by all builders."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core.manifest import Manifest
from paceline.core.names import MANAGED_BY

API_VERSION = "paceline.dev/v1alpha1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the installation: our image, priority classes, and defaults for pods."""

    image: str
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[str, ...] = ()
    """Pull secrets for our image, in the namespaces of rounds and prefetches."""
    server_priority_class: str | None = None
    benchmark_priority_class: str | None = None
    fetch_env: tuple[Mapping[str, Any], ...] = ()
    """Variables of the prefetch; a resource's own take precedence."""
    ca_bundle: tuple[str, str] | None = None
    """ConfigMap and key of the certificates that the prefetch trusts, in its namespace."""
    resources: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    """`requests` and `limits` of the containers `server`, `client` and `fetch`."""
    server_security: Mapping[str, Any] = field(default_factory=dict)
    """securityContext of the server's container."""
    server_pod_security: Mapping[str, Any] = field(default_factory=dict)
    """securityContext of its pod."""
    network_policies: frozenset[str] = frozenset()
    """`servers`, `rounds` or both: the pods that get network policies."""
    disruption_budgets: bool = False
    """Whether a drain takes a pool's servers one at a time."""
    imported_evidence: bool = False
    """Whether rounds that were measured without a cluster count as evidence."""
    signers: Mapping[str, str] = field(default_factory=dict)
    """Name → public key in PEM: whose signature such rounds need. Empty: none is needed."""
    profile_required: frozenset[str] = frozenset()
    """Namespaces in which a deployment must name a BenchmarkProfile; `*` for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The resource to which a child belongs."""

    kind: str
    name: str
    namespace: str
    uid: str
    deployment: str = ""
    """The uid of the SpeculativeDeployment that made this run."""

    @property
    def reference(self) -> Manifest:
        """blockOwnerDeletion stays false, because it needs permission to update the owner's finalizers."""
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
