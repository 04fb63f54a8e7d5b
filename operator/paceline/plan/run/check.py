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
    yield from (said for _, said in unpinned(spec))
    for refusal in places.refused(spec, {}):
        yield f"{refusal.path}: {refusal.message}"


def unpinned(spec: RunSpec) -> Iterator[tuple[Model | Dataset, str]]:
    """What is of the hub and at no known commit, and what to do about it. Zeros stand for a commit where an example
    leaves it to be filled in."""
    drafts = ((i, arm.draft.model) for i, arm in enumerate(spec.arms) if arm.draft and arm.draft.model)
    named: tuple[tuple[str, Model | Dataset], ...] = (
        ("spec.target", spec.server.target),
        *((f"spec.arms[{i}].draft", model) for i, model in drafts),
        *((f"spec.workloads[{i}]", workload.dataset) for i, workload in enumerate(spec.workloads)),
    )
    for field, one in named:
        if one.source.startswith("hf://") and not (one.commit or "").strip("0"):
            yield one, f"{field}.commit is missing; {COMMIT}"
