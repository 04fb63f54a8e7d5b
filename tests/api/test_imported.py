"""The file of `paceline measure`, applied by kubectl to a real API server."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.api.operating import an_operator
from tests.api.test_namespaces import within
from tests.support import imported
from tests.support.apiserver import Running

from paceline.measure import record
from paceline.measure.applying import LARGEST_ANNOTATION, OF_KUBECTL, applying, written

HERE = "imported"
SECONDS = 90


@pytest.fixture(scope="module")
def server(apiserver: Running) -> Iterator[Running]:
    apiserver.kubectl("create", "namespace", HERE)
    yield apiserver
    apiserver.kubectl("delete", "namespace", HERE, "--wait=false")


def saved(directory: Path, run: dict[str, Any]) -> str:
    """As `paceline measure` saves it, which knows of no namespace."""
    file = directory / "run.yaml"
    record.save(file, {**run, "metadata": {"name": run["metadata"]["name"]}})
    return str(file)


def stored(server: Running, name: str = imported.NAME) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.kubectl("get", "bench", name, "-n", HERE, "-o", "json").stdout)
    return found


def test_the_file_is_judged_anew_and_stays_as_it_was_judged(server: Running, tmp_path: Path) -> None:
    """Its own status is dropped, and applying it again, by whatever way, changes nothing."""
    run = imported.with_status()
    run["status"]["verdict"]["message"] = "as the file says"
    file, log = saved(tmp_path, run), tmp_path / "log"
    server.kubectl("apply", "-n", HERE, "-f", file)
    assert "status" not in stored(server)
    with an_operator(server.kubeconfig, log, PACELINE_NAMESPACES=HERE, PACELINE_IMPORTED_EVIDENCE="true"):
        assert within(SECONDS, lambda: "conditions" in stored(server).get("status", {})), log.read_text()[-3000:]
        first = stored(server)
        assert (first["status"]["verdict"]["outcome"], first["status"]["imported"]) == ("Promote", True)
        assert "measured without a cluster" in first["status"]["verdict"]["message"]
        server.kubectl("apply", "-n", HERE, "-f", file)
        server.kubectl("apply", "-n", HERE, "-f", file, "--server-side", "--force-conflicts")
        again = stored(server)
        assert (again["spec"], again["status"]) == (first["spec"], first["status"])
        assert again["metadata"]["generation"] == 1
    assert server.kubectl("get", "jobs", "-n", HERE, "-o", "name").stdout == ""
    run["spec"]["measured"]["rounds"].pop()
    other = server.kubectl("apply", "-n", HERE, "-f", saved(tmp_path, run), check=False).stderr
    assert "spec is immutable: make another BenchmarkRun" in other


@pytest.mark.parametrize(
    ("size", "way"), [(LARGEST_ANNOTATION - OF_KUBECTL, ""), (LARGEST_ANNOTATION, " --server-side")]
)
def test_a_large_file_is_applied_as_it_is_told(server: Running, tmp_path: Path, size: int, way: str) -> None:
    """Beyond that, kubectl's annotation is too long for the API server; without it, the file is not."""
    run = {**imported.with_status(), "metadata": {"name": f"large{way.replace(' ', '')}"}}
    run["status"] = {**run["status"], "node": ""}
    run["status"]["node"] = "<" + "x" * (size - written(run) - len("<     "))
    assert written(run) == size
    (line,) = applying("run.yaml", run, datetime.now(UTC))
    assert line.startswith(f"kubectl apply{way} -f run.yaml")
    file = saved(tmp_path, run)
    plain = server.kubectl("apply", "-n", HERE, "--validate=false", "-f", file, check=False)
    assert ("metadata.annotations: Too long" in plain.stderr) is bool(way), plain.stderr
    server.kubectl("apply", "-n", HERE, "--validate=false", "-f", file, "--server-side", "--force-conflicts")


def test_it_is_bounded(server: Running, tmp_path: Path) -> None:
    run = imported.with_status()
    measured = run["spec"]["measured"]
    for rounds, said in (
        ([*measured["rounds"][:1]] * 65, "Too many: 65: must have at most 64 items"),
        (["x" * 4097], "spec.measured.rounds[0]: Too long"),
        ([1], 'must be of type string: "integer"'),
    ):
        spec = {**run["spec"], "measured": {**measured, "rounds": rounds}}
        wrong = {**run, "metadata": {"name": "wrong"}, "spec": spec}
        refused = server.kubectl("apply", "-n", HERE, "-f", saved(tmp_path, wrong), check=False)
        assert said in refused.stderr
