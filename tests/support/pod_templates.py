"""An overlay of the pods (engine.podTemplate), and a server with one, on nodes of its own."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.support.example import server

from paceline.core import Server

OVERLAY: Mapping[str, Any] = {
    "metadata": {
        "labels": {"team": "inference"},
        "annotations": {"k8s.v1.cni.cncf.io/networks": "rdma"},
    },
    "spec": {
        "runtimeClassName": "nvidia",
        "priorityClassName": "production",
        "securityContext": {"fsGroup": 1000},
        "imagePullSecrets": [{"name": "registry"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]},
                        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]},
                    ]
                }
            }
        },
        "volumes": [
            {"name": "tuning", "configMap": {"name": "tuning"}},
            {"name": "logs", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"sizeLimit": "64Gi"}},
        ],
        "initContainers": [
            {"name": "warm", "image": "warm:1", "volumeMounts": [{"name": "tuning", "mountPath": "/t"}]}
        ],
        "containers": [
            {
                "name": "server",
                "env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "HF_HUB_OFFLINE", "value": "0"}],
                "resources": {"requests": {"cpu": "16"}, "limits": {"memory": "512Gi"}},
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                "volumeMounts": [{"name": "tuning", "mountPath": "/tuning"}],
                "startupProbe": {"failureThreshold": 9999},
            },
            {"name": "logger", "image": "logger:1", "volumeMounts": [{"name": "logs", "mountPath": "/logs"}]},
        ],
    },
}


def with_overlay(over: Mapping[str, Any], base: Server | None = None) -> Server:
    found = base or server()
    return replace(
        found,
        engine=replace(found.engine, pod_template=over),
        node_selector={"rack": "a"},
        tolerations=({"key": "dedicated", "operator": "Exists"},),
    )
