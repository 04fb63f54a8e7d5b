"""Step 1: end a run with an invalid spec before it takes a GPU. A run created by hand may contain anything."""

from collections.abc import Iterator
from datetime import datetime

from paceline.core import BUCKETS, Dataset, Model, RunSpec, Scheme
from paceline.engines import refusals_of_spec
from paceline.plan.run.conclusion import Conclusion, error
from paceline.plan.run.evidence import Evidence
from paceline.plan.run.snapshot import Snapshot

_PINNED = BUCKETS | {Scheme.HUB, Scheme.HUB_DATASET}
_COMMIT = "set it to the commit that the cache holds, the directory below snapshots/"
ANEW = "a spec cannot be changed: make another BenchmarkRun"


def check(snapshot: Snapshot, evidence: Evidence, now: datetime) -> Conclusion | None:
    """Ends a run whose spec cannot be carried out. A superseded run ends anyway, so its spec is not checked."""
    why = None if snapshot.superseded else fault(evidence.spec)
    return error(why) if why else None


def fault(spec: RunSpec) -> str | None:
    """The faulty fields, and what to do."""
    faults = (
        *(message for _, message in unpinned(spec)),
        *(f"{refusal.path}: {refusal.message}" for refusal in refusals_of_spec.refused(spec, {})),
    )
    return "; ".join((*faults, ANEW)) if faults else None


def unpinned(spec: RunSpec) -> Iterator[tuple[Model | Dataset, str]]:
    """Models and datasets of the hub or a bucket without a known commit, each with a message. Examples have zeros in
    place of commits; the reader must fill them in."""
    drafts = ((i, arm.draft.model) for i, arm in enumerate(spec.arms) if arm.draft and arm.draft.model)
    artifacts: tuple[tuple[str, Model | Dataset], ...] = (
        ("spec.target", spec.server.target),
        *((f"spec.arms[{i}].draft", model) for i, model in drafts),
        *((f"spec.workloads[{i}]", workload.dataset) for i, workload in enumerate(spec.workloads)),
    )
    for field, artifact in artifacts:
        if artifact.address.scheme in _PINNED and not (artifact.commit or "").strip("0"):
            yield artifact, f"{field}.commit is missing; {_COMMIT}"
