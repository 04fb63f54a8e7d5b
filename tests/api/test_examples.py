"""A real API server takes every example, and its CEL understands what Flux is given to read our health."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.apiserver import Running
from tests.support.health import FLUX, IN_THIS_ORDER, flux

from paceline.api import crds

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("flags", [(), ("--server-side",)], ids=["client", "server"])
def test_a_second_apply_changes_nothing(apiserver: Running, flags: tuple[str, ...]) -> None:
    """Neither resourceVersion nor generation, and kubectl's client says so: no item of a list has a default."""
    named = ("--namespace", "default", "-f", str(EXAMPLES))
    first, second = (apiserver.kubectl("apply", *flags, *named, "-o", "json").stdout for _ in range(2))
    said = apiserver.kubectl("apply", *flags, *named).stdout.split()
    apiserver.kubectl("delete", *named)
    assert set(said[1::2]) == {"serverside-applied" if flags else "unchanged"}
    assert len(json.loads(first)["items"]) >= len(list(EXAMPLES.glob("*.yaml")))
    assert json.loads(second) == json.loads(first)


def test_the_kustomization_builds(apiserver: Running) -> None:
    built = yaml.safe_load(apiserver.kubectl("kustomize", str(EXAMPLES / "gitops" / "models")).stdout)
    assert built["metadata"] == {"name": "qwen3-coder-next", "namespace": "models"}
    assert built["spec"] == yaml.safe_load((EXAMPLES / "qwen3-coder-next.yaml").read_text())["spec"]


def test_a_patch_by_name_leaves_the_other_pool_alone(apiserver: Running) -> None:
    """The overlay's schema says that pools merge by name; without it Kustomize would replace them all."""
    text = apiserver.kubectl("kustomize", str(EXAMPLES / "gitops" / "overlay")).stdout
    apiserver.kubectl("create", "namespace", "models")
    arguments = ("--dry-run=server", "--validate=strict", "-f", "-")
    assert "created" in apiserver.kubectl("apply", *arguments, given=yaml.safe_load(text)).stdout

    plain = yaml.safe_load((EXAMPLES / "qwen3-coder-next.yaml").read_text())["spec"]["pools"]
    patched = {pool["name"]: pool for pool in yaml.safe_load(text)["spec"]["pools"]}
    assert patched == {pool["name"]: pool for pool in plain} | {"throughput": {**plain[1], "replicas": 2}}


# Flux evaluates an expression with the object's fields as variables; a rule of a CRD has them below `self`.
GROUP = "probe.example.com"


@pytest.fixture(scope="module")
def probes(apiserver: Running, tmp_path_factory: pytest.TempPathFactory) -> Running:
    """Kinds with the status of ours, each refused by the name of every expression that holds for it."""
    definitions = tmp_path_factory.mktemp("probes") / "crds.json"
    ours = {crd["spec"]["names"]["kind"]: crd for crd in crds()}
    items = [_probe(ours[kind], expressions) for kind, expressions in FLUX.items()]
    definitions.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    apiserver.install(definitions)
    return apiserver


def _probe(ours: dict[str, Any], expressions: Mapping[str, str]) -> dict[str, Any]:
    rules = [
        {
            "rule": f"!({expressions[name].replace('status.conditions', 'self.status.conditions')})",
            "message": f"is {name}",
        }
        for name in IN_THIS_ORDER
    ]
    schema = ours["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    conditions = {"type": "object", "properties": {"conditions": schema["properties"]["conditions"]}}
    openapi = {"type": "object", "properties": {"status": conditions}, "x-kubernetes-validations": rules}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": openapi}}
    plural = f"{ours['spec']['names']['singular']}probes"
    names = {"kind": f"{ours['spec']['names']['kind']}Probe", "plural": plural, "singular": plural[:-1]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def conditions(**statuses: str) -> list[dict[str, Any]]:
    times = {"lastTransitionTime": "2026-11-21T10:00:00Z"}
    return [
        {"type": kind, "status": said, "reason": "Because", "message": "so", **times} for kind, said in statuses.items()
    ]


@pytest.mark.parametrize(
    ("kind", "said", "health"),
    [
        ("BenchmarkRun", conditions(), "InProgress"),
        ("BenchmarkRun", conditions(Complete="False"), "InProgress"),
        ("BenchmarkRun", conditions(Complete="True"), "Current"),
        ("BenchmarkRun", conditions(Failed="True"), "Failed"),
        ("SpeculativeDeployment", conditions(), "InProgress"),
        ("SpeculativeDeployment", conditions(Ready="False"), "InProgress"),
        ("SpeculativeDeployment", conditions(Ready="False", Reconciling="True"), "InProgress"),
        ("SpeculativeDeployment", conditions(Ready="True", Reconciling="True"), "InProgress"),
        ("SpeculativeDeployment", conditions(Ready="True", Stalled="True"), "Failed"),
        ("SpeculativeDeployment", conditions(Ready="True", Promoted="False"), "Current"),
    ],
)
def test_flux_reads_the_health_of_ours(probes: Running, kind: str, said: list[dict[str, Any]], health: str) -> None:
    """As docs/states.md has it of every state, whose CEL is not the API server's."""
    status = {"conditions": said} if said else {}
    manifest = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}Probe", "metadata": {"name": "one"}, "status": status}
    plural = f"{kind.lower()}probes"
    answer = probes.request("POST", f"/apis/{GROUP}/v1/namespaces/default/{plural}?dryRun=All", manifest)
    held = [IN_THIS_ORDER[name] for name in IN_THIS_ORDER if f"is {name}" in answer["message"]]
    assert held[:1] == [health]
    assert flux({"kind": kind, "metadata": {"generation": 1}, "status": status}) == health
