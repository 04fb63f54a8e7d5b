"""Names and labels of the objects that Paceline creates. A changed name orphans the objects of older releases."""

import hashlib

from paceline.core.workload import HUB

MAX_NAME_LENGTH = 63

MANAGED_BY = {"app.kubernetes.io/managed-by": "paceline"}
DEPLOYMENT_LABEL = "paceline.dev/deployment"
POOL_LABEL = "paceline.dev/pool"
RUN_LABEL = "paceline.dev/run"
COMPONENT_LABEL = "paceline.dev/component"
CACHE_LABEL = "paceline.dev/cache"

SUPERSEDED = "paceline.dev/superseded"
SUSPENDED = "paceline.dev/suspended"
"""Annotations that a deployment sets on its run: end it, or suspend it."""

MODELS = "/models"


def child_name(*parts: str | int, longest: int = MAX_NAME_LENGTH) -> str:
    """The parts joined by "-". A longer name than `longest` is cut and ends in a hash of the whole."""
    name = "-".join(str(part) for part in parts)
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: longest - 11].rstrip('-')}-{digest}"


def snapshot_path(source: str, commit: str) -> str:
    """The path of a model or a dataset's file on the cache volume: downloads have the hub's cache layout, `pvc://`
    sources their own path."""
    if source.startswith("pvc://"):
        return f"{MODELS}/{source.removeprefix('pvc://').partition('/')[2]}"
    if source.startswith(HUB):
        owner, name, file = source.removeprefix(HUB).split("/", 2)
        return f"{MODELS}/hub/datasets--{owner}--{name}/snapshots/{commit}/{file}"
    repository = source.removeprefix("hf://")
    return f"{MODELS}/hub/models--{repository.replace('/', '--')}/snapshots/{commit}"
