"""Names and labels of the objects we make. Load-bearing: a changed name orphans what an older release made."""

import hashlib

from paceline.core.workload import HUB

LONGEST = 63

MANAGED_BY = {"app.kubernetes.io/managed-by": "paceline"}
DEPLOYMENT_LABEL = "paceline.dev/deployment"
POOL_LABEL = "paceline.dev/pool"
RUN_LABEL = "paceline.dev/run"
COMPONENT_LABEL = "paceline.dev/component"
CACHE_LABEL = "paceline.dev/cache"

SUPERSEDED = "paceline.dev/superseded"
SUSPENDED = "paceline.dev/suspended"
"""Annotations of a run, by which its deployment speaks to it: end, and rest."""

MODELS = "/models"


def child_name(*parts: str | int, longest: int = LONGEST) -> str:
    """The parts joined by "-"; a hash of the whole takes the place of what is over so many characters."""
    name = "-".join(str(part) for part in parts)
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: longest - 11].rstrip('-')}-{digest}"


def snapshot_path(source: str, commit: str) -> str:
    """Where a model, or a dataset's file, is on the cache volume: what the prefetch brings has the hub's own cache
    layout, and what is there already its own path."""
    if source.startswith("pvc://"):
        return f"{MODELS}/{source.removeprefix('pvc://').partition('/')[2]}"
    if source.startswith(HUB):
        owner, name, file = source.removeprefix(HUB).split("/", 2)
        return f"{MODELS}/hub/datasets--{owner}--{name}/snapshots/{commit}/{file}"
    repository = source.removeprefix("hf://")
    return f"{MODELS}/hub/models--{repository.replace('/', '--')}/snapshots/{commit}"
