"""What a release publishes is installed by its digest from the registry that it was pushed to, and the operator works.

The dry run of a release (`dev/release/dry_run.py`) holds its registry on the cluster's bridge; the nodes pull from
there. It replaces the operator that the cluster has: `make test-all`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.cluster.chaos.machines import ROOT, helm, installed, kubectl
from tests.cluster.example import small
from tests.support.kubernetes import OPERATOR, STATE, Namespace, listed
from tests.support.queries import served

BRIDGE = "10.245.0.1"
NODES = (0, 1)


@contextmanager
def held() -> Iterator[dict[str, str]]:
    """What was published, while its registry serves."""
    log = ROOT / "build" / "long-release.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as said:
        command = [sys.executable, "-m", "dev.release.dry_run", "--address", BRIDGE, "--hold"]
        running = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said
        )
        try:
            assert running.stdout
            line = running.stdout.readline()
            assert line, log.read_text()[-3000:]
            yield json.loads(line)
        finally:
            assert running.stdin
            running.stdin.close()
            running.wait(60)


@contextmanager
def reachable(registry: str) -> Iterator[None]:
    """The nodes take it for one without TLS."""
    places = [STATE / f"node-{node}" / "registries" / registry for node in NODES]
    for place in places:
        place.mkdir(parents=True)
        # `server` alone does not make containerd 1.6 speak HTTP; without it HTTPS is tried last, and its error told
        host = f'[host."http://{registry}"]\n  capabilities = ["pull", "resolve"]\n'
        (place / "hosts.toml").write_text(f'server = "http://{registry}"\n{host}')
    try:
        yield
    finally:
        for place in places:
            (place / "hosts.toml").unlink()
            place.rmdir()


def operator_images() -> set[tuple[str, str]]:
    """As the pod asks for it, and what the node runs."""
    pods = listed("pods", "--namespace", OPERATOR, "--selector", "app.kubernetes.io/name=paceline")
    return {
        (pod["spec"]["containers"][0]["image"], status["imageID"])
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        for status in pod["status"]["containerStatuses"]
    }


@pytest.fixture(scope="module")
def published() -> Iterator[dict[str, str]]:
    with held() as said, reachable(said["registry"]):
        yield said


@pytest.mark.timeout(1800)
def test_the_published_chart_is_installed_by_its_digest_and_runs_the_published_image(
    published: dict[str, str], here: Namespace, hub: str
) -> None:
    chart = f"oci://{published['chart']}@{published['chartDigest']}"
    helm("uninstall", "paceline", "--wait", check=False)
    try:
        helm("install", "paceline", chart, "--plain-http", "--wait", "--timeout", "3m")
        ((asked, running),) = operator_images()
        assert asked.endswith(f"@{published['imageDigest']}")
        assert running == f"{published['image']}@{published['imageDigest']}"
        here.apply(small("one", hub))
        here.wait("the winner to be served", served(here, "one", "wide"), 240)
        rounds = listed("pods", "--namespace", here.name, "--selector", "paceline.dev/component=round")
        clients = {
            container["image"]
            for pod in rounds
            for container in (*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"])
            if container["name"] == "client"
        }
        assert clients == {asked}, "rounds take the operator's image, by its digest, too"
    finally:
        installed()


@pytest.mark.timeout(600)
def test_a_digest_that_the_registry_does_not_have_is_not_installed(published: dict[str, str]) -> None:
    chart = f"oci://{published['chart']}@{published['chartDigest']}"
    image = f"{published['image']}@sha256:{'0' * 64}"
    name = "never-published"
    kubectl("--namespace", OPERATOR, "run", name, "--image", image, "--restart=Never", "--command", "--", "true")
    try:
        kubectl(
            *("--namespace", OPERATOR, "wait", f"pod/{name}", "--timeout=120s"),
            "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImagePull",
        )
        why = kubectl(
            *("--namespace", OPERATOR, "get", f"pod/{name}", "--output"),
            "jsonpath={.status.containerStatuses[0].state.waiting.message}",
        )
        assert "not found" in why
    finally:
        kubectl("--namespace", OPERATOR, "delete", "pod", name, "--wait=false")
    refused = helm("install", "other", chart.replace(published["chartDigest"], f"sha256:{'0' * 64}"), check=False)
    assert refused.returncode != 0
