"""The chart's values, one by one: each is described, is in the schema, and decides something."""

import importlib.util
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator
from tests.api.chart import CHART, container, helm, of_kind, rendered, said, template, text
from tests.support import signing

from paceline.controller.settings import from_environment

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "dev" / "chart_docs.py"
SPEC = importlib.util.spec_from_file_location("chart_docs", DOCS)
assert SPEC is not None
assert SPEC.loader is not None
chart_docs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(chart_docs)

SCHEMA: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text())
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
CASES = sorted((CHART / "ci").glob("*-values.yaml"))
FULL = CHART / "ci" / "full-values.yaml"
VALUES = {path: part for path, part in chart_docs.values_of(SCHEMA) if "properties" not in part and path != "global"}
OTHER: dict[str, Any] = {
    "image.digest": f"sha256:{'0' * 64}",
    "prometheus.url": "http://other.example.com",
    "podMonitor.interval": "7s",
    "fetch.env": [{"name": "HF_ENDPOINT", "value": "https://hub.example.com"}],
    "extraEnv": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    "tolerations": [{"key": "other", "operator": "Exists"}],
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}],
    "extraVolumes": [{"name": "other", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "other", "mountPath": "/other"}],
    "networkPolicies.operator.metricsFrom": [{"podSelector": {}}],
    "networkPolicies.operator.egress": [{"ports": [{"port": 1}]}],
    "topologySpreadConstraints": [
        {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    ],
    "podMonitor.authorization": {"credentials": {"name": "other", "key": "token"}},
    "podMonitor.tlsConfig": {"insecureSkipVerify": True},
    "servers.securityContext": {"runAsUser": 1000},
    "servers.podSecurityContext": {"fsGroup": 1000},
    "evidence.signers": {"desk": signing.pem(signing.key())},
    "affinity": {"podAntiAffinity": {}},
}
"""Value → another one, where its type alone suggests none."""


def other(path: str, part: dict[str, Any], now: Any) -> Any:
    if path in OTHER:
        return OTHER[path]
    if "enum" in part:
        return next(one for one in part["enum"] if one != now)
    if "$ref" in part:
        return {"requests": {"cpu": "77m"}}
    samples = {"boolean": now is not True, "integer": 7, "number": 7, "string": "other", "array": ["other"]}
    return samples.get(part.get("type", "integer"), {"other": "value"})


def over(values: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    """As helm merges them."""
    both = {name: over(values[name], said[name]) for name in said if isinstance(values.get(name), dict)}
    return {**values, **said, **both}


@cache
def full() -> str:
    return text("-f", FULL)


@pytest.mark.parametrize("path", VALUES, ids=str)
def test_each_value_decides_something_or_its_change_is_refused(path: str) -> None:
    """A value that nothing reads would be a promise that nothing keeps."""
    now = chart_docs.at(over(DEFAULTS, yaml.safe_load(FULL.read_text())), path)
    change = other(path, VALUES[path], now)
    assert change != now
    try:
        assert text("-f", FULL, *said({path: change})) != full()
    except ValueError as refused:
        assert path in str(refused), "a refusal names the value"  # noqa: PT017


@pytest.mark.parametrize("path", VALUES, ids=str)
def test_each_value_has_a_type_and_a_description(path: str) -> None:
    assert VALUES[path]["description"]
    *groups, name = path.split(".")
    wrong: Any = {name: [{"of": ["no", "type"]}] if VALUES[path].get("type") != "array" else "no list"}
    for group in reversed(groups):
        wrong = {group: wrong}
    assert list(Draft7Validator(SCHEMA).iter_errors(wrong)), f"{path} takes anything"


def test_the_schema_has_the_values_of_the_file_and_no_others() -> None:
    """Every default is valid, and who misspells a value is told."""
    assert list(Draft7Validator(SCHEMA).iter_errors(DEFAULTS)) == []
    groups = [(path, part) for path, part in chart_docs.values_of(SCHEMA) if "properties" in part]
    for path, part in [("", SCHEMA), *groups]:
        there = chart_docs.at(DEFAULTS, path) if path else {**DEFAULTS, "global": {}}
        assert there.keys() == part["properties"].keys(), path
        assert part["additionalProperties"] is False, path


def test_schema_and_readme_say_what_the_file_says(tmp_path: Path) -> None:
    check = [sys.executable, DOCS, "--check"]
    assert subprocess.run(check, capture_output=True, text=True, check=False).stdout == ""
    copy = shutil.copytree(CHART, tmp_path / "paceline")
    (copy / "values.yaml").write_text((copy / "values.yaml").read_text().replace("replicas: 1\n", "replicas: 2\n"))
    stale = subprocess.run([*check, copy], capture_output=True, text=True, check=False)
    assert stale.returncode == 1
    assert "README.md" in stale.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_helm_lints_it(case: Path) -> None:
    done = helm("lint", "--strict", CHART, "-f", case)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout


def test_helm_lints_what_is_wrong_as_wrong() -> None:
    done = helm("lint", "--strict", CHART, "--set", "replicas=many")
    assert done.returncode == 1
    assert "/replicas" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"metrics.authentication": True}, "metrics.tlsSecret"),
        ({"rbac.clusterRoles": False}, "rbac.clusterRoles"),
        ({"serviceAccount.create": False}, "serviceAccount.name"),
        ({"image.digest": "latest"}, "/image/digest"),
        ({"log.level": "loud"}, "/log/level"),
        ({"fullnameOverride": "1st"}, "/fullnameOverride"),
        ({"nameOverride": "a.b"}, "/nameOverride"),
        ({"metrics.tlsSecret": "cert"}, "metrics.authentication"),
        ({"networkPolicies.operator.egress": [{}]}, "networkPolicies.operator"),
        ({"extraEnv": [{"name": "PACELINE_QPS", "value": "5"}]}, "extraEnv has PACELINE_QPS"),
        (
            {"metrics": {"authentication": True, "tlsSecret": "c"}, "namespaces": ["a"], "rbac.clusterRoles": False},
            "rbac.clusterRoles",
        ),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else "",
)
def test_what_cannot_work_is_refused_with_what_to_do(values: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        template(*said(values))


@pytest.mark.parametrize("release", ["1st", "a.b", "a" * 53])
def test_a_name_that_no_service_may_have_is_refused_before_anything_is_made(release: str) -> None:
    """Helm takes each of them for a release; the API server refuses the Service when all else has been made."""
    with pytest.raises(ValueError, match="fullnameOverride"):
        template(*said({"nameOverride": "operators-b"}), release=release)
    assert template(*said({"nameOverride": "operators-b", "fullnameOverride": "ours"}), release=release)


class Once(yaml.CSafeLoader):
    """YAML as kustomize reads it: a key of a map stands there once."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


@pytest.mark.parametrize(
    "values",
    [
        {"podAnnotations": {"prometheus.io/scrape": "false"}},
        {
            path: {"enabled": True, "labels": {"app.kubernetes.io/name": "theirs"}}
            for path in ("podMonitor", "prometheusRule", "dashboards")
        },
        {"dashboards": {"enabled": True, "labels": {"grafana_dashboard": None}}},
    ],
    ids=["annotations", "labels", "no label"],
)
def test_what_a_value_says_again_stands_there_once(values: dict[str, Any]) -> None:
    objects = [one for one in yaml.load_all(text(*said(values)), Once) if one]
    annotations = of_kind(objects, "Deployment")[0]["spec"]["template"]["metadata"]["annotations"]
    assert annotations.items() >= values.get("podAnnotations", {}).items()
    assert {one["metadata"]["labels"]["app.kubernetes.io/name"] for one in of_kind(objects, "ConfigMap")} <= {
        "paceline"
    }


def test_a_large_number_of_a_file_is_a_number_to_the_operator(tmp_path: Path) -> None:
    """Helm reads it as a float, and writes 1e+06."""
    file = tmp_path / "values.yaml"
    file.write_text("apiServer: {qps: 1000000, burst: 2000000}")
    said_of = {one["name"]: one.get("value", "") for one in container(template("-f", file))["env"]}
    told = from_environment({name: said_of[name] for name in ("PACELINE_QPS", "PACELINE_BURST")})
    assert (told.qps, told.burst) == (1_000_000, 2_000_000)


def test_a_digest_wins_over_the_tag_for_the_operator_its_pods_and_the_test() -> None:
    digest = f"sha256:{'0' * 64}"
    objects = template(*said({"image": {"repository": "r.example.com/p", "tag": "1", "digest": digest}}))
    operator = container(objects)
    environment = {one["name"]: one.get("value") for one in operator["env"]}
    (test,) = of_kind(objects, "Pod")
    images = {operator["image"], environment["PACELINE_IMAGE"], test["spec"]["containers"][0]["image"]}
    assert images == {f"r.example.com/p@{digest}"}


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "second"),
        ({"nameOverride": "operator"}, "second-operator"),
        ({"fullnameOverride": "ours", "nameOverride": "operator"}, "ours"),
    ],
    ids=["neither", "nameOverride", "fullnameOverride"],
)
def test_names_follow_the_release_or_the_override_and_labels_stay(values: dict[str, Any], name: str) -> None:
    objects = template(*said(values), release="second")
    (deployment,) = of_kind(objects, "Deployment")
    (account,) = of_kind(objects, "ServiceAccount")
    assert deployment["metadata"]["name"] == account["metadata"]["name"] == name
    labels = {"app.kubernetes.io/name": "paceline", "app.kubernetes.io/instance": "second"}
    assert deployment["spec"]["selector"]["matchLabels"] == labels
    policies = json.dumps(of_kind(objects, "ValidatingAdmissionPolicy"))
    assert f"'system:serviceaccount:paceline-system:{name}'" in policies


def test_with_an_account_of_yours_every_binding_and_policy_is_of_it() -> None:
    objects = template(*said({"serviceAccount": {"create": False, "name": "theirs"}}))
    assert of_kind(objects, "ServiceAccount") == []
    bindings = of_kind(objects, "RoleBinding", "ClusterRoleBinding")
    assert {subject["name"] for one in bindings for subject in one["subjects"]} == {"theirs"}
    assert "'system:serviceaccount:paceline-system:theirs'" in json.dumps(objects)
    (deployment,) = of_kind(objects, "Deployment")
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == "theirs"


def test_what_asks_the_operator_is_not_taken_for_it() -> None:
    """Service, budget and monitor select by labels; the pod of `helm test` has others."""
    objects = rendered()
    (service,), (test,) = of_kind(objects, "Service"), of_kind(objects, "Pod")
    assert not service["spec"]["selector"].items() <= test["metadata"]["labels"].items()
    assert (
        f"http://{service['metadata']['name']}.paceline-system.svc:8081/readyz"
        in test["spec"]["containers"][0]["args"][0]
    )


def test_without_authentication_the_operator_may_ask_about_nobody() -> None:
    assert "tokenreviews" not in json.dumps(rendered())
    objects = template(*said({"metrics": {"authentication": True, "tlsSecret": "cert"}}))
    asking = [one for one in of_kind(objects, "ClusterRole") if "tokenreviews" in json.dumps(one)]
    assert [(one["metadata"]["name"], len(one["rules"])) for one in asking] == [("paceline-metrics-auth", 2)]
