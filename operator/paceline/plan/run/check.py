"""What makes a run impossible to carry out, known before a GPU is taken: a run made by hand may say anything."""

from collections.abc import Iterator

from paceline.core import Dataset, Model, RunSpec
from paceline.engines import places

COMMIT = "set it to the commit that the cache holds, the directory below snapshots/"
ANEW = "a spec cannot be changed: make another BenchmarkRun"


def fault(spec: RunSpec) -> str:
    """The fields in question and the way out; "" if there is nothing."""
    found = tuple(_faults(spec))
    return "; ".join((*found, ANEW)) if found else ""


def _faults(spec: RunSpec) -> Iterator[str]:
    if _unsaid(spec.server.target):
        yield f"spec.target.commit is missing; {COMMIT}"
    for i, arm in enumerate(spec.arms):
        if arm.draft and arm.draft.model and _unsaid(arm.draft.model):
            yield f"spec.arms[{i}].draft.commit is missing; {COMMIT}"
    for i, workload in enumerate(spec.workloads):
        if _unsaid(workload.dataset):
            yield f"spec.workloads[{i}].commit is missing; {COMMIT}"
    for refusal in places.refused(spec, {}):
        yield f"{refusal.path}: {refusal.message}"


def _unsaid(one: Model | Dataset) -> bool:
    """Zeros stand for it where an example leaves it to be filled in."""
    return one.source.startswith("hf://") and not (one.commit or "").strip("0")
