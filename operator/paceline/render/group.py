"""Servers on several nodes: a LeaderWorkerSet (kubernetes-sigs/lws) with one group of pods per server.

Its webhook gives every container the variables that `engines.nodes.ranks` names. Its controller restarts a group as a
whole, and counts it as ready when its leader is ready and its workers run. Source: the types and controllers of
v0.10.0.
"""

from collections.abc import Mapping
from typing import Any

from paceline.core.manifest import Manifest
from paceline.core.names import child_name
from paceline.render.common import Owner, metadata

_API_VERSION = "leaderworkerset.x-k8s.io/v1"
GROUPS = "LeaderWorkerSet"
LEADER: Mapping[str, str] = {"leaderworkerset.sigs.k8s.io/worker-index": "0"}

_LONGEST_NAME = 48
"""Maximum length of a LeaderWorkerSet's name. Its StatefulSets are called NAME-GROUP, and their pods have a label of
that name, a "-" and ten characters; a label's value has at most 63."""


def group_name(owner: str, pool: str) -> str:
    """NAME-POOL, like all objects of a pool, or a shortened name if that is too long."""
    return child_name(owner, pool, longest=_LONGEST_NAME)


def leader_worker_set(
    owner: Owner,
    pool: str,
    labels: Mapping[str, str],
    kept: Mapping[str, Any],
    replicas: int | None,
    annotations: Mapping[str, str],
) -> Manifest:
    scale = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": _API_VERSION,
        "kind": GROUPS,
        "metadata": metadata(group_name(owner.name, pool), owner, labels, annotations=dict(annotations)),
        "spec": {
            **scale,
            "leaderWorkerTemplate": {
                "size": kept["nodes"],
                # The ranks of a server start together or not at all.
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": kept["template"],
                "workerTemplate": kept["workers"],
            },
            "startupPolicy": "LeaderCreated",
            # Shared would need a headless Service with the name of the pool's address.
            "networkConfig": {"subdomainPolicy": "UniquePerReplica"},
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"maxSurge": 0, "maxUnavailable": 1},
            },
        },
    }
