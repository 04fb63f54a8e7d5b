"""The chart at a real API server: what it renders is taken, by strict validation and Pod Security; and helm's own
install, upgrade and uninstall of one release and of several. Nothing runs there; tests/cluster/long_chart.py does that.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.chart import CHART, HOME, helm, of_kind, said, template
from tests.api.test_chart_values import CASES, FULL
from tests.api.test_guards import refused
from tests.support.apiserver import Running
from tests.support.schemas import POD_MONITOR, PROMETHEUS_RULE

from paceline.api import crds

RESTRICTED = "pod-security.kubernetes.io/enforce"
NAMESPACES = (HOME, "team-a", "team-b", "one", "two", "tenant")


@pytest.fixture(scope="module")
def cluster(apiserver: Running) -> Running:
    """With the kinds of the Prometheus Operator; the namespace of the release enforces `restricted`. All of them stay:
    nothing here ends one, and in one that is being deleted nothing can be made."""
    for schema in (POD_MONITOR, PROMETHEUS_RULE):
        apiserver.install(schema.path())
    labels = {HOME: {RESTRICTED: "restricted"}}
    items = [namespace(name, labels.get(name, {})) for name in NAMESPACES]
    apiserver.kubectl("apply", "--server-side", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": items})
    return apiserver


def namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def strictly(cluster: Running, objects: list[dict[str, Any]]) -> str:
    """What the API server says of them, unknown fields and all; empty where it would take them as they are."""
    options = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts", "-f", "-")
    given = {"apiVersion": "v1", "kind": "List", "items": objects}
    return cluster.kubectl("apply", *options, given=given, check=False).stderr


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_api_server_takes_every_object_of_it(cluster: Running, case: Path) -> None:
    assert strictly(cluster, template("-f", case)) == ""


def test_the_prometheus_operators_own_kinds_refuse_what_they_do_not_know(cluster: Running) -> None:
    """Else the test above would say nothing of them."""
    objects = of_kind(template("-f", FULL), "PodMonitor", "PrometheusRule")
    assert len(objects) == 3
    for one in objects:
        assert "unknown field" in strictly(cluster, [{**one, "spec": {**one["spec"], "podMonitors": []}}])
    monitor = next(one for one in of_kind(objects, "PodMonitor") if one["metadata"]["name"] == "paceline")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    wrong = {**monitor, "spec": {**monitor["spec"], "podMetricsEndpoints": [{**endpoint, "interval": "often"}]}}
    assert "interval" in strictly(cluster, [wrong])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_its_pods_are_admitted_where_pod_security_is_restricted(cluster: Running, case: Path) -> None:
    objects = template("-f", case)
    (deployment,), (test,) = of_kind(objects, "Deployment"), of_kind(objects, "Pod")
    assert refused(cluster, HOME, deployment["spec"]["template"]) == ""
    assert refused(cluster, HOME, {**test, "metadata": {}}) == ""


class Releases:
    """Helm, as a person uses it, without the CRDs, which are there."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def try_to(self, verb: str, name: str, home: str, *more: str | Path, **values: Any) -> str:
        """What helm says where it fails."""
        chart = () if verb == "uninstall" else (CHART, "--set", "crds.enabled=false", *said(values))
        done = helm("--kubeconfig", self.kubeconfig, verb, name, "--namespace", home, *chart, *more)
        return done.stderr if done.returncode else ""

    def do(self, verb: str, name: str, home: str, *more: str | Path, **values: Any) -> None:
        assert self.try_to(verb, name, home, *more, **values) == ""


@pytest.fixture
def releases(cluster: Running) -> Iterator[Releases]:
    yield Releases(cluster.kubeconfig)
    for one in json.loads(helm("--kubeconfig", cluster.kubeconfig, "list", "-A", "-o", "json").stdout):
        helm("--kubeconfig", cluster.kubeconfig, "uninstall", one["name"], "--namespace", one["namespace"])
    cluster.kubectl("delete", "priorityclass", "-l", "app.kubernetes.io/name=paceline")


CLUSTER_KINDS = (
    "clusterroles,clusterrolebindings,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings"
)


def of_the_cluster(cluster: Running) -> set[str]:
    """Objects of any release."""
    found = cluster.kubectl("get", CLUSTER_KINDS, "-l", "app.kubernetes.io/name=paceline", "-o", "name").stdout
    return {name.partition(".")[0] + "/" + name.rpartition("/")[2] for name in found.split()}


def test_two_releases_of_one_name_in_disjoint_namespaces_have_no_object_in_common(
    cluster: Running, releases: Releases
) -> None:
    """And one can go without anything of the other's."""
    releases.do("install", "paceline", "one", namespaces=["team-a"])
    first = of_the_cluster(cluster)
    releases.do("install", "paceline", "two", namespaces=["team-b"])
    both = of_the_cluster(cluster)
    assert len(both) == 2 * len(first)
    assert {name.replace("/two-", "/one-") for name in both - first} == first
    assert "namespace team-a " in releases.try_to("install", "p", "tenant", namespaces=["team-a"])
    assert "already" in releases.try_to("install", "other", "one", namespaces=["tenant"]), (
        "the Lease is of one operator"
    )
    releases.do("uninstall", "paceline", "one")
    kept = {name for name in first if name.startswith("priorityclass")}
    assert len(kept) == 2, "what was deployed names them"
    assert of_the_cluster(cluster) == (both - first) | kept


def test_every_value_may_be_changed_by_an_upgrade_and_back(cluster: Running, releases: Releases) -> None:
    """None of them ends in a field that cannot be changed: all at once, then the names, then none."""
    releases.do("install", "paceline", HOME)
    releases.do("upgrade", "paceline", HOME, "-f", FULL)
    releases.do("upgrade", "paceline", HOME, "-f", FULL, fullnameOverride="ours", priorityClasses__server=2)
    releases.do("upgrade", "paceline", HOME)
    (deployment,) = json.loads(cluster.kubectl("get", "deployments", "-n", HOME, "-o", "json").stdout)["items"]
    assert deployment["metadata"]["name"] == "paceline"
    (spec,) = deployment["spec"]["template"]["spec"]["containers"]
    assert {one["name"]: one.get("value") for one in spec["env"]}["PACELINE_LOG_FORMAT"] == "text"


def test_a_missing_namespace_is_told_before_anything_is_made(cluster: Running, releases: Releases) -> None:
    told = releases.try_to("install", "paceline", "one", namespaces=["one", "team-a", "absent"])
    assert "namespace absent" in told
    assert of_the_cluster(cluster) == set()
    releases.do("install", "paceline", "one", namespaces=["one", "team-a"])


def test_a_release_that_has_failed_is_mended_by_the_next_upgrade(releases: Releases) -> None:
    """Its own namespace among those that it works in; no uninstall in between."""
    lost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lost", "namespace": "absent"}}
    assert '"absent" not found' in releases.try_to(
        "install", "paceline", "one", namespaces=["one"], extraObjects=[lost]
    )
    releases.do("upgrade", "paceline", "one", "--install", namespaces=["one"])


def test_a_new_release_takes_over_what_an_old_one_has_left(cluster: Running, releases: Releases) -> None:
    """The CRDs have stayed, here without a release."""
    with_crds = ("--set", "crds.enabled=true")
    assert "invalid ownership metadata" in releases.try_to("install", "paceline", HOME, *with_crds)
    releases.do("upgrade", "paceline", HOME, "--install", *with_crds, "--take-ownership")
    releases.do("uninstall", "paceline", HOME)
    names = [crd["metadata"]["name"] for crd in crds()]
    assert cluster.kubectl("get", "crd", *names).stdout.count("paceline.dev") == len(names) > 1


def test_the_same_release_in_another_namespace_finds_priority_classes_too(releases: Releases) -> None:
    """So to leave the CRDs out is not enough."""
    releases.do("install", "paceline", "one")
    releases.do("uninstall", "paceline", "one")
    told = releases.try_to("install", "paceline", "two")
    assert 'PriorityClass "paceline-server-1"' in told
    assert "invalid ownership metadata" in told
    releases.do("install", "paceline", "two", "--take-ownership")


def test_an_installation_without_helm_is_told_by_its_cluster_role(cluster: Running, releases: Releases) -> None:
    """Kustomize and Argo CD leave no release's name."""
    (role,) = [one for one in of_kind(template(), "ClusterRole") if one["metadata"]["name"] == "paceline"]
    cluster.kubectl("apply", "--server-side", "-f", "-", given=role)
    try:
        told = releases.try_to("install", "second", "two")
        assert "(of ClusterRole paceline)" in told
    finally:
        cluster.kubectl("delete", "clusterrole", "paceline")


def test_a_release_without_a_cluster_role_is_found_by_no_other(releases: Releases) -> None:
    """So `rbac.create: false` leaves it to its administrator to keep two apart."""
    releases.do("install", "first", "one", rbac__create=False)
    releases.do("install", "second", "two")


def test_a_chart_of_ones_own_packaging_is_taken_with_a_version_that_says_so(cluster: Running, tmp_path: Path) -> None:
    """Semantic versions have build metadata after a +, and labels no +."""
    packaged = helm("package", CHART, "--version", "0.1.0+site.1", "--destination", tmp_path)
    assert packaged.returncode == 0, packaged.stderr
    (archive,) = tmp_path.glob("*.tgz")
    done = helm("template", "paceline", archive, "--namespace", HOME)
    objects = [one for one in yaml.load_all(done.stdout, yaml.CSafeLoader) if one]
    assert strictly(cluster, objects) == ""
    assert {one["metadata"]["labels"]["helm.sh/chart"] for one in of_kind(objects, "Service")} == {
        "paceline-0.1.0_site.1"
    }


@pytest.fixture
def tenant(cluster: Running, tmp_path: Path) -> Path:
    """The kubeconfig of an account that may do all in its namespace, and nothing elsewhere."""
    cluster.kubectl("create", "serviceaccount", "admin", "-n", "tenant")
    cluster.kubectl("create", "role", "all", "-n", "tenant", "--verb=*", "--resource=*.*")
    cluster.kubectl("create", "rolebinding", "all", "-n", "tenant", "--role=all", "--serviceaccount=tenant:admin")
    config = json.loads(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", "admin", "-n", "tenant").stdout.strip()
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps({**config, "users": [{"name": "admin", "user": {"token": token}}]}))
    return path


def test_a_tenant_installs_it_without_a_right_of_the_cluster(
    cluster: Running, tenant: Path, releases: Releases
) -> None:
    theirs = Releases(tenant)
    assert "forbidden" in theirs.try_to("install", "paceline", "tenant", namespaces=["tenant"])
    case = CHART / "ci" / "tenant-values.yaml"
    theirs.do("install", "paceline", "tenant", "-f", case, namespaces=["tenant"])
    assert of_the_cluster(cluster) == set()
    theirs.do("uninstall", "paceline", "tenant")
