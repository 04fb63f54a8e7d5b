"""The configuration that all arms of a comparison share: everything about a server except its speculation."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field

from paceline.core.model import model
from paceline.core.tree import Model
from paceline.core.types import Amount, DeviceSelector, LabelKey, LabelValue, ObjectName, Quantity, SecretsKey, Unique

GPU, GPU_LABEL = "nvidia.com/gpu", "nvidia.com/gpu.product"
TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"


@model
class SecretKey:
    """A key of a Secret in the same namespace."""

    name: ObjectName
    """Name of the Secret."""
    key: SecretsKey
    """Key in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`version` is the engine's version in the image; it decides which flags are rendered and checked."""

    type: str
    version: str
    image: str
    args: tuple[str, ...] = ()
    trust_remote_code: bool = False
    env: tuple[Mapping[str, Any], ...] = ()
    """core/v1 EnvVar objects as written by the user."""
    tensor_parallel_size: int = 0
    """Accelerators over which an arm's own engine splits the model; 0: as `Accelerator` has it."""
    eagle3_targets: tuple[str, ...] = ()
    """Target architectures to which this image adds an EAGLE3 hook that its version lacks."""
    api_key: SecretKey | None = None
    admin_key: SecretKey | None = None
    pod_template: Mapping[str, Any] = field(default_factory=dict)
    """The user's overlay of the pod template."""


@model
class Accelerator:
    """The accelerators of one server."""

    product: LabelValue
    """Value of the node's product label, for example NVIDIA-H200."""
    count: Annotated[int, Field(ge=1, le=64)] = 1
    """Accelerators per server and node."""
    tensor_parallel_size: Annotated[int, Field(ge=1, le=64)] = 0
    """Number of accelerators over which the model is split; all of the server's if absent."""
    resource_name: LabelKey = GPU
    """Extended resource to request; google.com/tpu for TPUs. A DRA driver may provide it too (KEP-5004)."""
    product_label: LabelKey = GPU_LABEL
    """Node label whose value is `product`; cloud.google.com/gke-tpu-accelerator for TPUs on GKE."""
    nodes: Annotated[int, Field(ge=1, le=16)] = 1
    """Nodes per server. More than one needs the LeaderWorkerSet controller."""
    topology: LabelValue | None = None
    """For TPU slices: value of the label cloud.google.com/gke-tpu-topology, for example 2x2."""
    memory: Quantity | None = None
    """Memory of one accelerator, for example 80Gi; known for common products if absent."""
    price_per_hour: Amount | None = None
    """Price of one accelerator per hour, as a decimal string in any one currency. Reports then show costs; nothing is
    measured or served otherwise."""
    device_class_name: ObjectName | None = None
    """DeviceClass whose devices pods claim, instead of resourceName, for example gpu.nvidia.com. Needs Kubernetes 1.34
    and the DRA driver of the devices."""
    device_selectors: Annotated[tuple[DeviceSelector, ...], Field(min_length=1, max_length=8), Unique()] | None = None
    """CEL expressions that each device must meet, instead of the node label; `product` then names the devices."""

    def __post_init__(self) -> None:
        if not self.tensor_parallel_size:
            object.__setattr__(self, "tensor_parallel_size", self.count * self.nodes)

    @property
    def claims(self) -> bool:
        """Whether pods get their accelerators through a ResourceClaim."""
        return bool(self.device_class_name)

    @property
    def own(self) -> int:
        """How many a server has for itself on a node; 0 if they are shared by time-slicing or MPS, which NVIDIA's
        device plugin says in the resource's name, or else in the node's product label."""
        shared = self.product.endswith("-SHARED") or self.resource_name.endswith(".shared")
        return 0 if shared else self.count

    @property
    def unpriced(self) -> "Accelerator":
        """Without the price, which shapes no server."""
        return replace(self, price_per_hour=None)

    @property
    def counted_as(self) -> str:
        """The name by which the cluster counts them: the device class, or the extended resource."""
        return self.device_class_name or self.resource_name

    @property
    def toleration(self) -> dict[str, str]:
        """The toleration of the usual taint of nodes with these accelerators."""
        return {"key": self.resource_name, "operator": "Exists", "effect": "NoSchedule"}

    @property
    def node_labels(self) -> dict[str, str]:
        """Labels of their nodes. If devices are selected directly, a node need not have the product label."""
        product = {} if self.device_selectors else {self.product_label: self.product}
        return product | ({TOPOLOGY_LABEL: self.topology} if self.topology else {})


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
    """The part of a server that all arms of a pool share."""

    engine: Engine
    target: Model
    served_name: str
    accelerator: Accelerator
    cache: Cache
    max_concurrency: int = 1
    """The pool's largest concurrency, which determines max-running-requests on every arm."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    """Labels that the servers' nodes need in addition to the accelerator's."""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    """core/v1 Tolerations, in addition to the one for the accelerator's taint."""
