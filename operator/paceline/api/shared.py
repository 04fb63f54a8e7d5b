"""Rules that both specs have: models and the cache's claim, labels of pods."""

from collections.abc import Iterator
from typing import Any

from paceline.api.model import Finding, Rule


def off_the_claim(path: str, source: str | None, claim: str | None) -> Iterator[Finding]:
    """A model that lies on another volume than the one that is mounted."""
    if source is None or not source.startswith("pvc://") or (claim and source.startswith(f"pvc://{claim}/")):
        return
    there = f"write pvc://{claim}/PATH" if claim else "the cache is a directory of the node: use existingClaim or claim"
    yield path, f"source must be on the cache's own claim, the one volume that is mounted; {there}; got {source}"


OFF_THE_CLAIM = "source pvc://CLAIM/PATH must name the cache's own claim, the one volume that is mounted"


def _our_labels(labelled: Any) -> Iterator[Finding]:
    for key in labelled.pod_labels:
        if key.startswith("paceline.dev/") or key == "app.kubernetes.io/managed-by":
            yield f".podLabels.{key}", OUR_LABELS


OUR_LABELS = "podLabels must be labels of others: paceline.dev/ and app.kubernetes.io/managed-by are Paceline's"
_NOT_OURS = "!k.startsWith('paceline.dev/') && k != 'app.kubernetes.io/managed-by'"
NO_LABELS_OF_OURS = Rule(
    cel=f"!has(self.podLabels) || self.podLabels.all(k, {_NOT_OURS})",
    message=OUR_LABELS,
    field=".podLabels",
    broken=_our_labels,
)
"""Of what has `podLabels`: a round that looked like a server would be sent traffic."""
