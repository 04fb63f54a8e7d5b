"""A Job that makes one node pull the image of a pool's next servers before a server there ends. It takes no
accelerator, and its container ends at once: it only has to start."""

from collections.abc import Mapping
from typing import Any

from paceline.core.canonical import digest
from paceline.core.manifest import Manifest
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, POOL_LABEL, child_name
from paceline.engines.pod_template import SERVER
from paceline.render.common import Owner, metadata

COMPONENT = "pull"
"""Component of the Job, and name of its container."""
OF_THE_POD = ("hostUsers", "imagePullSecrets", "nodeSelector", "os", "runtimeClassName", "schedulerName",
              "securityContext", "serviceAccountName", "tolerations")  # fmt: skip
OF_THE_CONTAINER = ("image", "imagePullPolicy", "securityContext")
"""Fields of a server that affect how its image is pulled and its pod admitted."""
_SMALL = {"cpu": "100m", "memory": "64Mi"}
"""Resources of a shell that ends at once; they are set, because a quota may require limits."""


def pull_job(owner: Owner, pool: str, template: Mapping[str, Any], node: str) -> Manifest:
    """`template` is the servers'. The Job's name depends on everything requested from the node."""
    labels = {DEPLOYMENT_LABEL: owner.name, POOL_LABEL: pool, COMPONENT_LABEL: COMPONENT}
    spec = _pod(template["spec"], node)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(child_name(owner.name, pool, COMPONENT, digest(spec)), owner, labels),
        "spec": {"template": {"metadata": {"labels": {**MANAGED_BY, **labels}}, "spec": spec}},
    }


def _pod(servers: Mapping[str, Any], node: str) -> Manifest:
    this_node = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [this_node]}}
    container = next(one for one in servers["containers"] if one["name"] == SERVER)
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **{field: servers[field] for field in OF_THE_POD if field in servers},
        "affinity": {"nodeAffinity": required},
        "containers": [
            {
                "name": COMPONENT,
                **{field: container[field] for field in OF_THE_CONTAINER if field in container},
                "command": ["sh", "-c", "exit 0"],
                # CUDA images ask for all GPUs of a node, which NVIDIA's runtime then exposes.
                "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
                "resources": {"requests": _SMALL, "limits": _SMALL},
            }
        ],
    }
