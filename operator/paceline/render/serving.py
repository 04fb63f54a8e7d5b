"""A pool's servers: a Deployment, or a LeaderWorkerSet if a server needs several nodes; and a Service."""

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from paceline.core import Arm, Server, server_of
from paceline.core.manifest import Manifest
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, POOL_LABEL, child_name
from paceline.engines import ENGINES
from paceline.render.common import Owner, Settings, metadata
from paceline.render.devices import claim_template, claimed, pod_claims
from paceline.render.files import file_annotations, files_of
from paceline.render.group import LEADER, leader_worker_set
from paceline.render.images import images_of
from paceline.render.overlay import laid_over, without_probes
from paceline.render.pod import placement, server_container, volumes

REVISION_LABEL = "paceline.dev/revision"
ARM_LABEL = "paceline.dev/arm"

# The preStop hook delays SIGTERM by this much: by then no endpoint sends new requests. SGLang still accepts requests
# after SIGTERM, and waits for each of them.
ENDPOINT_REMOVAL_SECONDS = 5
LONGEST_GENERATION_SECONDS = 120
# SGLang polls every five seconds, gives its schedulers fifteen seconds, then kills stragglers and stops listening.
SHUTDOWN_SECONDS = 90
STARTUP_PERIOD_SECONDS = 2
SERVICE_PORT = 80


def labels(owner: Owner, pool: str) -> dict[str, str]:
    return {DEPLOYMENT_LABEL: owner.name, POOL_LABEL: pool, COMPONENT_LABEL: "server"}


def rendering(
    owner: Owner,
    pool: str,
    server: Server,
    arm: Arm,
    revision: str,
    settings: Settings,
    progress_deadline: timedelta = timedelta(minutes=30),
) -> Manifest:
    """The content of a ControllerRevision: the pod `template`. For several `nodes` that is the first node's, and the
    others use `workers`. `devices`: the ResourceClaimTemplates that these pods name, each with its spec.
    `progress_deadline` is from the time of rendering."""
    server = server_of(server, arm)
    pod = template(owner, pool, server, arm, revision, settings, progress_deadline)
    accelerator = server.accelerator
    claims = claimed(accelerator, owner.name, pool)
    devices = {"devices": claims} if claims else {}
    if accelerator.nodes == 1:
        return {"template": pod, **devices}
    base = _pod(owner, pool, server, arm, revision, settings)
    return {
        "template": pod,
        **devices,
        "workers": laid_over(base, without_probes(server.engine.pod_template)),
        "nodes": server.accelerator.nodes,
    }


def servers(
    owner: Owner,
    pool: str,
    kept: Mapping[str, Any],
    replicas: int | None,
    progress_deadline: timedelta,
    annotations: Mapping[str, str],
    surge: bool,
) -> Manifest:
    """A pool's servers from a kept rendering. `surge`: a Deployment starts one server more before it ends one. Servers
    on several nodes are replaced in place: an additional group would take all of its nodes at once."""
    if "workers" in kept:
        return leader_worker_set(owner, pool, labels(owner, pool), kept, replicas, annotations)
    return _deployment(owner, pool, kept["template"], replicas, progress_deadline, annotations, surge)


def claim_templates(owner: Owner, pool: str, kept: Mapping[str, Any]) -> tuple[Manifest, ...]:
    """The templates that the pods of a kept rendering name."""
    claims = kept.get("devices", {})
    return tuple(claim_template(owner, name, spec, labels(owner, pool)) for name, spec in claims.items())


def template(
    owner: Owner,
    pool: str,
    server: Server,
    arm: Arm,
    revision: str,
    settings: Settings,
    progress_deadline: timedelta = timedelta(minutes=30),
) -> Manifest:
    """The pod that answers, with the user's overlay."""
    adapter = ENGINES[server.engine.type]
    tries = math.ceil(progress_deadline.total_seconds() / STARTUP_PERIOD_SECONDS)
    version = server.engine.version
    ready, answer_seconds = adapter.ready_path(version), adapter.ready_answer_seconds(version)
    answers = {
        "startupProbe": _get(ready, timeout=answer_seconds, period=STARTUP_PERIOD_SECONDS, failures=tries),
        "readinessProbe": _get(ready, timeout=answer_seconds, period=answer_seconds, failures=3),
        "livenessProbe": _get(adapter.health_path, timeout=adapter.health_timeout_seconds, period=30, failures=4),
        # The other nodes of a server end when the first tells them to, on SIGTERM and after all requests.
        "lifecycle": {"preStop": _leave(adapter.interrupted if server.accelerator.nodes == 1 else "")},
    }
    pod: Manifest = laid_over(_pod(owner, pool, server, arm, revision, settings, **answers), server.engine.pod_template)
    return pod


def _pod(
    owner: Owner, pool: str, server: Server, arm: Arm, revision: str, settings: Settings, **answers: Manifest
) -> Manifest:
    """The pod of every node of a server; `answers` are the probes and hooks of the pod that serves HTTP."""
    command, files = list(ENGINES[server.engine.type].argv(server, arm)), files_of(server, (arm,))
    images = images_of(server, (arm,))
    container = server_container(owner, server, command, files, settings, images) | answers
    security = {"securityContext": dict(settings.server_pod_security)} if settings.server_pod_security else {}
    priority = {"priorityClassName": settings.server_priority_class} if settings.server_priority_class else {}
    return {
        "metadata": {
            "labels": {**MANAGED_BY, **labels(owner, pool), REVISION_LABEL: revision, ARM_LABEL: arm.name},
            **file_annotations(files),
        },
        "spec": {
            "containers": [container],
            "volumes": volumes(server, files, images),
            # As PID 1 SGLang cannot kill itself when its scheduler dies, and then exits 0.
            "shareProcessNamespace": True,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            # Includes the preStop sleep.
            "terminationGracePeriodSeconds": ENDPOINT_REMOVAL_SECONDS + LONGEST_GENERATION_SECONDS + SHUTDOWN_SECONDS,
            **placement(server),
            **pod_claims(server.accelerator, owner.name, pool),
            **priority,
            **security,
        },
    }


def _leave(interrupted: str) -> Manifest:
    """Wait until no endpoint sends new requests; then let the engine close kept-alive connections."""
    if not interrupted:
        return {"sleep": {"seconds": ENDPOINT_REMOVAL_SECONDS}}
    found = f"$(grep -lzx '{interrupted}' /proc/[0-9]*/cmdline 2>/dev/null)"
    signal = f'for one in {found}; do one=${{one#/proc/}}; kill -INT "${{one%/*}}"; done'
    return {"exec": {"command": ["sh", "-c", f"sleep {ENDPOINT_REMOVAL_SECONDS}; {signal}"]}}


def _deployment(
    owner: Owner,
    pool: str,
    template: Manifest,
    replicas: int | None,
    progress_deadline: timedelta,
    annotations: Mapping[str, str],
    surge: bool,
) -> Manifest:
    """A pool's servers from a kept template."""
    scale = {} if replicas is None else {"replicas": replicas}
    more = {"maxSurge": 1, "maxUnavailable": 0} if surge else {"maxSurge": 0, "maxUnavailable": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(child_name(owner.name, pool), owner, labels(owner, pool), annotations=dict(annotations)),
        "spec": {
            **scale,
            "selector": {"matchLabels": labels(owner, pool)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": more},
            "progressDeadlineSeconds": int(progress_deadline.total_seconds()),
            "revisionHistoryLimit": 0,  # we use ControllerRevisions
            "template": template,
        },
    }


def service(owner: Owner, pool: str, nodes: int) -> Manifest:
    """The Service of servers on this many nodes. With several, only the first node answers."""
    answering = LEADER if nodes > 1 else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(child_name(owner.name, pool), owner, labels(owner, pool)),
        "spec": {
            "selector": {**labels(owner, pool), **answering},
            "ports": [{"name": "http", "port": SERVICE_PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def _get(path: str, *, timeout: int, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "http"},
        "timeoutSeconds": timeout,
        "periodSeconds": period,
        "failureThreshold": failures,
    }
