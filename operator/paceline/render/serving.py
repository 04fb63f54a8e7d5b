"""What serves a pool: a Deployment and a Service."""

import math
from collections.abc import Mapping
from datetime import timedelta

from paceline.core import Arm, Server
from paceline.core.names import COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, POOL_LABEL, child_name
from paceline.engines import ENGINES
from paceline.render.common import Manifest, Owner, Settings, metadata
from paceline.render.pod import placement, server_container, volumes

REVISION_LABEL = "paceline.dev/revision"
ARM_LABEL = "paceline.dev/arm"

# SIGTERM comes this much later: by then no endpoint sends anything new. After it SGLang still accepts requests, and
# waits for each of them.
ENDPOINT_REMOVAL_SECONDS = 5
LONGEST_GENERATION_SECONDS = 120
# Polls every five seconds, fifteen seconds for the schedulers, then stragglers are killed and the listener stops.
SHUTDOWN_SECONDS = 90
STARTUP_PERIOD_SECONDS = 2


def labels(owner: Owner, pool: str) -> dict[str, str]:
    return {DEPLOYMENT_LABEL: owner.name, POOL_LABEL: pool, COMPONENT_LABEL: "server"}


def template(
    owner: Owner,
    pool: str,
    server: Server,
    arm: Arm,
    revision: str,
    settings: Settings,
    progress_deadline: timedelta = timedelta(minutes=30),
) -> Manifest:
    """The pod template of one revision: what a ControllerRevision keeps, `progress_deadline` as it was then."""
    adapter = ENGINES[server.engine.name]
    ready = adapter.ready_path(server.engine.version)
    tries = math.ceil(progress_deadline.total_seconds() / STARTUP_PERIOD_SECONDS)
    container = server_container(server, list(adapter.argv(server, arm))) | {
        "startupProbe": _get(ready, timeout=2, period=STARTUP_PERIOD_SECONDS, failures=tries),
        "readinessProbe": _get(ready, timeout=2, period=2, failures=3),
        "livenessProbe": _get(adapter.health_path, timeout=adapter.health_timeout_seconds, period=30, failures=4),
        "lifecycle": {"preStop": {"sleep": {"seconds": ENDPOINT_REMOVAL_SECONDS}}},
    }
    priority = {"priorityClassName": settings.server_priority_class} if settings.server_priority_class else {}
    return {
        "metadata": {"labels": {**MANAGED_BY, **labels(owner, pool), REVISION_LABEL: revision, ARM_LABEL: arm.name}},
        "spec": {
            "containers": [container],
            "volumes": volumes(server),
            # As PID 1 SGLang cannot kill itself when its scheduler dies, and then exits 0.
            "shareProcessNamespace": True,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            # The preStop sleep is part of it.
            "terminationGracePeriodSeconds": ENDPOINT_REMOVAL_SECONDS + LONGEST_GENERATION_SECONDS + SHUTDOWN_SECONDS,
            **placement(server),
            **priority,
        },
    }


def deployment(
    owner: Owner,
    pool: str,
    template: Manifest,
    replicas: int | None,
    progress_deadline: timedelta,
    annotations: Mapping[str, str],
) -> Manifest:
    """A pool's servers from a kept template. No surge: there are no GPUs to surge into."""
    scale = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(child_name(owner.name, pool), owner, labels(owner, pool), annotations=dict(annotations)),
        "spec": {
            **scale,
            "selector": {"matchLabels": labels(owner, pool)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "progressDeadlineSeconds": int(progress_deadline.total_seconds()),
            "revisionHistoryLimit": 0,  # ours are ControllerRevisions
            "template": template,
        },
    }


def service(owner: Owner, pool: str, server: Server) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(child_name(owner.name, pool), owner, labels(owner, pool)),
        "spec": {
            "selector": labels(owner, pool),
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def _get(path: str, *, timeout: int, period: int, failures: int) -> Manifest:
    return {
        "httpGet": {"path": path, "port": "http"},
        "timeoutSeconds": timeout,
        "periodSeconds": period,
        "failureThreshold": failures,
    }
