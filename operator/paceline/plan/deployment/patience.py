"""A raised `promotion.progressDeadline` reaches the servers that are there, and restarts none that serves."""

from collections.abc import Mapping
from typing import Any

from paceline.core import DeploymentSpec
from paceline.plan.deployment.snapshot import Servers, pod_template
from paceline.render.common import Manifest
from paceline.render.patience import has_own, startup_probe, with_patience, with_tries


def patient(
    kept: Mapping[str, Any], revision: str, there: Servers | None, served: bool, spec: DeploymentSpec
) -> Manifest:
    """What is kept of a revision, with the startup probe of the spec of now; a user's own stays as it is kept.

    A probe cannot be changed in a running pod: where servers of this revision have come up (`served`) and one is ready,
    theirs stay as they are until none is.
    """
    if has_own(spec.server.engine.pod_template):
        return dict(kept)
    if there and there.revision == revision and there.ready and (served or there.settled):
        probe = startup_probe(pod_template(there.found)) or {}
        return with_tries(kept, probe["failureThreshold"]) if "failureThreshold" in probe else dict(kept)
    return with_patience(kept, spec.promotion.progress_deadline)
