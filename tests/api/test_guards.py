"""What the chart says of pods, from its values to the API server that admits them or does not."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.chart import of_kind, rendered
from tests.support import signing
from tests.support.apiserver import Running
from tests.support.example import DEPLOYED, RUN, pool

from paceline import api, core
from paceline.controller.cluster import WATCHED
from paceline.controller.kinds import BENCHMARK_PROFILE, SPECULATIVE_DEPLOYMENT
from paceline.controller.settings import OperatorSettings, from_environment
from paceline.core import DeploymentSpec, Model
from paceline.core.manifest import Manifest
from paceline.kube import needs_apply, stamped
from paceline.kube.resources import AUTOSCALER, POD
from paceline.plan.deployment.models import models_of, pin
from paceline.render import Owner, fetch_job, revision_of, round_job
from paceline.render.guards import disruption_budget, rounds_network, servers_network
from paceline.render.round_job import round_plan
from paceline.render.serving import template
from paceline.render.where import ANYWHERE

EXAMPLES = Path(__file__).parents[2] / "examples"
GUARDED, RESTRICTED, QUOTA = "guarded", "restricted", "quota"


def installed(**values: Any) -> OperatorSettings:
    """As the operator of the chart's Deployment understands it."""
    (deployment,) = of_kind(rendered(**values), "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return from_environment({one["name"]: one["value"] for one in container["env"] if "value" in one})


@pytest.fixture(scope="module")
def namespaces(apiserver: Running) -> Iterator[Running]:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name, labels in ((GUARDED, {}), (RESTRICTED, enforced), (QUOTA, {})):
        metadata = {"name": name, "labels": labels}
        apiserver.kubectl(
            "apply", "--server-side", "-f", "-", given={"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        )
        apiserver.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
    yield apiserver
    apiserver.kubectl("delete", "namespace", GUARDED, RESTRICTED, QUOTA, "--wait=false")


def test_by_default_all_of_it_is_on() -> None:
    found = installed().render
    assert found.network_policies == {"servers", "rounds"}
    assert found.disruption_budgets
    assert all(found.resources[name]["requests"] for name in ("server", "client", "fetch"))
    assert found.server_security == {"allowPrivilegeEscalation": False}


def test_a_value_switches_each_of_it_off() -> None:
    found = installed(
        networkPolicies__rounds=False,
        disruptionBudgets=False,
        servers__securityContext=None,
        client__resources=None,
        fetch__resources__requests__cpu=1,
    ).render
    assert found.network_policies == {"servers"}
    assert not found.disruption_budgets
    assert found.server_security == {}
    assert "client" not in found.resources
    assert found.resources["fetch"]["requests"] == {"cpu": "1", "memory": "256Mi"}


def test_imported_evidence_is_allowed_by_name_only() -> None:
    assert not installed().render.imported_evidence
    assert installed(evidence__imported=True).render.imported_evidence


def test_signers_are_named_with_their_keys_and_a_wrong_key_stops_the_operator() -> None:
    pem = signing.pem(signing.key())
    found = installed(evidence={"imported": True, "signers": {"desk": pem}}).render
    assert found.signers == {"desk": pem}
    wrong = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    with pytest.raises(ValueError, match=r"evidence\.signers\.desk: it must be an ECDSA public key"):
        installed(evidence={"imported": True, "signers": {"desk": wrong}})


def test_namespaces_that_require_a_profile_are_a_value() -> None:
    assert installed().render.profile_required == frozenset()
    assert installed(profiles__required=["models", "chat"]).render.profile_required == {"models", "chat"}


def test_secrets_of_a_registry_and_a_digest_are_values() -> None:
    digest = f"sha256:{'0' * 64}"
    found = rendered(imagePullSecrets=["registry"], image__digest=digest)
    (deployment,) = of_kind(found, "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]
    assert pod["containers"][0]["image"] == f"paceline@{digest}"
    assert installed(imagePullSecrets=["registry"]).render.image_pull_secrets == ("registry",)


def test_servers_outrank_who_has_no_class_and_another_value_is_another_class(apiserver: Running) -> None:
    """The value of a class cannot be changed: `helm upgrade` would fail with it."""
    for values in ({}, {"priorityClasses__server": 5, "priorityClasses__benchmark": -7}):
        found = rendered(**values)
        classes = {one["metadata"]["name"]: one["value"] for one in of_kind(found, "PriorityClass")}
        settings = installed(**values).render
        assert classes[settings.server_priority_class or ""] > 0 > classes[settings.benchmark_priority_class or ""]
        given = {"apiVersion": "v1", "kind": "List", "items": of_kind(found, "PriorityClass")}
        apiserver.kubectl("apply", "--server-side", "-f", "-", given=given)


def test_the_operator_may_watch_and_write_every_kind_that_it_makes() -> None:
    """And may not do more: no rule has a wildcard, and no Secret, role or node is in any."""
    (role,) = [one for one in of_kind(rendered(), "ClusterRole") if one["metadata"]["name"] == "paceline"]
    may = {
        (group, plural): set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
    }
    read = (POD, AUTOSCALER, BENCHMARK_PROFILE)
    for resource in WATCHED:
        assert {"list", "watch"} <= may[resource.group, resource.plural]
        if resource not in (*read, SPECULATIVE_DEPLOYMENT):  # of the last only the status is written
            assert {"create", "patch"} <= may[resource.group, resource.plural]
    assert [may[resource.group, resource.plural] for resource in read] == [{"list", "watch"}] * len(read)
    said = {word for (group, plural), verbs in may.items() for word in (group, plural, *verbs)}
    assert said.isdisjoint({"*", "secrets", "nodes", "pods/exec", "rolebindings", "impersonate", "escalate", "bind"})


@pytest.mark.parametrize(
    "made",
    [
        servers_network(DEPLOYED, "latency", [pool().server]),
        rounds_network(RUN, "latency"),
        disruption_budget(DEPLOYED, "latency"),
    ],
    ids=["servers", "rounds", "budget"],
)
def test_a_guard_is_stored_and_needs_no_second_apply(namespaces: Running, made: Manifest) -> None:
    made = {**made, "metadata": {**made["metadata"], "namespace": GUARDED}}
    wanted = stamped(made)
    strictly = ("--server-side", "--field-manager=paceline", "--validate=strict", "-o", "json", "-f", "-")
    stored = json.loads(namespaces.kubectl("apply", *strictly, given=wanted).stdout)
    assert not needs_apply(stored, wanted)


def spec_of(name: str) -> DeploymentSpec:
    spec = api.deployment(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))
    return pin(spec, {(one.source, one.revision): "0" * 40 for one in models_of(spec)})


def pods(name: str, namespace: str) -> Mapping[str, Manifest]:
    """Of an example, as the chart's operator makes them by its values."""
    spec, settings = spec_of(name), installed().render
    first = spec.pools[0]
    owner = Owner(kind="SpeculativeDeployment", name=name, namespace=namespace, uid="1")
    served = template(owner, first.name, spec.server, first.arms[1], revision_of(spec.server, first.arms[1]), settings)
    asked = core.RunSpec(
        pool=first.name, server=spec.server, arms=first.arms, workloads=first.workloads, gate=first.gate
    )
    plan = round_plan(owner, asked, first.arms, 0, 0)
    measured = round_job(owner, asked, plan, ANYWHERE, settings)
    fetched = fetch_job(owner, spec.server, (Model(source="hf://a/b", revision="main"),), settings)
    jobs = {"round": measured, "fetch": fetched}
    return {"server": served, **{kind: job["spec"]["template"] for kind, job in jobs.items()}}


def refused(apiserver: Running, namespace: str, pod: Manifest) -> str:
    """What admission says to a pod; empty where it may be made. There are no PriorityClasses here but the cluster's."""
    spec = {key: value for key, value in pod["spec"].items() if key != "priorityClassName"}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {**pod["metadata"], "generateName": "x-"}, "spec": spec}
    answer = apiserver.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", made)
    return str(answer["message"]) if answer["kind"] == "Status" else ""


@pytest.mark.parametrize("kind", ["server", "round", "fetch"])
def test_where_pod_security_is_restricted_the_example_made_for_it_runs(namespaces: Running, kind: str) -> None:
    assert refused(namespaces, RESTRICTED, pods("qwen3-8b-restricted", RESTRICTED)[kind]) == ""
    said = refused(namespaces, RESTRICTED, pods("qwen3-8b", RESTRICTED)[kind])
    assert ("violates PodSecurity" in said) == (kind != "fetch")
    assert "allowPrivilegeEscalation" not in said, "that at least is the default"


@pytest.mark.parametrize("kind", ["server", "round", "fetch"])
def test_a_quota_of_requests_and_of_memory_refuses_none_of_our_containers(namespaces: Running, kind: str) -> None:
    hard = {"requests.cpu": "100", "requests.memory": "1Ti", "limits.memory": "1Ti"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"}, "spec": {"hard": hard}}
    path = f"/api/v1/namespaces/{QUOTA}/resourcequotas"
    stored = namespaces.request("POST", path, quota)
    if stored["kind"] != "Status":
        # No controller is there to do it.
        stored["status"] = {"hard": hard, "used": dict.fromkeys(hard, "0")}
        namespaces.request("PUT", f"{path}/all/status", stored)
    assert refused(namespaces, QUOTA, pods("qwen3-8b-restricted", QUOTA)[kind]) == ""
    unlimited = pods("qwen3-8b", QUOTA)[kind]
    without = {"server": "server", "round": "arm-baseline,arm-", "fetch": ""}[kind]
    said = refused(namespaces, QUOTA, unlimited)
    assert (f"must specify limits.memory for: {without}" in said) == bool(without)
