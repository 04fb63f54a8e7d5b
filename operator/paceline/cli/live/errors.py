"""Explains the API server's refusals, with a way out."""

import re

from paceline.core.text import printable
from paceline.kube import ApiError, Forbidden, NotFound, Unavailable

_CANNOT = re.compile(r'cannot (?P<verb>\w+) resource "(?P<what>[\w./]+)"(?:.*in the namespace "(?P<namespace>[^"]+)")?')
_ROLES = {"get": "view", "list": "view", "watch": "view", "patch": "edit"}
"""Verb → the chart's ClusterRole with it, which extends the built-in role of that name."""


def said(error: ApiError) -> str:
    """One or two sentences: what failed, and what to do. Printable, whatever text an admission policy returns."""
    return printable(_said(error))


def _said(error: ApiError) -> str:
    match error:
        case Forbidden(status=401):
            return (
                "the API server does not know these credentials: log in again, or name another context with --context"
            )
        case Forbidden():
            return _forbidden(error.message)
        case NotFound():
            return (
                "this cluster does not know SpeculativeDeployments: install the operator with its chart "
                "(charts/paceline), or only its kinds with kubectl apply --server-side -f crds"
            )
        case Unavailable(status=0):
            return (
                f"the API server does not answer ({' '.join(error.message.split())}): is it the right cluster? Name "
                "another with --context, --kubeconfig or $KUBECONFIG"
            )
    return " ".join(str(error).split())


def _forbidden(message: str) -> str:
    """An admission policy's refusal contains its own way out."""
    found = _CANNOT.search(message)
    if not found:
        return " ".join(message.split())
    verb, resource, namespace = found["verb"], found["what"], found["namespace"]
    where = f" in namespace {namespace}" if namespace else ""
    if resource == "pods/exec":
        return f"no permission to {verb} {resource}{where}: ask for get and create of it, which the role edit has"
    role = _ROLES.get(verb)
    ask = f"ask for the built-in role {role}, or the chart's paceline-{role}" if role and "/" not in resource else ""
    return f"no permission to {verb} {resource}{where}: {ask or 'ask for a role that may'}"
