"""The chart by helm, with its operator at work: `helm test`, an upgrade that switches on what can be switched on, two
releases side by side, uninstalled and installed again.

It replaces the operator that the cluster has: `make test-all`.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cluster.chaos.machines import CHART, HELM, STATE, helm, installed
from tests.cluster.conftest import namespace_for
from tests.cluster.example import small
from tests.support.kubernetes import OPERATOR, Namespace, kubectl, listed
from tests.support.queries import pool_of, served

pytestmark = pytest.mark.timeout(600)

IMAGE = ("--set", "image.repository=localhost/paceline,image.tag=dev,image.pullPolicy=IfNotPresent")
SCRAPER = """
import ssl, sys, urllib.error, urllib.request
context = ssl.create_default_context(cafile="/tls/tls.crt")
asked = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Bearer {sys.argv[2]}"})
try:
    print(urllib.request.urlopen(asked, context=context, timeout=10).read().decode())
except urllib.error.HTTPError as error:
    print("status", error.code)
"""


@pytest.fixture
def as_before() -> Iterator[None]:
    """Afterwards the operator of `make operator-up` is there again."""
    yield
    helm("uninstall", "paceline", "--wait", check=False)
    installed()


@pytest.mark.usefixtures("as_before")
def test_an_upgrade_switches_everything_on_under_a_deployment_that_serves(here: Namespace, hub: str) -> None:
    """JSON logs, two replicas with a budget, a policy, and metrics that are read with a token only."""
    here.apply(small("served", hub))
    before = here.wait("the winner to be served", served(here, "served", "wide"), 180)
    helm("test", "paceline")

    certificate()
    on = "metrics.authentication=true,metrics.tlsSecret=metrics-tls,log.format=json,replicas=2"
    more = "podDisruptionBudget.enabled=true,networkPolicies.operator.enabled=true"
    helm("upgrade", "paceline", str(CHART), "--reset-then-reuse-values", "--set", on, "--set", more, "--wait")
    helm("test", "paceline")
    for pod in operators():
        lines = kubectl("--namespace", OPERATOR, "logs", pod).splitlines()
        assert lines
        assert all({"message", "timestamp", "severity"} <= json.loads(line).keys() for line in lines)
    assert "paceline_leading" in scraped("scraper", bound=True)
    assert scraped("stranger", bound=False) == "status 403\n"

    after = here.get("specdep", "served")
    assert pool_of(after)["serving"] == pool_of(before)["serving"]

    helm("rollback", "paceline", "--wait")
    helm("test", "paceline")


def certificate() -> None:
    """In a Secret of the release's namespace, for the name of the Service."""
    name = f"paceline.{OPERATOR}.svc"
    place = STATE / "tls-of-a-test"
    place.mkdir(exist_ok=True)
    made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    named = ["-subj", "/CN=paceline", "-addext", f"subjectAltName=DNS:{name}"]
    files = ["-keyout", str(place / "tls.key"), "-out", str(place / "tls.crt")]
    subprocess.run(["openssl", "req", *made, *named, *files], check=True, capture_output=True)
    kubectl("--namespace", OPERATOR, "delete", "secret", "metrics-tls", "--ignore-not-found")
    pair = (f"--cert={place / 'tls.crt'}", f"--key={place / 'tls.key'}")
    kubectl("--namespace", OPERATOR, "create", "secret", "tls", "metrics-tls", *pair)


def operators() -> list[str]:
    pods = listed("pods", "--namespace", OPERATOR, "--selector", "app.kubernetes.io/name=paceline")
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def scraped(account: str, *, bound: bool) -> str:
    """What a pod in another namespace reads with the token of `account`."""
    with namespace_for("scraping") as there:
        there.kubectl("create", "serviceaccount", account)
        if bound:
            role = "--clusterrole=paceline-metrics-reader"
            kubectl("create", "clusterrolebinding", there.name, role, f"--serviceaccount={there.name}:{account}")
        there.kubectl("create", "configmap", "tls", f"--from-file={STATE / 'tls-of-a-test' / 'tls.crt'}")
        token = there.kubectl("create", "token", account).strip()
        url = f"https://paceline.{OPERATOR}.svc:8080/metrics"
        container = {
            "name": "scraper",
            "image": "localhost/paceline:dev",
            "command": ["python", "-c", SCRAPER, url, token],
            "volumeMounts": [{"name": "tls", "mountPath": "/tls"}],
        }
        volumes = [{"name": "tls", "configMap": {"name": "tls"}}]
        spec = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
        there.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "scraper"}, "spec": spec})
        ended = lambda: there.get("pod", "scraper")["status"]["phase"] in ("Succeeded", "Failed") or None  # noqa: E731
        there.wait("the scraper to end", ended, 90)
        try:
            return there.logs("scraper", "scraper")
        finally:
            if bound:
                kubectl("delete", "clusterrolebinding", there.name)


@pytest.mark.usefixtures("as_before")
def test_uninstalled_and_installed_again_it_serves_what_it_served(here: Namespace, hub: str) -> None:
    here.apply(small("served", hub))
    before = here.wait("the winner to be served", served(here, "served", "wide"), 180)
    standing = uids(here)
    helm("uninstall", "paceline", "--wait")
    here.wait("the operator's pod to be gone", lambda: not operators(), 60)
    assert uids(here) == standing, "servers go on"
    assert here.get("specdep", "served")["metadata"]["uid"] == before["metadata"]["uid"]
    installed()
    helm("test", "paceline")
    assert uids(here) == standing
    assert pool_of(here.get("specdep", "served"))["serving"] == pool_of(before)["serving"]


def uids(here: Namespace) -> set[str]:
    pods = here.list("pods", "paceline.dev/component=server")
    return {pod["metadata"]["uid"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


@pytest.mark.usefixtures("as_before")
def test_two_releases_of_one_name_each_work_in_their_own_namespace(hub: str) -> None:
    helm("uninstall", "paceline", "--wait")
    with namespace_for("works-a") as a, namespace_for("works-b") as b, release(a), release(b):
        for here in (a, b):
            here.apply(small("served", hub))
        for here in (a, b):
            here.wait("the winner to be served", served(here, "served", "wide"), 240)
            in_namespace("test", here)


@contextmanager
def release(here: Namespace) -> Iterator[None]:
    """Called paceline, without the CRDs, in the namespace that it works in."""
    in_namespace(
        "install", here, str(CHART), *IMAGE, "--set", f"namespaces={{{here.name}}},crds.enabled=false", "--wait"
    )
    try:
        yield
    finally:
        in_namespace("uninstall", here, "--wait")
        kubectl("delete", "priorityclass", "--selector", "app.kubernetes.io/name=paceline", "--wait=false")


def in_namespace(verb: str, here: Namespace, *more: str) -> None:
    command: list[str | Path] = [HELM, "--kubeconfig", STATE / "kubeconfig", "--namespace", here.name]
    done = subprocess.run([*command, verb, "paceline", *more], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
