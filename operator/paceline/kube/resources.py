"""Kinds, their paths, and references to single objects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

Manifest = dict[str, Any]
"""A Kubernetes object as in the API: plain dicts, lists, strings and numbers."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API server serves it. The core group is the empty string."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection, or of one object; without a namespace: across all namespaces."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part is not None]
        return "/" + "/".join(quote(part, safe="") for part in parts)


@dataclass(frozen=True, slots=True)
class Ref:
    """One object by name; `namespace` is None for cluster-scoped kinds."""

    resource: Resource
    namespace: str | None
    name: str

    @property
    def path(self) -> str:
        return self.resource.path(self.namespace, self.name)

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {where}{self.name}"


NAMESPACE = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODE = Resource("", "v1", "nodes", "Node", namespaced=False)
POD = Resource("", "v1", "pods", "Pod")
SERVICE = Resource("", "v1", "services", "Service")
CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
CLAIM = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SET = Resource("apps", "v1", "replicasets", "ReplicaSet")
REVISION = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
JOB = Resource("batch", "v1", "jobs", "Job")
NETWORK_POLICY = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
DISRUPTION_BUDGET = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CLAIM_TEMPLATE = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
AUTOSCALER = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
LEASE = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENT = Resource("", "v1", "events", "Event")
TOKEN_REVIEW = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEW = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
CRD = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)

Kinds = Mapping[tuple[str, str], Resource]
"""(apiVersion, kind) → resource."""


def kinds(*resources: Resource) -> Kinds:
    """The lookup table of `ref_of`: the built-in kinds and `resources`."""
    return {(r.api_version, r.kind): r for r in (*_BUILTIN, *resources)}


_BUILTIN: tuple[Resource, ...] = (
    NAMESPACE,
    NODE,
    POD,
    SERVICE,
    CONFIG_MAP,
    CLAIM,
    DEPLOYMENT,
    REPLICA_SET,
    REVISION,
    JOB,
    NETWORK_POLICY,
    DISRUPTION_BUDGET,
    CLAIM_TEMPLATE,
    AUTOSCALER,
    LEASE,
    EVENT,
    TOKEN_REVIEW,
    ACCESS_REVIEW,
    CRD,
)
KINDS: Kinds = kinds()


def ref_of(manifest: Mapping[str, Any], table: Kinds = KINDS) -> Ref:
    """The reference to `manifest`. KeyError for a kind not in the table; a namespaced kind needs its namespace."""
    resource = table[manifest["apiVersion"], manifest["kind"]]
    metadata = manifest["metadata"]
    return Ref(resource, metadata["namespace"] if resource.namespaced else None, metadata["name"])


def version_of(manifest: Mapping[str, Any]) -> int:
    """The resourceVersion as a number (comparable since Kubernetes 1.35 by contract, on etcd always); 0 if absent."""
    return int(manifest["metadata"].get("resourceVersion") or 0)


def matches(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether every wanted label exists with that value."""
    return all(labels.get(key) == value for key, value in wanted.items())


def selector(labels: Mapping[str, str], present: Iterable[str] = ()) -> str:
    """A label selector: these values, and these keys with any value."""
    return ",".join([*(f"{key}={value}" for key, value in labels.items()), *present])
