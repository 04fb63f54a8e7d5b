"""The claim of the cache: made once, never owned, and grown when more is asked for."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from paceline.api import Cause, Reason
from paceline.core import ClaimTemplate
from paceline.core.names import CACHE_LABEL
from paceline.plan.deployment.snapshot import Snapshot
from paceline.plan.objects import Object
from paceline.plan.step import Apply, StepResult
from paceline.render import claim

UNITS = {"": 1, **{unit: 1000**power for power, unit in enumerate("kMGTPE", 1)}}
UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("KMGTPE", 1)}


def keep_claim(snapshot: Snapshot, _: datetime) -> StepResult:
    """Models outlive their deployments, so nobody owns it. Several may share one: it is as large as the largest asks,
    and never smaller than it was. Whether its StorageClass lets it grow, the API server says (Stalled, Refused)."""
    spec = snapshot.spec
    if spec is None or spec.cache_claim is None:
        return StepResult()
    asked = spec.cache_claim
    found = snapshot.child("PersistentVolumeClaim", asked.name)
    if found is None:
        return StepResult(actions=(Apply(claim(snapshot.namespace, asked), "the models need a volume"),))
    if found["metadata"].get("labels", {}).get(CACHE_LABEL) != "true":
        note = f"claim {asked.name} is not a Paceline cache; name it in cache.existingClaim to use it"
        return StepResult(causes=(Cause(Reason.NameConflict, None, note),), blocks=True)
    if amount(asked.size) > amount(size(found)):
        return StepResult(
            actions=(Apply(_grown(snapshot, asked, found), f"the spec asks for {asked.size}, not {size(found)}"),)
        )
    return StepResult(notes=tuple(_otherwise(asked, found)))


def size(found: Object) -> str:
    """What the claim asks for."""
    return str(found["spec"]["resources"]["requests"]["storage"])


def amount(quantity: str) -> Decimal:
    """Bytes."""
    number = quantity.rstrip("kKMGTPEi")
    return Decimal(number) * Decimal(UNITS[quantity.removeprefix(number)])


def _grown(snapshot: Snapshot, asked: ClaimTemplate, found: Object) -> dict[str, object]:
    """Nothing but its size may ever change, so the rest goes along as it is."""
    wanted = claim(snapshot.namespace, asked)
    kept = {key: found["spec"][key] for key in ("accessModes", "storageClassName") if key in found["spec"]}
    return wanted | {"spec": wanted["spec"] | kept}


def _otherwise(asked: ClaimTemplate, found: Object) -> Iterator[str]:
    """What another deployment, or this one before, asked of the same claim."""
    there = found["spec"]
    modes, class_name = ", ".join(sorted(asked.access_modes)), asked.storage_class_name
    has_modes = ", ".join(sorted(there.get("accessModes", asked.access_modes)))
    told = {
        "size": (asked.size, size(found), amount(asked.size) == amount(size(found))),
        "storageClassName": (
            class_name,
            there.get("storageClassName"),
            class_name in (None, there.get("storageClassName")),
        ),
        "accessModes": (modes, has_modes, modes == has_modes),
    }
    for field, (wanted, has, same) in told.items():
        if not same:
            yield f"spec.cache.claim.{field} is {wanted}, but claim {asked.name} has {has}, which cannot be changed"
