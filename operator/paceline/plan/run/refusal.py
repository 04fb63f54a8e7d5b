"""Objects of a run that the API server refused."""

from collections.abc import Iterable

from paceline.plan.run.snapshot import Snapshot
from paceline.plan.step import Apply


def last_refusal(snapshot: Snapshot, actions: Iterable[Apply]) -> str:
    """Message about the first of these objects that the API server refused in the last pass; "" if it refused none. A
    refused NetworkPolicy delays a round too."""
    for kind, name in ((action.manifest["kind"], action.manifest["metadata"]["name"]) for action in actions):
        if message := snapshot.refusals.get((kind, name)):
            return f"its {kind} is refused: {message}"
    return ""
