"""The server container and its surroundings: equal in a serving pod and in a round."""

from paceline.core import Server
from paceline.core.manifest import Manifest
from paceline.core.names import MODELS, image_key
from paceline.engines import ENGINES
from paceline.render.common import Owner, Settings
from paceline.render.defaults import server_defaults
from paceline.render.files import Files, file_mounts, file_volumes
from paceline.render.images import image_mounts, image_volumes

CLIENT_UID = 65532


def server_container(
    owner: Owner,
    server: Server,
    command: list[str],
    files: Files,
    settings: Settings,
    images: tuple[str, ...] = (),
) -> Manifest:
    """`files` and `images`: those that its arms' arguments name."""
    adapter = ENGINES[server.engine.type]
    return {
        "name": "server",
        "image": server.engine.image,
        "command": command,
        "env": [dict(variable) for variable in adapter.env(server)],
        "ports": [{"name": "http", "containerPort": adapter.port, "protocol": "TCP"}],
        **server_defaults(server, settings),
        # The last lines of the log are what a person needs if a server does not start.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "models", "mountPath": MODELS, "readOnly": True},
            {"name": "models", "mountPath": adapter.jit_cache, "subPath": jit_path(owner, server)},
            {"name": "shm", "mountPath": "/dev/shm"},
            *file_mounts(files),
            *image_mounts(images),
        ],
    }


def jit_path(owner: Owner, server: Server) -> str:
    """The directory of compiled kernels. They fit one image on one kind of GPU, so another image starts with none; and
    they are code, so a deployment, or a run made by hand, never loads kernels compiled by another one (0037)."""
    engine = server.engine
    fits = f"{engine.type}-{engine.version}-{server.accelerator.product}-{image_key(engine.image)}".lower()
    return f"jit/{owner.namespace}/{owner.deployment or owner.uid}/{fits}"


def placement(server: Server) -> Manifest:
    """Nodes with the requested product, topology and labels; also tolerates the usual taint of GPU nodes."""
    accelerator = server.accelerator
    labels = {**accelerator.node_labels, **server.node_selector}
    return {
        **({"nodeSelector": labels} if labels else {}),
        "tolerations": [
            accelerator.toleration,
            *map(dict, server.tolerations),
        ],
    }


def volumes(server: Server, files: Files, images: tuple[str, ...] = ()) -> list[Manifest]:
    """The model cache; shared memory for NCCL and torch (/dev/shm); the arms' files and images, if any."""
    shared: list[Manifest] = [models_volume(server), {"name": "shm", "emptyDir": {"medium": "Memory"}}]
    return [*shared, *file_volumes(files), *image_volumes(images)]


def models_volume(server: Server) -> Manifest:
    if server.cache.host_path:
        # A directory created by the kubelet belongs to root: the prefetch could not write to it.
        return {"name": "models", "hostPath": {"path": server.cache.host_path, "type": "Directory"}}
    return {"name": "models", "persistentVolumeClaim": {"claimName": server.cache.claim}}


def restricted() -> Manifest:
    """The security context of containers of Paceline's image."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": CLIENT_UID,
        "runAsGroup": CLIENT_UID,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
