"""Questions about one object of the cluster: its conditions, its owner, its annotations."""

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
