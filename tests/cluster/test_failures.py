"""What the cluster does to a round: it says nothing about a candidate, and the run goes on where it can."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cluster.example import small
from tests.cluster.test_examples import EXAMPLES, H200
from tests.cluster.volumes import claim
from tests.support.kubernetes import STATE, Manifest, Namespace, condition, ended, kubectl, listed, says
from tests.support.overlay import merged
from tests.support.queries import finished, measuring, run_of, served

UP = Path(__file__).parents[2] / "dev" / "cluster" / "up"
NEVER_PULLED: Manifest = {"spec": {"containers": [{"name": "server", "imagePullPolicy": "Never"}]}}
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


def test_an_evicted_round_is_tried_again(here: Namespace, hub: str) -> None:
    """As a drain does it."""
    here.apply(small("evicted", hub))
    run = here.wait("a run", run_of(here, "evicted"), 90)
    pod = here.wait("the first round to measure", measuring(here, run, 0), 60)
    evict(here, pod)

    status = here.wait("the verdict", finished(here, run), 150)["status"]
    assert tries(status) == [(0, 0, "Evicted"), (0, 1, ""), (1, 0, "")]
    why = status["rounds"][0]["error"]  # as often as not the pod is gone before its Job has ended
    assert "EvictionByEvictionAPI" in why or why == "its pod is gone"
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "wide")


def test_an_image_that_is_not_there_blames_no_candidate(here: Namespace) -> None:
    manifest: Manifest = yaml.safe_load((EXAMPLES / "benchmark-only.yaml").read_text())
    absent = {"image": "localhost/paceline-absent:0", "podTemplate": NEVER_PULLED}
    manifest["spec"] = merged(manifest["spec"], H200 | {"engine": absent})
    here.apply(claim(manifest["spec"]["cache"]["existingClaim"]))
    here.apply(manifest)

    status = here.wait("the end", finished(here, manifest), 180)["status"]  # with 15 and 30 s between tries
    assert tries(status) == [(0, number, "ImagePull") for number in range(3)]
    assert "paceline-absent:0" in status["rounds"][-1]["error"]
    assert (status["verdict"]["outcome"], status["verdict"]["reason"]) == ("Error", "ImagePull")
    assert says(here.get("bench", manifest["metadata"]["name"]), "Failed", "True", "Error")
    here.wait("its GPUs to be free", lambda: all(map(ended, here.list("pods"))), 60)


@pytest.fixture
def repaired() -> Iterator[None]:
    """Afterwards both nodes are back, and nothing says that one was gone."""
    yield
    for node in listed("nodes"):
        if any(taint["key"] == OUT_OF_SERVICE for taint in node["spec"].get("taints", ())):
            kubectl("taint", "node", node["metadata"]["name"], f"{OUT_OF_SERVICE}-")
    subprocess.run([UP], check=True)


@pytest.mark.timeout(480)
@pytest.mark.usefixtures("repaired")
def test_a_run_goes_on_without_the_node_it_lost(here: Namespace, hub: str) -> None:
    """A kubelet dies in the second round, and its administrator says that the node is out of service. The operator, the
    hub and the pool's server may have run there too."""
    here.apply(small("lost", hub))
    run = here.wait("a run", run_of(here, "lost"), 90)
    pod = here.wait("the second round to measure", measuring(here, run, 1), 120)
    node = pod["spec"]["nodeName"]
    os.kill(kubelet_of(node), signal.SIGKILL)
    here.wait("the node to be given up", lambda: not answers(node), 120)
    kubectl("taint", "node", node, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute")

    status = here.wait("the verdict", finished(here, run), 180)["status"]
    assert tries(status) == [(0, 0, ""), (1, 0, "NodeLost"), (1, 1, "")]
    (other,) = {found["metadata"]["name"] for found in listed("nodes")} - {node}
    assert [round["node"] for round in status["rounds"]] == [node, node, other]
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "wide")
    here.wait("the winner to be served", served(here, "lost", "wide"), 90)


def tries(status: Manifest) -> list[tuple[int, int, str]]:
    """Round, try and what went wrong with it, "" for nothing."""
    return [(round["round"], round["try"], round.get("reason", "")) for round in status["rounds"]]


def evict(here: Namespace, pod: Manifest) -> None:
    name = pod["metadata"]["name"]
    asked = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": here.name},
    }
    path = f"/api/v1/namespaces/{here.name}/pods/{name}/eviction"
    kubectl("create", "--raw", path, "-f", "-", feed=json.dumps(asked))


def kubelet_of(node: str) -> int:
    """`NAME-0` is the first node: its kubelet's number on this machine."""
    return int((STATE / "run" / f"kubelet-{node.rpartition('-')[2]}.pid").read_text())


def answers(node: str) -> bool:
    (found,) = [one for one in listed("nodes") if one["metadata"]["name"] == node]
    ready = condition(found, "Ready")
    return ready is not None and ready["status"] == "True"
