"""Flags that Paceline renders from the resource, by their names in the engines, with the way out."""

from collections.abc import Mapping

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "write spec.target.source": ("--model", "--model-path"),
    "write spec.target.revision": ("--revision",),
    "write spec.target.servedName": ("--served-model-name",),
    "write spec.engine.trustRemoteCode: true": ("--trust-remote-code",),
    "name a Secret in spec.engine.apiKeySecretRef": ("--api-key",),
    "name a Secret in spec.engine.adminKeySecretRef": ("--admin-api-key",),
    "write spec.accelerator.tensorParallelSize": ("--tp-size", "--tensor-parallel-size"),
    "write spec.accelerator.nodes": ("--nnodes", "--node-rank", "--dist-init-addr", "--nccl-init-addr"),
    "write its lines into args": ("--config",),
    "models are read from spec.cache: remove it": ("--download-dir",),
}
"""Way out → flags; all other managed flags are to be removed."""


def with_ways_out(*names: str) -> Mapping[str, str]:
    """Flag → way out."""
    ways_out = {flag: way_out for way_out, flags in _FIELDS.items() for flag in flags}
    return {name: ways_out.get(name, "remove it") for name in names}
