"""The accelerators that a round without a node waits for. They must be of its server's product and on one node."""

from paceline.core import Accelerator
from paceline.core.manifest import Object
from paceline.plan.trouble import UNALLOCATED, unplaced

NOUNS = {"nvidia.com/gpu": "GPUs", "amd.com/gpu": "GPUs", "google.com/tpu": "TPUs"}
"""Name of a resource → the plural in a sentence; other resources are called `accelerators`."""


def needs(accelerator: Accelerator, pod: Object | None) -> str:
    """`needs 4 GPUs (nvidia.com/gpu) of NVIDIA-H200 on one node`; "" if the pod has a node. It cannot say how many are
    free, because the scheduler only names the resource that a node lacks."""
    if pod is None or unplaced(pod) is None:
        return ""
    resource = accelerator.counted_as
    count, noun = accelerator.count, "devices" if accelerator.claims else NOUNS.get(resource, "accelerators")
    return f"needs {count} {noun if count > 1 else noun[:-1]} ({resource}) of {accelerator.product} on one node"


def waits_for(accelerator: Accelerator, pod: Object | None) -> int | None:
    """Number of accelerators that must be free on one node, if some node has too few (kube-scheduler's
    NodeResourcesFit: `Insufficient RESOURCE`; DynamicResources: `cannot allocate all claims`); None if the pod waits
    for something else, or not at all."""
    problem = unplaced(pod) if pod is not None else None
    sign = UNALLOCATED if accelerator.claims else f"Insufficient {accelerator.resource_name}"
    return accelerator.count if problem is not None and sign in problem.message else None
