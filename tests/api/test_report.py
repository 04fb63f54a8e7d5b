"""`paceline report` and the kubectl plugin on a real API server: a name is enough."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.apiserver import BINARIES, Running
from tests.support.reports import demo

from paceline import cli
from paceline.core import WAVES
from paceline.measure import record

NAMESPACE = "reports"
LATENCY, THROUGHPUT = (run["metadata"]["name"] for run in demo())


@pytest.fixture(scope="module")
def kubeconfig(apiserver: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its context's namespace holds the runs of a demo."""
    mine = tmp_path_factory.mktemp("kube") / "config"
    shutil.copy(apiserver.kubeconfig, mine)
    server = dataclasses.replace(apiserver, kubeconfig=mine)
    server.kubectl("create", "namespace", NAMESPACE)
    server.kubectl("config", "set-context", "--current", "--namespace", NAMESPACE)
    for run in demo():
        for workload in run["spec"]["workloads"]:  # recorded when three times the concurrency were enough
            workload["requests"] = max(workload["requests"], WAVES * workload["concurrency"])
        for document in record.as_documents(run | {"metadata": run["metadata"] | {"namespace": NAMESPACE}}):
            server.kubectl("create", "-f", "-", given=document)
        patch = json.dumps({"status": run["status"]})
        server.kubectl("patch", "bench", run["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch)
    return mine


def test_a_run_is_found_by_its_name(kubeconfig: Path, tmp_path: Path) -> None:
    """In the namespace of the context."""
    written = tmp_path / "report.json"
    assert cli.main(["report", LATENCY, "--kubeconfig", str(kubeconfig), "-o", str(written)]) == 0
    (run,) = json.loads(written.read_text())["runs"]
    assert (run["name"], run["outcome"]) == (LATENCY, "Promote")


def test_the_namespace_can_be_said(kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["report", THROUGHPUT, "--kubeconfig", str(kubeconfig), "-o", str(tmp_path / "report.md"), "-n"]
    assert cli.main([*words, NAMESPACE]) == 0
    assert cli.main([*words, "default"]) == 1
    assert "namespace default" in capsys.readouterr().err


def test_a_context_that_is_not_there_is_said(kubeconfig: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", LATENCY, "--kubeconfig", str(kubeconfig), "--context", "nobodys", "-o", "-"]) == 1
    assert "paceline report: --kubeconfig: " in capsys.readouterr().err


def test_kubectl_runs_the_plugin(kubeconfig: Path, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [BINARIES / "kubectl", "paceline", "report", LATENCY, THROUGHPUT, "-o", "report.html"]
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert "1.37x (1.36–1.37)" in (tmp_path / "report.html").read_text(encoding="utf-8")
