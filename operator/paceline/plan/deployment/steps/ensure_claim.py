"""The claim of the cache exists: it is made once, never owned, and grown when the spec asks for more."""

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

UNITS: dict[str, int | Decimal] = {"": 1, **{unit: 1000**power for power, unit in enumerate("kMGTPE", 1)}}
UNITS |= {f"{unit}i": 1024**power for power, unit in enumerate("KMGTPE", 1)}
UNITS |= {unit: Decimal(1000) ** -power for power, unit in enumerate("mun", 1)}


def ensure_claim(snapshot: Snapshot, _: datetime) -> StepResult:
    """Make or grow the claim. Models outlive their deployments, so it has no owner. Deployments may share it: it has
    the largest size that one of them asks for, and never shrinks. The API server refuses to grow it where its
    StorageClass does not allow that (Stalled, Refused)."""
    spec = snapshot.spec
    if spec is None or spec.cache_claim is None:
        return StepResult()
    template = spec.cache_claim
    existing = snapshot.child("PersistentVolumeClaim", template.name)
    if existing is None:
        return StepResult(actions=(Apply(claim(snapshot.namespace, template), "the models need a volume"),))
    if existing["metadata"].get("labels", {}).get(CACHE_LABEL) != "true":
        note = f"claim {template.name} is not a Paceline cache; name it in cache.claimName to use it"
        return StepResult(causes=(Cause(Reason.NameConflict, None, note),), blocks=True)
    if amount(template.size) > amount(size(existing)):
        why = f"the spec asks for {template.size}, not {size(existing)}"
        return StepResult(actions=(Apply(_grown(snapshot, template, existing), why),))
    return StepResult(notes=tuple(_differences(template, existing)))


def size(existing: Object) -> str:
    """The size that the claim requests."""
    return str(existing["spec"]["resources"]["requests"]["storage"])


def amount(quantity: str) -> Decimal:
    """Bytes, of a quantity as the API server has it: another's claim may ask for 107374182400m."""
    number = quantity.rstrip("numkKMGTPEi")
    return Decimal(number) * Decimal(UNITS[quantity.removeprefix(number)])


def _grown(snapshot: Snapshot, template: ClaimTemplate, existing: Object) -> dict[str, object]:
    """The claim with only its size changed: Kubernetes refuses every other change."""
    wanted = claim(snapshot.namespace, template)
    kept = {key: existing["spec"][key] for key in ("accessModes", "storageClassName") if key in existing["spec"]}
    return wanted | {"spec": wanted["spec"] | kept}


def _differences(template: ClaimTemplate, existing: Object) -> Iterator[str]:
    """A sentence for each field that another deployment, or an earlier spec, has set to another value."""
    spec = existing["spec"]
    modes, class_name = ", ".join(sorted(template.access_modes)), template.storage_class_name
    existing_modes = ", ".join(sorted(spec.get("accessModes", template.access_modes)))
    fields = {
        "size": (template.size, size(existing), amount(template.size) == amount(size(existing))),
        "storageClassName": (
            class_name,
            spec.get("storageClassName"),
            class_name in (None, spec.get("storageClassName")),
        ),
        "accessModes": (modes, existing_modes, modes == existing_modes),
    }
    for field, (wanted, has, same) in fields.items():
        if not same:
            yield f"spec.cache.claim.{field} is {wanted}, but claim {template.name} has {has}, which cannot be changed"
