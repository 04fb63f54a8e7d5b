"""Pod Security admission of a real API server, asked about every pod of every example and about the operator's own."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import yaml
from tests.api.chart import of_kind, rendered
from tests.api.test_guards import EXAMPLES, installed, refused
from tests.support.apiserver import Running
from tests.support.containers import containers

from paceline import api, core
from paceline.core import Model
from paceline.core.manifest import Manifest
from paceline.plan.deployment.models import datasets_of, models_of, pin
from paceline.render import Owner, fetch_job, revision_of, round_job
from paceline.render.round_job import round_plan
from paceline.render.serving import template
from paceline.render.where import ANYWHERE

COMMIT = "0" * 40
LEVELS = ("baseline", "restricted")
HOMES = {level: f"enforces-{level}" for level in LEVELS}
"""Level → a namespace of it."""
SPEAKS_FOR_ITSELF = "qwen3-8b-restricted"
"""Its podTemplate has what `restricted` demands, whatever the chart says."""
ON_A_DIRECTORY = "llama-3.1-8b-l40s"
"""Of the node, which neither level admits."""


@dataclass(frozen=True)
class Asked:
    example: str
    kind: str
    pod: Manifest


def examples() -> dict[str, list[dict[str, Any]]]:
    files = {file.stem: list(yaml.safe_load_all(file.read_text())) for file in sorted(EXAMPLES.glob("*.yaml"))}
    kinds = ("SpeculativeDeployment", "BenchmarkRun")
    ours = {name: [one for one in objects if one and one["kind"] in kinds] for name, objects in files.items()}
    return {name: objects for name, objects in ours.items() if objects}


def pods(values: dict[str, Any]) -> Iterator[Asked]:
    """Of each example as the chart's operator makes them by its values."""
    settings = installed(**values).render
    for name, objects in examples().items():
        for manifest in objects:
            owner = Owner(kind=manifest["kind"], name=name, namespace="x", uid="1")
            if manifest["kind"] == "BenchmarkRun":
                asked = api.run(manifest)
                target = replace(asked.server.target, commit=COMMIT)
                asked = replace(asked, server=replace(asked.server, target=target), arms=tuple(map(pinned, asked.arms)))
            else:
                spec = api.deployment(manifest)
                spec = pin(spec, {(one.source, one.revision): COMMIT for one in (*models_of(spec), *datasets_of(spec))})
                first = spec.pools[0]
                asked = core.RunSpec(
                    pool=first.name,
                    server=spec.server,
                    arms=first.arms,
                    workloads=first.workloads,
                    gate=first.gate,
                )
                arm = first.arms[-1]
                revision = revision_of(spec.server, arm)
                yield Asked(name, "server", template(owner, first.name, spec.server, arm, revision, settings))
                models = (Model(source="hf://a/b", revision="main"),)
                yield Asked(name, "fetch", fetch_job(owner, spec.server, models, settings)["spec"]["template"])
            plan = round_plan(owner, asked, asked.arms, 0, 0)
            yield Asked(name, "round", round_job(owner, asked, plan, ANYWHERE, settings)["spec"]["template"])


def pinned(arm: core.Arm) -> core.Arm:
    if not (arm.draft and arm.draft.model):
        return arm
    return replace(arm, draft=replace(arm.draft, model=replace(arm.draft.model, commit=COMMIT)))


@pytest.fixture(scope="module")
def enforcing(apiserver: Running) -> Iterator[Running]:
    for level in LEVELS:
        labels = {"pod-security.kubernetes.io/enforce": level}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOMES[level], "labels": labels}}
        apiserver.kubectl("apply", "--server-side", "-f", "-", given=namespace)
        account = {"metadata": {"name": "default"}}
        apiserver.request("POST", f"/api/v1/namespaces/{HOMES[level]}/serviceaccounts", account)
    yield apiserver
    apiserver.kubectl("delete", "namespace", *HOMES.values(), "--wait=false")


def is_admitted(one: Asked, level: str, restricted: bool) -> bool:
    """What docs/security.md says."""
    if one.example == ON_A_DIRECTORY:
        return False
    return level == "baseline" or restricted or one.kind == "fetch" or one.example == SPEAKS_FOR_ITSELF


@pytest.mark.parametrize("chart", LEVELS)
def test_each_pod_of_each_example_is_admitted_where_the_documents_say(enforcing: Running, chart: str) -> None:
    asked = list(pods({"servers__podSecurity": chart}))
    assert {one.kind for one in asked} == {"server", "fetch", "round"}
    assert len({one.example for one in asked}) >= 15
    wrong = []
    for one in asked:
        for level in LEVELS:
            said = refused(enforcing, HOMES[level], one.pod)
            assert said == "" or "violates PodSecurity" in said, said
            if (said == "") != is_admitted(one, level, chart == "restricted"):
                wrong.append(f"{one.example} {one.kind} in {level}: {said or 'admitted'}")
    assert wrong == []


def test_a_directory_of_the_node_is_admitted_by_neither(enforcing: Running) -> None:
    asked = next(one for one in pods({"servers__podSecurity": "restricted"}) if one.kind == "server")
    volumes = [{"name": "models", "hostPath": {"path": "/models", "type": "Directory"}}]
    of_the_node = {**asked.pod, "spec": {**asked.pod["spec"], "volumes": [*asked.pod["spec"]["volumes"][1:], *volumes]}}
    assert asked.pod["spec"]["volumes"][0]["name"] == "models"
    for level in LEVELS:
        assert "violates PodSecurity" in refused(enforcing, HOMES[level], of_the_node)


def test_the_operators_own_pod_is_admitted_everywhere(enforcing: Running) -> None:
    (deployment,) = of_kind(rendered(), "Deployment")
    for level in LEVELS:
        assert refused(enforcing, HOMES[level], deployment["spec"]["template"]) == ""


def test_no_pod_that_we_make_has_a_token_or_more_than_it_needs(enforcing: Running) -> None:
    """Whatever the chart says: no token of a service account in any; and our own containers write to no root."""
    for one in pods({}):
        spec = one.pod["spec"]
        assert spec["automountServiceAccountToken"] is False, one
        ours = [each for each in containers(one.pod) if each["name"] in ("client", "conclude", "fetch")]
        assert bool(ours) == (one.kind != "server")
        for container in ours:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"], one
            assert context["seccompProfile"] == {"type": "RuntimeDefault"}, one
            assert context["capabilities"] == {"drop": ["ALL"]}, one


def test_a_restricted_chart_gives_way_to_what_is_said() -> None:
    """An image that needs a user, or a right, names it; the rest stays."""
    found = installed(
        servers__podSecurity="restricted",
        servers__podSecurityContext={"runAsUser": 1000},
        servers__securityContext={"capabilities": {"add": ["IPC_LOCK"]}},
    ).render
    assert found.server_pod_security == {
        "runAsUser": 1000,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert found.server_security == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]},
    }
