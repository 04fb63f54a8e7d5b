"""Names and labels of the objects that Paceline creates. A changed name orphans the objects of older releases."""

import hashlib

from paceline.core.source import Scheme, Source

MAX_NAME_LENGTH = 63

MANAGED_BY = {"app.kubernetes.io/managed-by": "paceline"}
DEPLOYMENT_LABEL = "paceline.dev/deployment"
POOL_LABEL = "paceline.dev/pool"
RUN_LABEL = "paceline.dev/run"
COMPONENT_LABEL = "paceline.dev/component"
CACHE_LABEL = "paceline.dev/cache"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Kueue's: the LocalQueue that a Job waits in."""

SUPERSEDED = "paceline.dev/superseded"
SUSPENDED = "paceline.dev/suspended"
OUTSIDE_WINDOW = "paceline.dev/outside-window"
ABORTED = "paceline.dev/aborted"
"""Annotations that a deployment sets on its run: end it because its question is not asked any more, suspend it, or end
it at a person's request, which is the value."""
ATTEMPT = "paceline.dev/attempt"
TRIGGER = "paceline.dev/trigger"
TOKEN = "paceline.dev/token"
"""Annotations with which a deployment makes a run: 1 + the highest attempt so far for this pool and fingerprint; a
`Trigger`; and the token of the request that asked for it or, for another image, its digest."""

MODELS = "/models"
IMAGES = "/paceline/images"
"""Where a container has the models of images (`oci://`), each in a directory of its `image_key`."""
FILES = "/paceline/files"
"""Where a server's container has the files that its arguments name and the resource holds (`Adapter.files`)."""


def child_name(*parts: str | int, longest: int = MAX_NAME_LENGTH) -> str:
    """The parts joined by "-". A longer name than `longest` is cut and ends in a hash of the whole."""
    name = "-".join(str(part) for part in parts)
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: longest - 11].rstrip('-')}-{digest}"


def round_name(run: str, round: int, try_: int) -> str:
    """Of a round's Job, and of the BenchmarkRound that it leaves."""
    return child_name(run, round, try_)


def image_key(reference: str) -> str:
    """Ten hex digits: of two registries' equal digests each may be there."""
    return hashlib.sha256(reference.encode()).hexdigest()[:10]


def image_path(reference: str) -> str:
    """Where a container has the files of an image."""
    return f"{IMAGES}/{image_key(reference)}"


def snapshot_path(source: str, commit: str) -> str:
    """Where a model, or a dataset's file, is on the cache volume: a download has the layout of the hub's own cache, a
    model that is on the volume already keeps its path. A model of an image is in a volume of its own. Raises ValueError
    for prompts that are not on the volume."""
    address = Source.parse(source)
    snapshot = f"{MODELS}/hub/{address.cache_folder}/snapshots/{commit}"
    match address.scheme:
        case Scheme.CLAIM:
            return f"{MODELS}/{address.path}"
        case Scheme.IMAGE:
            return "/".join(filter(None, (image_path(address.name), address.path)))
        case Scheme.HUB:
            return snapshot
        case Scheme.HUB_DATASET:
            return f"{snapshot}/{address.path}"
    raise ValueError(f"{source} is not on the cache volume")
