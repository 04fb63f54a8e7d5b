"""The model cache: a claim that outlives its deployments, and the Job that fills it."""

from paceline.core import ClaimTemplate, Dataset, Model, Server
from paceline.core.canonical import digest
from paceline.core.manifest import Manifest
from paceline.core.names import CACHE_LABEL, COMPONENT_LABEL, DEPLOYMENT_LABEL, MANAGED_BY, MODELS, child_name
from paceline.fetching import FETCH_VARIABLE, Artifact, FetchRequest
from paceline.render.common import Owner, Settings, metadata
from paceline.render.defaults import of_ours, pull_secrets
from paceline.render.overlay import in_a_fetch, laid_over
from paceline.render.pod import CLIENT_UID, models_volume, placement, restricted

ROOM = "paceline.dev/room"
"""Annotation: the size of the claim to which the prefetch writes."""
FETCH_RETRIES = 3
CA, CA_DIRECTORY = "ca", "/etc/paceline/ca"
"""Volume and mount path of the installation's certificates."""
_CONTAINER = "fetch"
A_PERSON_MUST_ACT = 2
"""The prefetch's exit code if another try would fail, too: no such repository, no token."""
STOP_WHERE_A_PERSON_MUST_ACT: Manifest = {
    "action": "FailJob",
    "onExitCodes": {"containerName": _CONTAINER, "operator": "In", "values": [A_PERSON_MUST_ACT]},
}


def claim(namespace: str, template: ClaimTemplate) -> Manifest:
    """The cache's claim. It has no owner, because the namespace shares its models, which outlive the deployment that
    downloaded them."""
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
    """A digest of the inputs that determine the models' commits. The models are sorted: the order of pools does not
    matter."""
    return digest([_revisions(models), server.cache.claim, server.cache.host_path])


def fetch_name(owner: Owner, server: Server, models: tuple[Model, ...], datasets: tuple[Dataset, ...] = ()) -> str:
    """The name also depends on the environment of the download, so adding a missing token starts another Job."""
    place = laid_over(placement(server), in_a_fetch(server.engine.pod_template))
    environment = [list(server.cache.env), server.engine.trust_remote_code, place]
    options: list[object] = [_revisions(datasets)] if datasets else []
    if server.cache.security_context:
        options.append(server.cache.security_context)
    return child_name(owner.name, "fetch", digest([fetch_inputs(server, models), environment, *options]))


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
    """The Job that downloads target, heads and datasets, all or none. Its pod runs on the accelerators' nodes and takes
    no accelerator. Artifacts with a commit are downloaded at that commit.

    It leaves `keep_revisions` of each repository on the volume, and the commits `in_use`, which may still be served.
    `room` is the requested size of its claim, if Paceline made the claim.
    """
    labels = {DEPLOYMENT_LABEL: owner.name, COMPONENT_LABEL: "fetch"}
    request = FetchRequest(
        models=tuple(map(_artifact, models)),
        datasets=tuple(map(_artifact, datasets)),
        keep_revisions=keep_revisions,
        in_use=in_use,
        user=f"{owner.namespace}/{owner.name}",
        trust_remote_code=server.engine.trust_remote_code,
    )
    annotations = {"annotations": {ROOM: room}} if room else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(fetch_name(owner, server, models, datasets), owner, labels, **annotations),
        "spec": {
            "backoffLimit": FETCH_RETRIES,
            "podFailurePolicy": {"rules": [STOP_WHERE_A_PERSON_MUST_ACT]},
            "template": {
                "metadata": {"labels": {**MANAGED_BY, **labels}},
                "spec": _pod(server, request, settings),
            },
        },
    }


def _pod(server: Server, request: FetchRequest, settings: Settings) -> Manifest:
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"fsGroup": CLIENT_UID, "fsGroupChangePolicy": "OnRootMismatch"},
        "containers": [_container(server, request, settings)],
        "volumes": [models_volume(server), {"name": "tmp", "emptyDir": {}}, *_ca_volume(settings)],
        **placement(server),
        **pull_secrets(settings),
    }
    overlay = laid_over(in_a_fetch(server.engine.pod_template), _security_context(server, POD_FIELDS))
    return laid_over(pod, overlay)  # type: ignore[no-any-return]


def _container(server: Server, request: FetchRequest, settings: Settings) -> Manifest:
    return {
        "name": _CONTAINER,
        "image": settings.image,
        "imagePullPolicy": settings.image_pull_policy,
        "command": ["python", "-m", "paceline.pods.fetch"],
        "env": [
            {"name": FETCH_VARIABLE, "value": request.to_json()},
            {"name": "HOME", "value": "/tmp"},
            *_environment(server, settings),
        ],
        # A killed container cannot write its own message.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **of_ours("fetch", settings),
        "securityContext": restricted() | _security_context(server, CONTAINER_FIELDS).get("securityContext", {}),
        "volumeMounts": [
            {"name": "models", "mountPath": MODELS},
            {"name": "tmp", "mountPath": "/tmp"},
            *({"name": CA, "mountPath": CA_DIRECTORY, "readOnly": True} for _ in _ca_volume(settings)),
        ],
    }


def _environment(server: Server, settings: Settings) -> list[Manifest]:
    """The installation's variables and the resource's, which override them. Python libraries read SSL_CERT_FILE,
    like OpenSSL."""
    bundle = [{"name": "SSL_CERT_FILE", "value": f"{CA_DIRECTORY}/ca.crt"}] if settings.ca_bundle else []
    by_name = {variable["name"]: dict(variable) for variable in (*bundle, *settings.fetch_env, *server.cache.env)}
    return list(by_name.values())


def _ca_volume(settings: Settings) -> list[Manifest]:
    if settings.ca_bundle is None:
        return []
    name, key = settings.ca_bundle
    return [{"name": CA, "configMap": {"name": name, "items": [{"key": key, "path": "ca.crt"}]}}]


POD_FIELDS, CONTAINER_FIELDS = ("fsGroup", "supplementalGroups"), ("runAsUser", "runAsGroup")
"""The fields of cache.securityContext, by the security context to which they belong."""


def _security_context(server: Server, fields: tuple[str, ...]) -> Manifest:
    """These fields of the cache's own security context; empty if it sets none of them."""
    own = server.cache.security_context
    values = {field: own[field] for field in fields if field in own}
    context = {field: list(value) if isinstance(value, tuple) else value for field, value in values.items()}
    return {"securityContext": context} if context else {}


def _artifact(wanted: Model | Dataset) -> Artifact:
    """Uses the commit if the revision was already resolved; otherwise the prefetch resolves it."""
    return Artifact(source=wanted.address, revision=wanted.revision, commit=wanted.commit or "")


def _revisions(wanted: tuple[Model, ...] | tuple[Dataset, ...]) -> list[list[str]]:
    return sorted([one.source, one.revision] for one in wanted)
