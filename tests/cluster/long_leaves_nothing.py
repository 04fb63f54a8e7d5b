"""dev/cluster from `up` to `down`: in time, again, after crashes, and without a trace.

A cluster of its own, beside the one that other tests use: another name, other addresses, another state directory.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.machine import Machine, alive, differences, holders, machine, mentions, processes_of

SCRIPTS = Path(__file__).parents[2] / "dev" / "cluster"
KUBECTL = Path(os.environ.get("PACELINE_CACHE", Path.home() / ".cache" / "paceline")) / "bin" / "kubectl"
NAME = "pace-test"
UP_SECONDS = 45.0

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    state: Path
    before: Machine

    @property
    def settings(self) -> dict[str, str]:
        """CLUSTER: what is held here is the own one, also where the other tests use kind's."""
        place = {"PACELINE_CLUSTER_NAME": NAME, "PACELINE_NET": "10.246", "PACELINE_STATE": str(self.state)}
        return {**place, "CLUSTER": "own"}

    def run(self, script: str) -> float:
        """Seconds it took."""
        started = time.monotonic()
        done = subprocess.run([SCRIPTS / script], env=os.environ | self.settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return time.monotonic() - started

    def kubectl(self, *arguments: str) -> str:
        command = [str(KUBECTL), f"--kubeconfig={self.state}/kubeconfig", *arguments]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", *arguments, "-o", "json"))["items"]
        return found

    def pids(self) -> dict[str, int]:
        """Program and node → recorded process."""
        return {file.stem: int(file.read_text()) for file in (self.state / "run").iterdir()}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    for prepare in ("install-packages", "build"):
        subprocess.run([SCRIPTS / prepare], check=True)
    cluster = Cluster(state=tmp_path_factory.mktemp("cluster") / "state", before=machine())
    yield cluster
    cluster.run("down")


def test_up_leads_to_two_ready_nodes_with_gpus(cluster: Cluster) -> None:
    assert cluster.run("up") < UP_SECONDS
    nodes = cluster.items("nodes")
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8"]
    assert {node["metadata"]["labels"]["nvidia.com/gpu.product"] for node in nodes} == {"NVIDIA-H200"}
    assert [node["status"]["allocatable"]["google.com/tpu"] for node in nodes] == ["4", "4"]
    assert {
        condition["status"]
        for node in nodes
        for condition in node["status"]["conditions"]
        if condition["type"] == "Ready"
    } == {"True"}


def test_up_again_changes_nothing(cluster: Cluster) -> None:
    programs = cluster.pids()
    assert cluster.run("up") < UP_SECONDS / 4
    assert cluster.pids() == programs


def test_a_released_volume_is_emptied_and_offered_again(cluster: Cluster) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "models"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "400Gi"}}},
    }
    file = cluster.state / "claim.json"
    file.write_text(json.dumps(claim))
    cluster.kubectl("create", "-f", str(file))
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/models", "--timeout=10s")
    volume = cluster.kubectl("get", "pvc/models", "-o", "jsonpath={.spec.volumeName}")
    directory = Path(cluster.kubectl("get", f"pv/{volume}", "-o", "jsonpath={.spec.hostPath.path}"))
    assert directory.stat().st_mode & 0o777 == 0o777
    (directory / "weights").touch()
    cluster.kubectl("delete", "pvc/models")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Released", f"pv/{volume}", "--timeout=10s")
    cluster.run("up")
    cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Available", f"pv/{volume}", "--timeout=10s")
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize("program", ["kubelet-1", "etcd-0", "containerd-0"])
def test_up_repairs_what_was_killed(cluster: Cluster, program: str) -> None:
    cluster.kubectl("create", "configmap", f"before-{program}")
    programs = cluster.pids()
    os.kill(programs[program], signal.SIGKILL)
    assert cluster.run("up") < UP_SECONDS
    changed = {name for name, pid in cluster.pids().items() if pid != programs[name]}
    assert changed == {program}
    cluster.kubectl("get", "configmap", f"before-{program}")


def test_up_cleans_after_a_crash_of_everything(cluster: Cluster) -> None:
    old = processes_of(NAME)
    for pid in cluster.pids().values():
        os.kill(pid, signal.SIGKILL)
    assert alive(old) != [], "containers outlive the programs that were killed"
    assert cluster.run("up") < UP_SECONDS
    assert alive(old) == []
    assert [pod["status"]["phase"] for pod in cluster.items("pods", "--all-namespaces")] == ["Running"] * 5


def test_down_leaves_nothing(cluster: Cluster) -> None:
    processes = processes_of(NAME)
    namespaces = frozenset(name for process in processes for name in process.namespaces)
    assert len(processes) > 12, "six programs of the control plane and five of every node, pods not counted"
    assert len(namespaces) > 4, "a network and a mount namespace of every node, pods not counted"
    cluster.run("down")
    assert alive(processes) == []
    assert holders(namespaces) == []
    assert mentions(str(cluster.state)) == []
    assert not cluster.state.exists()
    assert differences(cluster.before, machine()) == []


def test_down_of_nothing_is_nothing(cluster: Cluster) -> None:
    cluster.run("down")
    assert differences(cluster.before, machine()) == []
