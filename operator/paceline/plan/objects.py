"""Questions about one object of the cluster: its conditions, its owner, its annotations."""

import re
from collections.abc import Mapping
from typing import Any

from paceline.core import Trigger
from paceline.core.manifest import Object
from paceline.core.names import ABORTED, ATTEMPT, OUTSIDE_WINDOW, SUPERSEDED, SUSPENDED, TRIGGER


def condition(item: Object, kind: str) -> Mapping[str, Any] | None:
    """The condition of this type, if it is True."""
    return next(
        (c for c in item.get("status", {}).get("conditions", ()) if c["type"] == kind and c["status"] == "True"), None
    )


def finished(item: Object) -> bool:
    """Whether a Job or a BenchmarkRun has ended, successfully or not."""
    return bool(condition(item, "Complete") or condition(item, "Failed"))


def owned_by(item: Object, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences", ()))


def annotations(item: Object) -> Mapping[str, str]:
    return item["metadata"].get("annotations") or {}


def brings_rounds(run: Object) -> bool:
    """Whether a BenchmarkRun was measured without a cluster and so measures nothing itself."""
    return isinstance(run.get("spec"), Mapping) and bool(run["spec"].get("measured"))


MOST_DIGITS = 6
"""Maximum digits of an attempt: anyone who may edit a run can write any text there."""


def attempt(run: Object) -> int:
    """Attempt of a BenchmarkRun; 1 for one created by a person, and for an unusable number."""
    text = annotations(run).get(ATTEMPT, "")
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else 1


def trigger(run: Object) -> str:
    """Why a BenchmarkRun was created, as in `core.Trigger`."""
    return annotations(run).get(TRIGGER, Trigger.PERSON)


def is_suspended(run: Object) -> bool:
    """Whether a BenchmarkRun is annotated as suspended: it keeps its rounds and starts no other."""
    return annotations(run).get(SUSPENDED) == "true"


def opens_at(run: Object) -> str:
    """When the window for a BenchmarkRun's rounds opens next; "" while it is open, or without a window."""
    return annotations(run).get(OUTSIDE_WINDOW, "")


def superseded(run: Object) -> bool:
    """Whether a BenchmarkRun is annotated to end without a verdict."""
    return annotations(run).get(SUPERSEDED) == "true" or bool(aborted(run))


def aborted(run: Object) -> str:
    """The request that ended a BenchmarkRun, as VERB=VALUE; "" if there was none."""
    return annotations(run).get(ABORTED, "")


_PARTS = ("", "+", ".", "-", "r", "a", "b")
"""What may follow a release in a version of the same release: `0.5.23.post1`, `0.33.0+cu130`, `0.1.0rc0`."""


def image_digest(image: str) -> str:
    """`sha256:…`; "" if the kubelet reported none."""
    return image.rpartition("@")[2] if "@" in image else image if image.startswith("sha256:") else ""


def differ(image: str, other: str) -> bool:
    """Whether these are certainly two different images."""
    comparable = bool(image_digest(image) and image_digest(other)) and ("@" in image) is ("@" in other)
    return comparable and image_digest(image) != image_digest(other)


def same_release(reported: str, wanted: str) -> bool:
    return reported.startswith(wanted) and reported.removeprefix(wanted)[:1] in _PARTS


WITHOUT_CLAIMS = (
    "accelerator.deviceClassName needs resource.k8s.io/v1, which Kubernetes serves from 1.34 on, and the right to list "
    "ResourceClaimTemplates; use accelerator.resourceName, or upgrade the cluster or the chart"
)


IN_USE = re.compile(
    r"Multi-Attach|ReadWriteOncePod|already (?:exclusively )?(?:attached|used)|volume is in use", re.IGNORECASE
)
"""Words of the attach/detach controller, of the scheduler and of CSI drivers for a volume that another pod uses. That
pod will end."""
