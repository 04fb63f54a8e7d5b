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
"""Kueue's: the LocalQueue in which a Job waits."""

SUPERSEDED = "paceline.dev/superseded"
SUSPENDED = "paceline.dev/suspended"
OUTSIDE_WINDOW = "paceline.dev/outside-window"
ABORTED = "paceline.dev/aborted"
"""Annotations that a deployment sets on its run: end it because its question is obsolete, suspend it, or end it at a
person's request, which is the value."""
ATTEMPT = "paceline.dev/attempt"
TRIGGER = "paceline.dev/trigger"
TOKEN = "paceline.dev/token"
"""Annotations that a deployment sets on a new run: 1 + the highest attempt so far for this pool and fingerprint; a
`Trigger`; and the token of its request or, for a new image, the image's digest."""
SIGNATURE = "paceline.dev/evidence-signature"
"""Annotation that a person sets on a run measured elsewhere: the signature of its statement, in base64."""

MODELS = "/models"
IMAGES = "/paceline/images"
"""A container's directory for models from images (`oci://`), each in a subdirectory named by its `image_key`."""
FILES = "/paceline/files"
"""A server container's directory for files that its arguments name and the resource contains (`Adapter.files`)."""


def child_name(*parts: str | int, longest: int = MAX_NAME_LENGTH) -> str:
    """The parts joined by "-". A name longer than `longest` is cut and ends in a hash of the whole."""
    name = "-".join(str(part) for part in parts)
    if len(name) <= longest:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    return f"{name[: longest - 11].rstrip('-')}-{digest}"


def round_name(run: str, round: int, try_: int) -> str:
    """Name of a round's Job and of its BenchmarkRound."""
    return child_name(run, round, try_)


def image_key(reference: str) -> str:
    """Ten hex digits of a hash of the reference: two registries may have the same digest."""
    return hashlib.sha256(reference.encode()).hexdigest()[:10]


def image_path(reference: str) -> str:
    """A container's directory with the files of an image."""
    return f"{IMAGES}/{image_key(reference)}"


def snapshot_path(source: str, commit: str) -> str:
    """Path of a model, or a dataset's file, on the cache volume: a download has the layout of the hub's own cache, a
    model already on the volume keeps its path. A model of an image has its own volume. Raises ValueError for prompts
    that are not on the volume."""
    address = Source.parse(source)
    snapshot = f"{MODELS}/hub/{address.cache_folder}/snapshots/{commit}"
    match address.scheme:
        case Scheme.CLAIM:
            return f"{MODELS}/{address.path}"
        case Scheme.IMAGE:
            return "/".join(filter(None, (image_path(address.name), address.path)))
        case Scheme.HUB | Scheme.S3 | Scheme.GCS:
            return snapshot
        case Scheme.HUB_DATASET:
            return f"{snapshot}/{address.path}"
    raise ValueError(f"{source} is not on the cache volume")
