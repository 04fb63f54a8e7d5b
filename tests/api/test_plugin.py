"""`kubectl paceline` on a real API server, with the status that a story leaves."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.plan.test_changes import upgraded
from tests.support.apiserver import BINARIES, Running
from tests.support.world import example
from tests.unit.cli.states import both_promoted

NAMESPACE, NAME = "plugin", "qwen3-coder-next"


@pytest.fixture(scope="module")
def kubeconfig(apiserver: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its context's namespace holds a deployment with both pools promoted, and their runs."""
    mine = tmp_path_factory.mktemp("kube") / "config"
    shutil.copy(apiserver.kubeconfig, mine)
    server, world = dataclasses.replace(apiserver, kubeconfig=mine), both_promoted()
    server.kubectl("create", "namespace", NAMESPACE)
    server.kubectl("config", "set-context", "--current", "--namespace", NAMESPACE)
    for kind, plural in (("SpeculativeDeployment", "specdep"), ("BenchmarkRun", "bench")):
        for one in world.cluster.of(kind):
            metadata = {"name": one["metadata"]["name"], "labels": one["metadata"].get("labels") or {}}
            made = {**one, "metadata": {**metadata, "namespace": NAMESPACE}}
            server.kubectl("create", "-f", "-", given={key: made[key] for key in made if key != "status"})
            patch = json.dumps({"status": one["status"]})
            server.kubectl("patch", plural, metadata["name"], "--subresource=status", "--type=merge", "-p", patch)
    for one in (*world.cluster.of("ControllerRevision"), *world.cluster.of("Deployment")):
        metadata = {key: one["metadata"][key] for key in ("name", "labels")} | {"namespace": NAMESPACE}
        kept = {key: one[key] for key in one if key != "status"}
        server.kubectl("create", "-f", "-", given={**kept, "metadata": metadata})
    return mine


def plugin(kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig)}
    return subprocess.run(
        [BINARIES / "kubectl", "paceline", *words], env=environment, capture_output=True, text=True, check=False
    )


def test_kubectl_shows_a_deployment(kubeconfig: Path) -> None:
    """Without a name, as there is only one; without colours, as it is no terminal."""
    status = plugin(kubeconfig, "status")
    assert status.stdout.startswith(f"{NAMESPACE}/{NAME}  Serving  latency=wide 1.36x throughput=narrow 1.03x\n")
    assert "\x1b" not in status.stdout
    assert "narrow 1.03x (emulated)" in status.stdout
    assert plugin(kubeconfig, "why", "--pool", "latency").stdout.startswith("latency serves wide (revision ")
    assert "Promoted  wide" in plugin(kubeconfig, "history").stdout


def test_a_plan_of_an_edit_compares_it_with_what_serves(kubeconfig: Path, tmp_path: Path) -> None:
    """Three arms of each pool in every round: the changed spec's two, and what serves now."""
    manifest = example("latency")
    upgraded(manifest["spec"])
    edited = tmp_path / "edited.yaml"
    edited.write_text(yaml.safe_dump({**manifest, "metadata": {"name": NAME}}))

    def planned(*words: str) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).parent / "paceline", "plan", edited, "--start-seconds", "60", *words]
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    plan = planned("-n", NAMESPACE)
    assert plan.returncode == 0, plan.stderr
    assert re.search(r"latency +3-8 +3-8 +9-24 ", plan.stdout), plan.stdout
    assert "the image changed" in plan.stdout
    assert re.search(r"latency +3-8 +3-8 +6-16 ", planned().stdout)
    nowhere = planned("-n", NAMESPACE, "--kubeconfig", str(tmp_path / "none"))
    assert (nowhere.returncode, "no kubeconfig" in nowhere.stderr) == (1, True)


def test_its_gate_has_the_code_of_the_worst_pool(kubeconfig: Path) -> None:
    gate = plugin(kubeconfig, "gate", NAME, "--wait", "10s", "-o", "json")
    assert (gate.returncode, json.loads(gate.stdout)["outcome"]) == (0, "Promote"), gate.stderr


def test_a_request_is_an_annotation_and_nothing_else_is_written(apiserver: Running, kubeconfig: Path) -> None:
    """No operator is here: it is written, nobody answers, and that is told."""
    before = json.loads(apiserver.kubectl("get", "specdep", NAME, "-n", NAMESPACE, "-o", "json").stdout)
    asked = plugin(kubeconfig, "retry", NAME, "--pool", "latency", "--token", "one", "--timeout", "1s")
    assert asked.returncode == 1
    assert "retry.paceline.dev/latency=one" in asked.stderr
    after = json.loads(apiserver.kubectl("get", "specdep", NAME, "-n", NAMESPACE, "-o", "json").stdout)
    assert after["metadata"]["annotations"] == {"retry.paceline.dev/latency": "one"}
    assert (after["spec"], after["metadata"]["generation"]) == (before["spec"], before["metadata"]["generation"])


def test_who_may_not_read_is_told_which_right_is_missing(apiserver: Running, kubeconfig: Path, tmp_path: Path) -> None:
    apiserver.kubectl("create", "serviceaccount", "nobody", "-n", NAMESPACE)
    token = apiserver.kubectl("create", "token", "nobody", "-n", NAMESPACE).stdout.strip()
    theirs = tmp_path / "config"
    shutil.copy(kubeconfig, theirs)
    server = dataclasses.replace(apiserver, kubeconfig=theirs)
    server.kubectl("config", "set-credentials", "nobody", f"--token={token}")
    server.kubectl("config", "set-context", "--current", "--user", "nobody")
    said = plugin(theirs, "status", NAME)
    assert said.returncode == 1
    what = f"no permission to get speculativedeployments in namespace {NAMESPACE}"
    assert what in said.stderr
