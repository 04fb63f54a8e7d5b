"""A raised `promotion.progressDeadline` reaches the existing servers, and restarts none that serves."""

from collections.abc import Mapping
from typing import Any

from paceline.core import DeploymentSpec
from paceline.plan.deployment.servers import Servers, pod_template
from paceline.render.common import Manifest
from paceline.render.patience import has_own, startup_probe, with_patience, with_tries


def patient(
    kept: Mapping[str, Any], revision: str, servers: Servers | None, served: bool, spec: DeploymentSpec
) -> Manifest:
    """The kept rendering with the startup probe of the present spec; a user's own probe stays as it was kept.

    The probe of a running pod cannot be changed: if servers of this revision have come up (`served`) and one is ready,
    their probe stays until none is ready.
    """
    if has_own(spec.server.engine.pod_template):
        return dict(kept)
    if servers and servers.revision == revision and servers.ready and (served or servers.settled):
        probe = startup_probe(pod_template(servers.manifest)) or {}
        return with_tries(kept, probe["failureThreshold"]) if "failureThreshold" in probe else dict(kept)
    return with_patience(kept, spec.promotion.progress_deadline)
