"""The model cache: a claim that outlives its deployments, and the Job that fills it."""

import json

from paceline.core import ClaimTemplate, Dataset, Model, Server
from paceline.core.names import CACHE_LABEL, COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, MODELS, child_name
from paceline.render.common import Manifest, Owner, Settings, digest, metadata
from paceline.render.defaults import of_ours, pull_secrets
from paceline.render.overlay import in_a_fetch, laid_over
from paceline.render.pod import CLIENT_UID, models_volume, placement, restricted

ROOM = "paceline.dev/room"
"""Annotation: the size of the claim that the prefetch writes to."""
FETCH_RETRIES = 3
A_PERSON_MUST_ACT = 2
"""The prefetch's exit code where trying again changes nothing: no such repository, no token."""


def claim(namespace: str, template: ClaimTemplate) -> Manifest:
    """No owner: models are shared by all of the namespace and outlive the deployment that brought them."""
    storage_class = {"storageClassName": template.storage_class_name} if template.storage_class_name else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": template.name,
            "namespace": namespace,
            "labels": {**MANAGED_BY, CACHE_LABEL: "true"},
        },
        "spec": {
            "accessModes": list(template.access_modes),
            "resources": {"requests": {"storage": template.size}},
            **storage_class,
        },
    }


def fetch_inputs(server: Server, models: tuple[Model, ...]) -> str:
    """What the models' commits depend on; in any order, for another order of pools is no other question."""
    return digest([_named(models), server.cache.claim, server.cache.host_path])


def fetch_name(owner: Owner, server: Server, models: tuple[Model, ...], datasets: tuple[Dataset, ...] = ()) -> str:
    """Also of how the models are brought: who adds the token that a failed prefetch asked for gets another Job."""
    where = laid_over(placement(server), in_a_fetch(server.engine.pod_template))
    how = [list(server.cache.env), server.engine.trust_remote_code, where]
    beside: list[object] = [_named(datasets)] if datasets else []
    if server.cache.security_context:
        beside.append(server.cache.security_context)
    return child_name(owner.name, "fetch", digest([fetch_inputs(server, models), how, *beside]))


def fetch_job(
    owner: Owner,
    server: Server,
    models: tuple[Model, ...],
    settings: Settings,
    *,
    datasets: tuple[Dataset, ...] = (),
    keep_revisions: int = 2,
    in_use: tuple[str, ...] = (),
    room: str = "",
) -> Manifest:
    """Brings target, heads and datasets, all or none. Runs where the accelerators are, without taking one.

    What has a commit already is brought at that. Of each repository it leaves `keep_revisions` on the volume, and the
    commits `in_use`, which may still be served. `room` is what its claim asks for, if it is one of ours.
    """
    labels = {DEPLOYMENT_LABEL: owner.name, COMPONENT_LABEL: "fetch"}
    annotations = {"annotations": {ROOM: room}} if room else {}
    request = {
        "models": [_wanted(model) for model in models],
        **({"datasets": [_wanted(dataset) for dataset in datasets]} if datasets else {}),
        "path": MODELS,
        "keepRevisions": keep_revisions,
        "inUse": list(in_use),
        "user": f"{owner.namespace}/{owner.name}",
        "trustRemoteCode": server.engine.trust_remote_code,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(fetch_name(owner, server, models, datasets), owner, labels, **annotations),
        "spec": {
            "backoffLimit": FETCH_RETRIES,
            "podFailurePolicy": {
                "rules": [
                    {
                        "action": "FailJob",
                        "onExitCodes": {"containerName": "fetch", "operator": "In", "values": [A_PERSON_MUST_ACT]},
                    }
                ]
            },
            "template": {
                "metadata": {"labels": {**MANAGED_BY, **labels}},
                "spec": laid_over(
                    {
                        "restartPolicy": "Never",
                        "automountServiceAccountToken": False,
                        "enableServiceLinks": False,
                        "securityContext": {"fsGroup": CLIENT_UID, "fsGroupChangePolicy": "OnRootMismatch"},
                        "containers": [
                            {
                                "name": "fetch",
                                "image": settings.image,
                                "imagePullPolicy": settings.image_pull_policy,
                                "command": ["python", "-m", "paceline.pods.fetch"],
                                "env": [
                                    {"name": "PACELINE_FETCH", "value": json.dumps(request, sort_keys=True)},
                                    {"name": "HOME", "value": "/tmp"},
                                    *(dict(variable) for variable in server.cache.env),
                                ],
                                # It was killed before it could write its own message.
                                "terminationMessagePolicy": "FallbackToLogsOnError",
                                **of_ours("fetch", settings),
                                "securityContext": restricted()
                                | _as_whom(server, OF_A_CONTAINER).get("securityContext", {}),
                                "volumeMounts": [
                                    {"name": "models", "mountPath": MODELS},
                                    {"name": "tmp", "mountPath": "/tmp"},
                                ],
                            }
                        ],
                        "volumes": [models_volume(server), {"name": "tmp", "emptyDir": {}}],
                        **placement(server),
                        **pull_secrets(settings),
                    },
                    laid_over(in_a_fetch(server.engine.pod_template), _as_whom(server, OF_A_POD)),
                ),
            },
        },
    }


OF_A_POD, OF_A_CONTAINER = ("fsGroup", "supplementalGroups"), ("runAsUser", "runAsGroup")


def _as_whom(server: Server, fields: tuple[str, ...]) -> Manifest:
    """What of the cache's own security context is said at this place; nothing if nothing is."""
    said = server.cache.security_context
    found = {
        field: list(said[field]) if isinstance(said[field], tuple) else said[field] for field in fields if field in said
    }
    return {"securityContext": found} if found else {}


def _wanted(one: Model | Dataset) -> dict[str, str]:
    """By its revision, which is resolved then, or as it was resolved before."""
    return {"source": one.source, "revision": one.revision, **({"commit": one.commit} if one.commit else {})}


def _named(wanted: tuple[Model, ...] | tuple[Dataset, ...]) -> list[list[str]]:
    return sorted([one.source, one.revision] for one in wanted)
