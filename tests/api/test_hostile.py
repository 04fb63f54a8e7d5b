"""Objects that are made to stop or to swell the operator, beside good ones, on a real API server.

The API server takes objects that are nested 10,000 deep and of 1.5 MiB. Who makes them may harm nobody but themselves.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.operating import an_operator
from tests.support.apiserver import Running, start
from tests.support.edits import example, example_run

ROOT = Path(__file__).parents[2]
NAMESPACE, GOOD, SECONDS = "crowded", 50, 300
ONE, TWO = "SpeculativeDeployment", "BenchmarkRun"
OURS = {"app.kubernetes.io/managed-by": "paceline"}
PATHS = {
    ONE: "/apis/paceline.dev/v1alpha1/namespaces/crowded/speculativedeployments",
    TWO: "/apis/paceline.dev/v1alpha1/namespaces/crowded/benchmarkruns",
    "ControllerRevision": "/apis/apps/v1/namespaces/crowded/controllerrevisions",
}


def deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels):
        found = {"a": found}
    return found


def fat(number: int) -> dict[str, Any]:
    """1.35 MB as JSON. As Python's objects the first two have 36 MB; with them the API server takes its time, too."""
    return {"spec": {"nothing": [{}] * 450_000 if number < 2 else "x" * 1_350_000}}


def deployment(name: str) -> dict[str, Any]:
    manifest = example("ngram-no-draft")
    manifest["metadata"] = {"name": name, "namespace": NAMESPACE}
    return manifest


def run(name: str, template: dict[str, Any]) -> dict[str, Any]:
    manifest = example_run()
    manifest["metadata"] = {"name": name, "namespace": NAMESPACE}
    manifest["spec"]["engine"]["podTemplate"] = template
    return manifest


def revision(name: str, data: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": OURS}
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": 1, "data": data}


def hostile() -> Iterator[dict[str, Any]]:
    for number in range(5):
        yield run(f"fat-{number}", fat(number))
        manifest = deployment(f"fat-{number}")
        manifest["spec"]["engine"]["podTemplate"] = fat(number)
        yield manifest
    # Too deep for Python's parser; or only for what comes after it. With a kind of its own the API server is quick.
    yield revision("deep", deep(9_900))
    for levels in (200, 1_500):
        yield run(f"deep-{levels}", deep(levels))
        manifest = deployment(f"deep-{levels}")
        manifest["spec"]["engine"]["podTemplate"] = deep(levels)
        yield manifest


def in_json(manifest: dict[str, Any]) -> str:
    """Python's encoder gives up on what is deep, too."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        return json.dumps(manifest)
    finally:
        sys.setrecursionlimit(limit)


def most_memory(process: "subprocess.Popen[bytes]") -> int:
    """Bytes that were resident at once, at most."""
    fields = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in fields if line.startswith("VmHWM"))) * 1024


def told(apiserver: Running, kind: str) -> set[str]:
    """Names of those that have a status, in the server's own table: nothing else of them is sent."""
    rows = apiserver.kubectl("get", kind, "-n", NAMESPACE, "-o", "wide", "--no-headers").stdout.splitlines()
    without = {ONE: 3, TWO: 4}[kind]  # columns of one without a status: name, pool, purpose and age
    return {row.split()[0] for row in rows if len(row.split()) > without}


def says(apiserver: Running, kind: str, name: str, condition: str) -> str:
    path = f'jsonpath={{.status.conditions[?(@.type=="{condition}")].message}}'
    return apiserver.kubectl("get", kind, "-n", NAMESPACE, name, "-o", path).stdout


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Running]:
    """An API server of its own: it takes its time with what is hostile."""
    running = start(tmp_path / "apiserver")
    try:
        running.install(ROOT / "crds")
        running.kubectl("create", "namespace", NAMESPACE)
        for number in range(GOOD):
            created(running, deployment(f"good-{number}"))
        for manifest in hostile():
            created(running, manifest)
        yield running
    finally:
        running.stop()


def created(apiserver: Running, manifest: dict[str, Any]) -> None:
    headers = [f"Authorization: Bearer {apiserver.token}", "Content-Type: application/json"]
    argv = ["curl", "-sSk", "-m", "120", "-w", "%{http_code}", *(word for one in headers for word in ("-H", one))]
    argv += ["--data-binary", "@-", apiserver.url + PATHS[manifest["kind"]]]
    done = subprocess.run(argv, input=in_json(manifest), capture_output=True, text=True, check=True)
    assert done.stdout.endswith("201"), done.stdout[-500:]


@pytest.mark.timeout(900)
def test_the_good_ones_are_served_within_the_charts_memory(crowded: Running, tmp_path: Path) -> None:
    limit = yaml.safe_load((ROOT / "charts" / "paceline" / "values.yaml").read_text())["resources"]["limits"]["memory"]
    good = {f"good-{number}" for number in range(GOOD)}
    bad = [(m["kind"], m["metadata"]["name"]) for m in hostile() if m["kind"] in (ONE, TWO)]
    with an_operator(crowded.kubeconfig, tmp_path / "log") as operator:
        until = time.monotonic() + SECONDS
        waiting = {(ONE, name) for name in good} | set(bad)
        while waiting and time.monotonic() < until:
            time.sleep(2)
            assert operator.poll() is None, (tmp_path / "log").read_text()[-3000:]
            waiting -= {(kind, name) for kind in (ONE, TWO) for name in told(crowded, kind)}
        memory = most_memory(operator)
    log = (tmp_path / "log").read_text()
    assert waiting == set(), log[-3000:]
    for kind, name in bad:
        said = says(crowded, kind, name, {ONE: "Stalled", TWO: "Failed"}[kind])
        assert ("at most 262144 are read" if name.startswith("fat") else "nested deeper than 100 levels") in said
    assert "is lost" not in log
    assert limit.endswith("Mi")
    assert memory < int(limit.removesuffix("Mi")) * 2**20, f"{memory / 2**20:.0f} MiB of {limit}"
