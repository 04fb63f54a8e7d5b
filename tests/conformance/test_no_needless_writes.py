"""`needs_apply` against what the API server makes of a manifest: defaults, rewritten quantities, other orders."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.conftest import KINDS, Place

from paceline.kube import Lease, Manifest, Recorder, Ref, difference, needs_apply, needs_status, ref_of, stamped
from paceline.kube.resources import EVENT, LEASE

LABELS = {"app": "x"}
POD_SPEC: dict[str, Any] = {
    "containers": [
        {
            "name": "server",
            "image": "image:1",
            "command": ["sh", "-c", "sleep 1"],
            "env": [
                {"name": "B", "value": "1"},
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "ports": [{"name": "http", "containerPort": 30000}],
            "resources": {"limits": {"nvidia.com/gpu": 4, "cpu": "0.5", "memory": "1024Mi"}},
            "readinessProbe": {"httpGet": {"path": "/health", "port": 30000}, "timeoutSeconds": 5},
            "volumeMounts": [
                {"name": "models", "mountPath": "/models"},
                {"name": "models", "mountPath": "/more", "subPath": "more"},
                {"name": "shm", "mountPath": "/dev/shm"},
            ],
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
    "volumes": [
        {"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2048Mi"}},
        {"name": "ctl", "emptyDir": {}},
    ],
    "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "automountServiceAccountToken": False,
    "affinity": {},
}
TEMPLATE = {"metadata": {"labels": LABELS, "annotations": {}}, "spec": POD_SPEC}
OBJECTS: dict[str, Manifest] = {
    "Deployment": {
        "apiVersion": "apps/v1",
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": LABELS},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": TEMPLATE,
        },
    },
    "Job": {
        "apiVersion": "batch/v1",
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": 600,
            "template": {**TEMPLATE, "spec": {**POD_SPEC, "restartPolicy": "Never"}},
        },
    },
    "Service": {"apiVersion": "v1", "spec": {"selector": LABELS, "ports": [{"port": 30000, "targetPort": "http"}]}},
    "PersistentVolumeClaim": {
        "apiVersion": "v1",
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "400Gi"}}},
    },
    "ControllerRevision": {"apiVersion": "apps/v1", "revision": 1, "data": {"spec": {"replicas": None, "a": [1, {}]}}},
    "ConfigMap": {"apiVersion": "v1", "data": {"key": "value"}},
}


def manifest(place: Place, kind: str) -> Manifest:
    metadata = {"namespace": place.namespace, "name": "x", "labels": LABELS}
    return copy.deepcopy(OBJECTS[kind]) | {"kind": kind, "metadata": metadata}


@pytest.mark.parametrize("kind", OBJECTS)
async def test_what_was_applied_needs_no_second_apply(place: Place, kind: str):
    desired = stamped(manifest(place, kind))
    await place.api.apply(desired, manager="paceline")
    current = await place.api.get(ref_of(desired))
    assert current is not None
    assert difference(current, desired) is None
    again = stamped(desired | {"metadata": manifest(place, kind)["metadata"] | {"uid": current["metadata"]["uid"]}})
    assert not needs_apply(current, again), "the uid is a precondition, not a change"


def drop_environment(deployment: Manifest) -> None:
    del deployment["spec"]["template"]["spec"]["containers"][0]["env"]


def drop_replicas(deployment: Manifest) -> None:
    del deployment["spec"]["replicas"]


def other_memory(deployment: Manifest) -> None:
    deployment["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] = "2Gi"


@pytest.mark.parametrize("change", [drop_environment, drop_replicas, other_memory])
async def test_any_change_of_ours_is_sent_once(place: Place, change: Callable[[Manifest], None]):
    await place.api.apply(stamped(manifest(place, "Deployment")), manager="paceline")
    changed = manifest(place, "Deployment")
    change(changed)
    changed = stamped(changed)
    current = await place.api.get(ref_of(changed))
    assert needs_apply(current, changed)
    assert not needs_apply(await place.api.apply(changed, manager="paceline"), changed)


async def test_a_change_by_another_hand_is_undone(place: Place):
    desired = stamped(manifest(place, "Deployment"))
    current = await place.api.apply(desired, manager="paceline")
    current["spec"]["template"]["spec"]["containers"][0]["image"] = "image:2"
    drifted = await place.api.update(current)
    assert difference(drifted, desired) == ".spec.template.spec.containers[server].image"
    assert not needs_apply(await place.api.apply(desired, manager="paceline"), desired)


async def test_what_others_add_is_left_alone(place: Place):
    desired = stamped(manifest(place, "Deployment"))
    current = await place.api.apply(desired, manager="paceline")
    current["spec"]["template"]["spec"]["containers"].append({"name": "sidecar", "image": "mesh"})
    current["metadata"]["labels"]["team"] = "a"
    assert not needs_apply(await place.api.update(current), desired)


async def test_a_status_is_compared_whole(place: Place):
    status = {
        "phase": "New",
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Stalled", "status": "True"}],
    }
    current = await place.apply(size=1)
    assert needs_status(current, status)
    current = await place.replace_status(status=status)
    assert not needs_status(current, status)
    assert needs_status(current, {"phase": "New", "conditions": status["conditions"][:1]})
    assert needs_status(current, {"conditions": status["conditions"]})


async def test_a_lease_is_taken_renewed_and_released(place: Place):
    now = 0.0
    one, two = (Lease(place.api, place.namespace, "l", name, clock=lambda: now) for name in ("one", "two"))
    await one.acquire()
    assert one.held
    assert not await two._try()
    now = 7.0
    assert await one._try(), "renewed"
    now = 14.0
    assert not await two._try(), "seen first at 0, but changed since"
    await one.release()
    await two.acquire()
    record = await place.api.get(Ref(LEASE, place.namespace, "l"))
    assert record is not None
    assert (record["spec"]["holderIdentity"], record["spec"]["leaseTransitions"]) == ("two", 1)
    assert not await one._try()


async def test_an_event_said_again_is_counted(place: Place):
    widget = await place.apply(size=1)
    recorder = Recorder(place.api, controller="paceline.dev/operator", instance="pod-1")
    for note in ("Serving", "Serving", "x" * 2000, "Serving"):
        await recorder.record(widget, "Normal", "Serving", note)
    events = (await place.api.list(EVENT, place.namespace)).items
    assert sorted((len(event["message"]), event["count"]) for event in events) == [
        (7, 3),
        (1022, 1),
    ]
    assert {event["involvedObject"]["uid"] for event in events} == {widget["metadata"]["uid"]}
    assert KINDS["v1", "Event"] == EVENT
