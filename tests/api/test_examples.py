"""A real API server takes every example, and its CEL understands what Flux is given to read a BenchmarkRun's health."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.apiserver import Running

from paceline.api import crds

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_is_taken(apiserver: Running, path: Path) -> None:
    said = apiserver.kubectl("apply", "--dry-run=server", "--namespace", "default", "-f", str(path)).stdout
    assert said.endswith(" created (server dry run)\n")


def test_the_kustomization_builds(apiserver: Running) -> None:
    built = yaml.safe_load(apiserver.kubectl("kustomize", str(EXAMPLES / "gitops" / "models")).stdout)
    assert built["metadata"] == {"name": "qwen3-coder-next", "namespace": "models"}
    assert built["spec"] == yaml.safe_load((EXAMPLES / "qwen3-coder-next.yaml").read_text())["spec"]


# Flux evaluates an expression with the object's fields as variables; a rule of a CRD has them below `self`.
GROUP = "probe.example.com"
HEALTH = ("inProgress", "failed", "current")


@pytest.fixture(scope="module")
def probe(apiserver: Running, tmp_path_factory: pytest.TempPathFactory) -> Running:
    """A kind with a BenchmarkRun's status, which is refused by the name of every expression that holds for it."""
    run = next(crd for crd in crds() if crd["spec"]["names"]["kind"] == "BenchmarkRun")
    schema = run["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    documents = yaml.safe_load_all((EXAMPLES / "gitops" / "flux.yaml").read_text())
    (said,) = next(one for one in documents if one["kind"] == "Kustomization")["spec"]["healthCheckExprs"]
    rules = [
        {
            "rule": f"!({said[name].replace('status.', 'self.status.')})",
            "message": f"is {name}",
        }
        for name in HEALTH
    ]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {"status": schema["properties"]["status"]},
                "x-kubernetes-validations": rules,
            }
        },
    }
    names = {"kind": "Probe", "plural": "probes", "singular": "probe"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"probes.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    definition = tmp_path_factory.mktemp("probes") / "crd.json"
    definition.write_text(json.dumps(crd))
    apiserver.install(definition)
    return apiserver


def condition(kind: str, status: str) -> dict[str, Any]:
    times = {"lastTransitionTime": "2026-11-21T10:00:00Z"}
    return {"type": kind, "status": status, "reason": "Because", "message": "so", **times}


@pytest.mark.parametrize(
    ("status", "health"),
    [
        ({}, "inProgress"),
        ({"conditions": [condition("Complete", "False")]}, "inProgress"),
        ({"conditions": [condition("Complete", "True")]}, "current"),
        ({"conditions": [condition("Failed", "True")]}, "failed"),
    ],
)
def test_flux_reads_a_runs_health(probe: Running, status: dict[str, Any], health: str) -> None:
    manifest = {"apiVersion": f"{GROUP}/v1", "kind": "Probe", "metadata": {"name": "run"}, "status": status}
    answer = probe.request("POST", f"/apis/{GROUP}/v1/namespaces/default/probes?dryRun=All", manifest)
    assert [name for name in HEALTH if f"is {name}" in answer["message"]] == [health]
