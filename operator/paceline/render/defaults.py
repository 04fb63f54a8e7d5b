"""The installation's defaults for containers: resources, and a security context.

`engine.podTemplate` overrides those of a server. Like everything that a release renders, they are not part of a
revision or a fingerprint: a new default reaches a pool with its next revision.
"""

from collections.abc import Mapping
from typing import Any

from paceline.core import Server
from paceline.core.manifest import Manifest
from paceline.engines.pod_template import DEVICES, SERVER
from paceline.render.common import Settings

_PARTS = ("limits", "requests")
MAY_ESCALATE = "allowPrivilegeEscalation"


def server_defaults(server: Server, settings: Settings) -> Manifest:
    """Resources and securityContext of the server's container, including its accelerators."""
    said = _said(server)
    asked: dict[str, Mapping[str, Any]] = {part: said.get("resources", {}).get(part) or {} for part in _PARTS}
    # If the user names a resource, the installation sets neither its limit nor its request: Kubernetes derives requests
    # from limits, and a pod whose requests equal its limits is Guaranteed.
    theirs = {name for part in asked.values() for name in part}
    ours = settings.resources.get("server", {})
    resources = {
        part: {name: amount for name, amount in (ours.get(part) or {}).items() if name not in theirs} for part in _PARTS
    }
    if not server.accelerator.claims:
        resources["limits"] |= {server.accelerator.resource_name: str(server.accelerator.count)}
    claimed = {"claims": [{"name": DEVICES}]} if server.accelerator.claims else {}
    context = _security(said.get("securityContext", {}), settings)
    return {
        "resources": {part: amounts for part, amounts in resources.items() if amounts} | claimed,
        **({"securityContext": context} if context else {}),
    }


def of_ours(container: str, settings: Settings) -> Manifest:
    """Resources of a container of Paceline's image."""
    return {"resources": settings.resources[container]} if settings.resources.get(container) else {}


def pull_secrets(settings: Settings) -> Manifest:
    """Pull secrets of a pod with a container of Paceline's image."""
    names = [{"name": name} for name in settings.image_pull_secrets]
    return {"imagePullSecrets": names} if names else {}


def _security(said: Mapping[str, Any], settings: Settings) -> Manifest:
    """The installation's security context for the server. For a privileged container it lacks allowPrivilegeEscalation:
    false, because Kubernetes refuses the two together."""
    context = dict(settings.server_security)
    added = (said.get("capabilities") or {}).get("add") or ()
    if said.get("privileged") or "SYS_ADMIN" in added or "CAP_SYS_ADMIN" in added:
        context.pop(MAY_ESCALATE, None)
    return context


def _said(server: Server) -> Mapping[str, Any]:
    containers = server.engine.pod_template.get("spec", {}).get("containers", ())
    return next((one for one in containers if one.get("name") == SERVER), {})
