"""The configuration that all arms of a comparison share: everything about a server but its speculation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.core.tree import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """`version` is what the image speaks; it decides which flags are emitted and checked."""

    name: str
    version: str
    image: str
    args: tuple[str, ...] = ()
    trust_remote_code: bool = False
    env: tuple[Mapping[str, Any], ...] = ()
    """core/v1 EnvVar objects as written by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """`count` GPUs of one server on one node; tensor parallelism defaults to all of them."""

    product: str
    count: int
    tensor_parallel_size: int
    resource_name: str = "nvidia.com/gpu"
    product_label: str = "nvidia.com/gpu.product"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """Where models are kept: a claim in the namespace, or a directory of the node. Exactly one is set."""

    claim: str | None = None
    host_path: str | None = None
    env: tuple[Mapping[str, Any], ...] = ()
    """core/v1 EnvVar objects for the prefetch alone: HF_ENDPOINT, proxies, a CA."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What every arm of a pool has in common."""

    engine: Engine
    target: Model
    served_name: str
    accelerator: Accelerator
    cache: Cache
    largest_concurrency: int = 1
    """Of the pool: max-running-requests is pinned from it on every arm."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
