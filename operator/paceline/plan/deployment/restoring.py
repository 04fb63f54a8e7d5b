"""Servers that have all served and are no longer all ready: the operator rolls nothing out, and reports why."""

from typing import Any

from paceline.api import Cause, Reason
from paceline.plan.deployment.pool import Pool
from paceline.plan.deployment.servers import Servers, pod_template
from paceline.plan.objects import Object

RESTARTED = "kubectl.kubernetes.io/restartedAt"
"""Annotation of a pod template that `kubectl rollout restart` sets."""
ROLLED_OUT = "NewReplicaSetAvailable"
"""Reason of Progressing once every pod is of the present template and ready."""


def restoring(pool: Pool, arm: str) -> Cause:
    """The Cause for servers of a revision that has served."""
    servers = pool.servers
    if servers is None:
        return Cause(Reason.Restoring, pool.name, f"{arm}: its servers are gone")
    wanted = servers.manifest["spec"].get("replicas", 1)
    what = _restarted(servers) or f"{servers.ready} of {wanted} ready"
    return Cause(Reason.Restoring, pool.name, f"{arm}: {what}")


def _restarted(servers: Servers) -> str:
    """When they were restarted, while that restart goes on; else ""."""
    template: Any = pod_template(servers.manifest)["metadata"]
    when = (template.get("annotations") or {}).get(RESTARTED)
    rolls = when and _rolls(servers.manifest)
    return f"restarted by hand (kubectl rollout restart, {when})" if rolls else ""


def _rolls(manifest: Object) -> bool:
    """Whether the controller still reports a roll-out."""
    conditions = (manifest.get("status") or {}).get("conditions", ())
    return any(c["type"] == "Progressing" and c.get("reason") != ROLLED_OUT for c in conditions)
