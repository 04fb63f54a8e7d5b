"""What engine.podTemplate may not say: the field, and the way out."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.example import server
from tests.support.messages import Says

from paceline.engines import ENGINES
from paceline.engines.pod_template import refusals

SERVER = "spec.containers[0]"


def faults(over: dict[str, Any], topology: str | None = None) -> dict[str, str]:
    """Path below the pod template → message."""
    templated = replace(
        server(),
        engine=replace(server().engine, pod_template=over),
        accelerator=replace(server().accelerator, topology=topology),
    )
    start = len("engine.podTemplate.")
    return {refusal.path[start:]: refusal.message for refusal in refusals(templated, ENGINES["SGLang"])}


def of_server(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "server", **fields}]}}


@pytest.mark.parametrize(
    ("over", "path"),
    [
        (of_server(image="fork:1"), f"{SERVER}.image"),
        (of_server(command=["sh"]), f"{SERVER}.command"),
        (of_server(args=["--tp=8"]), f"{SERVER}.args"),
        (of_server(ports=[{"containerPort": 1}]), f"{SERVER}.ports"),
        (of_server(readinessProbe={"httpGet": {}}), f"{SERVER}.readinessProbe.httpGet"),
        (of_server(lifecycle={"preStop": {}}), f"{SERVER}.lifecycle.preStop"),
        (of_server(resources={"limits": {"nvidia.com/gpu": "8"}}), f"{SERVER}.resources.limits.nvidia.com/gpu"),
        (of_server(volumeMounts=[{"name": "x", "mountPath": "/jit/"}]), f"{SERVER}.volumeMounts[0].mountPath"),
        (of_server(imag="x"), f"{SERVER}.imag"),
        ({"spec": {"containers": [{"name": "client"}]}}, f"{SERVER}.name"),
        ({"spec": {"containers": [{"name": "conclude"}]}}, f"{SERVER}.name"),
        ({"spec": {"initContainers": [{"name": "arm-wide"}]}}, "spec.initContainers[0].name"),
        ({"spec": {"initContainers": [{"name": "server"}]}}, "spec.initContainers[0].name"),
        ({"spec": {"containers": [{"image": "x"}]}}, f"{SERVER}.name"),
        ({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}, "spec.containers[1].name"),
        ({"spec": {"containers": {"name": "server"}}}, "spec.containers"),
        ({"spec": ["a"]}, "spec"),
        ({"spec": {"restartPolicy": "Never"}}, "spec.restartPolicy"),
        ({"spec": {"automountServiceAccountToken": True}}, "spec.automountServiceAccountToken"),
        ({"spec": {"nodeName": "gpu-1"}}, "spec.nodeName"),
        ({"spec": {"hostAlias": []}}, "spec.hostAlias"),
        ({"metadata": {"labels": {"rack": 1}}}, "metadata.labels.rack"),
        ({"spec": {"nodeSelector": {"rack": "a"}}}, "spec.nodeSelector"),
        ({"spec": {"tolerations": []}}, "spec.tolerations"),
        ({"spec": {"volumes": [{"name": "models"}]}}, "spec.volumes[0]"),
        ({"spec": {"volumes": [{"name": "paceline-files"}]}}, "spec.volumes[0].name"),
        (
            of_server(volumeMounts=[{"name": "x", "mountPath": "/paceline/files"}]),
            f"{SERVER}.volumeMounts[0].mountPath",
        ),
        ({"spec": {"volumes": [{"name": "tmp"}]}}, "spec.volumes[0].name"),
        ({"spec": {"volumes": [{"name": "ctl-in"}]}}, "spec.volumes[0].name"),
        ({"spec": {"hostPID": True}}, "spec.hostPID"),
        (of_server(volumeMounts=[{"name": "x", "mountPath": "/ctl/in"}]), f"{SERVER}.volumeMounts[0].mountPath"),
        (of_server(volumeMounts=[{"name": "x", "mountPath": "//x/../models/"}]), f"{SERVER}.volumeMounts[0].mountPath"),
        (of_server(volumeMounts=[{"name": "models", "mountPath": "/mine"}]), f"{SERVER}.volumeMounts[0].readOnly"),
        (of_server(volumeMounts=[{"name": "ctl-in", "mountPath": "/mine"}]), f"{SERVER}.volumeMounts[0].name"),
        (
            {
                "spec": {
                    "initContainers": [
                        {"name": "mine", "image": "i", "volumeMounts": [{"name": "again", "mountPath": "/mine"}]}
                    ],
                    "volumes": [{"name": "again", "persistentVolumeClaim": {"claimName": "models"}}],
                }
            },
            "spec.initContainers[0].volumeMounts[0].readOnly",
        ),
        ({"spec": {"volumes": [{"name": "shm", "hostPath": {}}]}}, "spec.volumes[0]"),
        (
            {"spec": {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}},
            "spec.volumes[0].projected.sources[0].serviceAccountToken",
        ),
        (
            {"spec": {"volumes": [{"name": "t", "projected": {"sources": [{"podCertificate": {}}]}}]}},
            "spec.volumes[0].projected.sources[0].podCertificate",
        ),
        ({"spec": {"priorityClassName": "system-node-critical"}}, "spec.priorityClassName"),
        ({"spec": {"priority": 2_000_000_000}}, "spec.priority"),
        ({"metadata": {"name": "x"}}, "metadata.name"),
        ({"metadata": {"labels": {"paceline.dev/pool": "x"}}}, "metadata.labels.paceline.dev/pool"),
        ({"template": {}}, "template"),
    ],
)
def test_a_field_of_ours_is_refused_with_the_way_out(over: dict[str, Any], path: str, says: Says) -> None:
    refused = faults(over)
    assert list(refused) == [path]
    says(refused[path])


@pytest.mark.parametrize(
    "over",
    [
        of_server(startupProbe={"periodSeconds": 10, "failureThreshold": 500}),
        of_server(lifecycle={"postStart": {"exec": {"command": ["true"]}}}),
        of_server(env=[{"name": "NCCL_DEBUG", "value": "INFO"}]),
        {"spec": {"volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "64Gi"}}]}},
        {"spec": {"priorityClassName": "mine"}},
        {"spec": {"volumes": [{"name": "ca", "projected": {"sources": [{"configMap": {"name": "ca"}}]}}]}},
        {"spec": {"fieldOfTomorrow": True}},
    ],
)
def test_what_is_the_users_is_taken(over: dict[str, Any]) -> None:
    assert faults(over) == {}


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"ports": [{"containerPort": 9}, {"containerPort": 30000}]}, "ports[1].containerPort"),
        ({"args": ["--port=30000"]}, "args[0]"),
        ({"command": ["proxy", "--port", "30000"]}, "command[1]"),
    ],
)
def test_another_container_does_not_listen_where_the_engine_does(fields: dict[str, Any], path: str, says: Says) -> None:
    proxy = {"name": "proxy", "image": "i", **fields}
    for over, where in (
        ({"containers": [proxy]}, "spec.containers[0]"),
        ({"initContainers": [{**proxy, "restartPolicy": "Always"}]}, "spec.initContainers[0]"),
    ):
        ((found, message),) = faults({"spec": over}).items()
        assert found == f"{where}.{path}"
        says(message)
    assert faults({"spec": {"initContainers": [proxy]}}) == {}  # it has ended when the engine starts


def test_another_container_takes_no_accelerators_that_nothing_counts(says: Says) -> None:
    router = {"name": "router", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}}}
    ((path, message),) = faults({"spec": {"containers": [router]}}).items()
    assert path == "spec.containers[0].resources.limits"
    says(message)
    sidecar = {**router, "restartPolicy": "Always"}
    assert list(faults({"spec": {"initContainers": [sidecar]}})) == ["spec.initContainers[0].resources.limits"]
    assert faults({"spec": {"initContainers": [router]}}) == {}  # it gives them back before the server starts


def test_other_ports_are_free() -> None:
    words = ["--port=3000", "--port", "8000", "--target-port=30000"]
    assert faults({"spec": {"containers": [{"name": "p", "ports": [{"containerPort": 8000}], "args": words}]}}) == {}
