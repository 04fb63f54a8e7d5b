"""How the health of our objects looks from outside: to Argo CD, to Flux, and to whoever reads it as kstatus does."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from lupa import lua51

from paceline.api.rules import evaluate

Manifest = Mapping[str, Any]

GITOPS = Path(__file__).parents[2] / "examples" / "gitops"
SCRIPTS = yaml.safe_load((GITOPS / "argocd-health.yaml").read_text())["data"]
KUSTOMIZATION = next(
    one for one in yaml.safe_load_all((GITOPS / "flux.yaml").read_text()) if one["kind"] == "Kustomization"
)
FLUX: Mapping[str, Mapping[str, str]] = {each["kind"]: each for each in KUSTOMIZATION["spec"]["healthCheckExprs"]}
"""Kind → Flux's expressions."""
IN_THIS_ORDER = {"inProgress": "InProgress", "failed": "Failed", "current": "Current"}
"""Flux takes the first that holds, and InProgress if none does (its RFC 0009; pkg/runtime/cel/status_evaluator.go)."""


def argocd(manifest: Manifest) -> tuple[str, str]:
    """Status and message, as Argo CD would show them."""
    lua = lua51.LuaRuntime(unpack_returned_tuples=True)
    lua.globals().obj = lua.table_from(json.loads(json.dumps(manifest)), recursive=True)
    said = lua.execute(SCRIPTS[f"resource.customizations.health.paceline.dev_{manifest['kind']}"])
    return str(said.status), str(said.message)


def flux(manifest: Manifest) -> str:
    """By its expressions. Without any status CEL has no such variable: an error, of which Flux makes Unknown."""
    if "status" not in manifest:
        return "Unknown"
    if not _observed(manifest):
        return "InProgress"
    scope = {"status": ("", manifest["status"])}
    held = (name for name in IN_THIS_ORDER if evaluate(FLUX[manifest["kind"]][name], scope) is True)
    return next((IN_THIS_ORDER[name] for name in held), "InProgress")


def kstatus(manifest: Manifest) -> str:
    """What sigs.k8s.io/cli-utils v0.37 computes for a kind that it does not know (pkg/kstatus/status: generic.go, then
    Ready in status.go): the first of Reconciling and Stalled that is true in the order of the conditions, then Ready;
    an object without conditions is Current."""
    if not _observed(manifest):
        return "InProgress"
    conditions = (manifest.get("status") or {}).get("conditions", ())
    for condition in conditions:
        if condition["status"] == "True" and condition["type"] in ("Reconciling", "Stalled"):
            return {"Reconciling": "InProgress", "Stalled": "Failed"}[condition["type"]]
    ready = [condition["status"] for condition in conditions if condition["type"] == "Ready"]
    return "Current" if ready in ([], ["True"]) else "InProgress"


def _observed(manifest: Manifest) -> bool:
    """Whether the status, if it says so at all, is of this generation."""
    generation = manifest["metadata"].get("generation")
    return bool((manifest.get("status") or {}).get("observedGeneration", generation) == generation)
