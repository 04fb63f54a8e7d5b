"""What engine.podTemplate may not say: the field, and the way out."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.example import server

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
    ("over", "path", "says"),
    [
        (of_server(image="fork:1"), f"{SERVER}.image", "spec.engine.image"),
        (of_server(command=["sh"]), f"{SERVER}.command", "spec.engine.args"),
        (of_server(args=["--tp=8"]), f"{SERVER}.args", "spec.engine.args"),
        (of_server(ports=[{"containerPort": 1}]), f"{SERVER}.ports", "a container of your own"),
        (of_server(readinessProbe={"httpGet": {}}), f"{SERVER}.readinessProbe.httpGet", "you may set failureThreshold"),
        (of_server(lifecycle={"preStop": {}}), f"{SERVER}.lifecycle.preStop", "leave it out"),
        (
            of_server(resources={"limits": {"nvidia.com/gpu": "8"}}),
            f"{SERVER}.resources.limits.nvidia.com/gpu",
            "spec.accelerator.count",
        ),
        (of_server(volumeMounts=[{"name": "x", "mountPath": "/jit/"}]), f"{SERVER}.volumeMounts[0].mountPath", "/jit"),
        (of_server(imag="x"), f"{SERVER}.imag", "did you mean image?"),
        ({"spec": {"containers": [{"name": "client"}]}}, f"{SERVER}.name", "take another name"),
        ({"spec": {"initContainers": [{"name": "server"}]}}, "spec.initContainers[0].name", "take another name"),
        ({"spec": {"containers": [{"image": "x"}]}}, f"{SERVER}.name", "must be set"),
        ({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}, "spec.containers[1].name", "a is given twice"),
        ({"spec": {"containers": {"name": "server"}}}, "spec.containers", "must be a list"),
        ({"spec": ["a"]}, "spec", "must be a map"),
        ({"spec": {"restartPolicy": "Never"}}, "spec.restartPolicy", "leave it out"),
        ({"spec": {"automountServiceAccountToken": True}}, "spec.automountServiceAccountToken", "stays false"),
        ({"spec": {"nodeName": "gpu-1"}}, "spec.nodeName", "nodeSelector"),
        ({"spec": {"hostAlias": []}}, "spec.hostAlias", "did you mean hostAliases?"),
        ({"metadata": {"labels": {"rack": 1}}}, "metadata.labels.rack", "quotes"),
        ({"spec": {"nodeSelector": {"rack": "a"}}}, "spec.nodeSelector", "write it in spec.nodeSelector"),
        ({"spec": {"tolerations": []}}, "spec.tolerations", "write them in spec.tolerations"),
        ({"spec": {"volumes": [{"name": "models"}]}}, "spec.volumes[0]", "spec.cache"),
        ({"spec": {"volumes": [{"name": "paceline-files"}]}}, "spec.volumes[0].name", "take another name"),
        (
            of_server(volumeMounts=[{"name": "x", "mountPath": "/paceline/files"}]),
            "spec.containers[0].volumeMounts[0].mountPath",
            "/paceline/files is mounted by Paceline: take another path",
        ),
        ({"spec": {"volumes": [{"name": "tmp"}]}}, "spec.volumes[0].name", "take another name"),
        ({"spec": {"volumes": [{"name": "ctl-in"}]}}, "spec.volumes[0].name", "take another name"),
        ({"spec": {"hostPID": True}}, "spec.hostPID", "a round stops all processes of an arm"),
        (
            of_server(volumeMounts=[{"name": "x", "mountPath": "/ctl/in"}]),
            f"{SERVER}.volumeMounts[0].mountPath",
            "/ctl",
        ),
        (
            of_server(volumeMounts=[{"name": "x", "mountPath": "//x/../models/"}]),
            f"{SERVER}.volumeMounts[0].mountPath",
            "mounted by Paceline",
        ),
        (
            of_server(volumeMounts=[{"name": "models", "mountPath": "/mine"}]),
            f"{SERVER}.volumeMounts[0].readOnly",
            "must be true",
        ),
        (
            of_server(volumeMounts=[{"name": "ctl-in", "mountPath": "/mine"}]),
            f"{SERVER}.volumeMounts[0].name",
            "mount one of yours",
        ),
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
            "the volume holds every server's models",
        ),
        ({"spec": {"volumes": [{"name": "shm", "hostPath": {}}]}}, "spec.volumes[0]", "emptyDir.sizeLimit"),
        (
            {"spec": {"volumes": [{"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}},
            "spec.volumes[0].projected.sources[0].serviceAccountToken",
            "no server speaks to the API server",
        ),
        (
            {"spec": {"volumes": [{"name": "t", "projected": {"sources": [{"podCertificate": {}}]}}]}},
            "spec.volumes[0].projected.sources[0].podCertificate",
            "no server speaks to the API server",
        ),
        ({"spec": {"priorityClassName": "system-node-critical"}}, "spec.priorityClassName", "a class of yours"),
        ({"spec": {"priority": 2_000_000_000}}, "spec.priority", "priorityClassName"),
        ({"metadata": {"name": "x"}}, "metadata.name", "labels or annotations"),
        ({"metadata": {"labels": {"paceline.dev/pool": "x"}}}, "metadata.labels.paceline.dev/pool", "leave it out"),
        ({"template": {}}, "template", "metadata or spec"),
    ],
)
def test_a_field_of_ours_is_refused_with_the_way_out(over: dict[str, Any], path: str, says: str) -> None:
    refused = faults(over)
    assert list(refused) == [path]
    assert says in refused[path]


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
def test_another_container_does_not_listen_where_the_engine_does(fields: dict[str, Any], path: str) -> None:
    proxy = {"name": "proxy", "image": "i", **fields}
    for over, where in (
        ({"containers": [proxy]}, "spec.containers[0]"),
        ({"initContainers": [{**proxy, "restartPolicy": "Always"}]}, "spec.initContainers[0]"),
    ):
        ((found, message),) = faults({"spec": over}).items()
        assert (found, "engine listens at 30000" in message) == (f"{where}.{path}", True)
    assert faults({"spec": {"initContainers": [proxy]}}) == {}  # it has ended when the engine starts


def test_another_container_takes_no_accelerators_that_nothing_counts() -> None:
    router = {"name": "router", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "2"}}}
    ((path, message),) = faults({"spec": {"containers": [router]}}).items()
    assert path == "spec.containers[0].resources.limits"
    assert "nvidia.com/gpu is counted only for the server" in message
    sidecar = {**router, "restartPolicy": "Always"}
    assert list(faults({"spec": {"initContainers": [sidecar]}})) == ["spec.initContainers[0].resources.limits"]
    assert faults({"spec": {"initContainers": [router]}}) == {}  # it gives them back before the server starts


def test_other_ports_are_free() -> None:
    words = ["--port=3000", "--port", "8000", "--target-port=30000"]
    assert faults({"spec": {"containers": [{"name": "p", "ports": [{"containerPort": 8000}], "args": words}]}}) == {}
