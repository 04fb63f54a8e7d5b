"""What makes a run impossible to carry out, known before a GPU is taken: a run made by hand may say anything."""

from collections.abc import Iterator

from paceline.core import RunSpec
from paceline.engines import places

COMMIT = "set it to the commit that the cache holds, the directory below snapshots/"
ANEW = "a spec cannot be changed: make another BenchmarkRun"


def fault(spec: RunSpec) -> str:
    """The fields in question and the way out; "" if there is nothing."""
    found = tuple(_faults(spec))
    return "; ".join((*found, ANEW)) if found else ""


def _faults(spec: RunSpec) -> Iterator[str]:
    if not spec.server.target.commit:
        yield f"spec.target.commit is missing; {COMMIT}"
    for i, arm in enumerate(spec.arms):
        if arm.draft and arm.draft.model and not arm.draft.model.commit:
            yield f"spec.arms[{i}].draft.commit is missing; {COMMIT}"
    for refusal in places.refused(spec, {}):
        yield f"{refusal.path}: {refusal.message}"
