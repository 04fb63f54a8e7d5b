"""Accelerators that pods claim (dynamic resource allocation, resource.k8s.io/v1 of Kubernetes 1.34).

Each pod gets its own ResourceClaim from a ResourceClaimTemplate, whose spec cannot be changed: its name includes a hash
of that spec, so another spec is another object. Kubernetes makes the claims, binds them to the pod's node and deletes
them with the pod.
"""

from collections.abc import Mapping
from typing import Any

from paceline.core import Accelerator
from paceline.core.canonical import digest
from paceline.core.manifest import Manifest
from paceline.core.names import child_name
from paceline.engines.pod_template import DEVICES
from paceline.render.common import Owner, metadata

_API_VERSION = "resource.k8s.io/v1"
RESOURCE_CLAIM_TEMPLATE = "ResourceClaimTemplate"
_COMPONENT = "devices"


def claim_spec(accelerator: Accelerator) -> Manifest:
    """The claim of one pod: `count` devices of the class. A driver's devices belong to one node, so the claim's devices
    are all on the same one."""
    selectors = [{"cel": {"expression": selector}} for selector in accelerator.device_selectors or ()]
    exactly = {
        "deviceClassName": accelerator.device_class_name,
        "allocationMode": "ExactCount",
        "count": accelerator.count,
        **({"selectors": selectors} if selectors else {}),
    }
    return {"spec": {"devices": {"requests": [{"name": DEVICES, "exactly": exactly}]}}}


def template_name(accelerator: Accelerator, *owner: str) -> str:
    """`owner`: a deployment and its pool, or a run."""
    return child_name(*owner, _COMPONENT, digest(claim_spec(accelerator)))


def claimed(accelerator: Accelerator, *owner: str) -> dict[str, Manifest]:
    """Name of the ResourceClaimTemplate that pods use → its spec; {} for an extended resource."""
    return {template_name(accelerator, *owner): claim_spec(accelerator)} if accelerator.claims else {}


def pod_claims(accelerator: Accelerator, *owner: str) -> Manifest:
    """The part of a pod's spec that creates its claim; {} for an extended resource."""
    claims = [{"name": DEVICES, "resourceClaimTemplateName": name} for name in claimed(accelerator, *owner)]
    return {"resourceClaims": claims} if claims else {}


def claim_template(owner: Owner, name: str, spec: Mapping[str, Any], labels: Mapping[str, str]) -> Manifest:
    return {
        "apiVersion": _API_VERSION,
        "kind": RESOURCE_CLAIM_TEMPLATE,
        "metadata": metadata(name, owner, labels),
        "spec": dict(spec),
    }
