"""Servers that all served and are no longer all ready: nothing of ours is rolled out, and it is told what it is."""

from typing import Any

from paceline.api import Cause, Reason
from paceline.plan.deployment.snapshot import Pool, Servers, pod_template
from paceline.plan.objects import Object

RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""Annotation of a pod template: what `kubectl rollout restart` does."""
ROLLED_OUT = "NewReplicaSetAvailable"
"""Reason of Progressing once every pod was of the present template and ready."""


def restoring(pool: Pool, arm: str) -> Cause:
    """Of servers that served as they are asked for now."""
    there = pool.servers
    if there is None:
        return Cause(Reason.Restoring, pool.name, f"{arm}: its servers are gone")
    wanted = there.found["spec"].get("replicas", 1)
    what = _restarted(there) or f"{there.ready} of {wanted} ready"
    return Cause(Reason.Restoring, pool.name, f"{arm}: {what}")


def _restarted(there: Servers) -> str:
    """While a restart goes on: until then the controller calls its roll-out under way."""
    template: Any = pod_template(there.found)["metadata"]
    when = (template.get("annotations") or {}).get(RESTARTED)
    return f"restarted by hand (kubectl rollout restart, {when})" if when and _rolls(there.found) else ""


def _rolls(found: Object) -> bool:
    said = (found.get("status") or {}).get("conditions", ())
    return any(one["type"] == "Progressing" and one.get("reason") != ROLLED_OUT for one in said)
