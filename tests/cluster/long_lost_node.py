"""A node that is lost in the middle of a run. It takes minutes: `make test-all`."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.example import small
from tests.cluster.test_failures import tries
from tests.support.kubernetes import STATE, Namespace, condition, kubectl, listed, only_on_the_own
from tests.support.queries import finished, measuring, run_of, served

UP = Path(__file__).parents[2] / "dev" / "cluster" / "up"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@pytest.fixture
def repaired() -> Iterator[None]:
    """Afterwards both nodes are back, and nothing says that one was gone."""
    yield
    for node in listed("nodes"):
        if any(taint["key"] == OUT_OF_SERVICE for taint in node["spec"].get("taints", ())):
            kubectl("taint", "node", node["metadata"]["name"], f"{OUT_OF_SERVICE}-")
    subprocess.run([UP], check=True)


@only_on_the_own
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

    ended = here.wait("the verdict", finished(here, run), 180)
    status = ended["status"]
    assert tries(ended) == [(0, 0, ""), (1, 0, "NodeLost"), (1, 1, "")]
    (other,) = {found["metadata"]["name"] for found in listed("nodes")} - {node}
    assert [round["node"] for round in ended["rounds"]] == [node, node, other]
    assert (status["verdict"]["outcome"], status["verdict"]["winner"]) == ("Promote", "wide")
    here.wait("the winner to be served", served(here, "lost", "wide"), 90)


def kubelet_of(node: str) -> int:
    """`NAME-0` is the first node: its kubelet's number on this machine."""
    return int((STATE / "run" / f"kubelet-{node.rpartition('-')[2]}.pid").read_text())


def answers(node: str) -> bool:
    (found,) = [one for one in listed("nodes") if one["metadata"]["name"] == node]
    ready = condition(found, "Ready")
    return ready is not None and ready["status"] == "True"
