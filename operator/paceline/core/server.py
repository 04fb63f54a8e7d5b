"""The configuration that all arms of a comparison share: everything about a server except its speculation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core.tree import Model

TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretKey:
    """A key of a Secret in the same namespace; the kubelet reads it, the operator never does."""

    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`version` is the engine's version in the image; it decides which flags are emitted and checked."""

    type: str
    version: str
    image: str
    args: tuple[str, ...] = ()
    trust_remote_code: bool = False
    env: tuple[Mapping[str, Any], ...] = ()
    """core/v1 EnvVar objects as written by the user."""
    eagle3_targets: tuple[str, ...] = ()
    """Target architectures to which this image adds an EAGLE3 hook that its version lacks."""
    api_key: SecretKey | None = None
    admin_key: SecretKey | None = None
    pod_template: Mapping[str, Any] = field(default_factory=dict)
    """The user's overlay of the pod template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """`count` accelerators of one server on each of its `nodes`; tensor parallelism defaults to all of them."""

    product: str
    count: int
    tensor_parallel_size: int
    resource_name: str = "nvidia.com/gpu"
    product_label: str = "nvidia.com/gpu.product"
    nodes: int = 1
    topology: str | None = None
    topology_label: str = TOPOLOGY_LABEL
    memory: str | None = None
    """Memory of one accelerator, a quantity; None if the product is known by name."""
    device_class_name: str = ""
    """Class of devices that pods claim (dynamic resource allocation); "": they have a limit on `resource_name`."""
    device_selectors: tuple[str, ...] = ()
    """CEL that each of these devices meets."""

    @property
    def claims(self) -> bool:
        """Whether pods get their accelerators by a ResourceClaim."""
        return bool(self.device_class_name)

    @property
    def counted_as(self) -> str:
        """What the cluster counts them as: the class of devices, or the extended resource."""
        return self.device_class_name or self.resource_name

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels of the nodes that have them. Where devices are selected themselves, a node need not tell its
        product."""
        product = {} if self.device_selectors else {self.product_label: self.product}
        return product | ({self.topology_label: self.topology} if self.topology else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Where models are stored: a claim in the namespace, or a directory of the node. Exactly one is set."""

    claim: str | None = None
    host_path: str | None = None
    env: tuple[Mapping[str, Any], ...] = ()
    """core/v1 EnvVar objects for the prefetch only: HF_ENDPOINT, proxies, a CA."""
    security_context: Mapping[str, Any] = field(default_factory=dict)
    """For the prefetch only: runAsUser, runAsGroup, fsGroup and supplementalGroups that differ from 65532."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The part of a server that every arm of a pool has in common."""

    engine: Engine
    target: Model
    served_name: str
    accelerator: Accelerator
    cache: Cache
    max_concurrency: int = 1
    """The pool's largest concurrency, from which max-running-requests is pinned on every arm."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
