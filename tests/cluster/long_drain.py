"""A node is drained half way through a roll-out. It takes the node from all other stories: `make test-all`."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from tests.cluster.example import emulated, small
from tests.cluster.long_rollouts import progress, ready, target
from tests.cluster.test_borrow import fill
from tests.cluster.test_capacity import PRODUCT
from tests.cluster.test_rollouts import promote
from tests.support.kubernetes import Manifest, Namespace, condition, kubectl, labels_of, listed, says
from tests.support.queries import pool_of, served

NAME = "drained"
LABELS = f"paceline.dev/deployment={NAME},paceline.dev/component=server"
SLOW = {"env": emulated(STARTUP_SECONDS="12")}
"""A new server loads for as long as a story needs to find its node."""


Drain = Callable[[str], Future[str]]


@pytest.fixture
def drain() -> Iterator[Drain]:
    """Begins to drain a node of the deployment's pods; afterwards the nodes take pods again."""
    nodes = [node["metadata"]["name"] for node in listed("nodes", "--selector", PRODUCT)]
    ours = ("--pod-selector", f"paceline.dev/deployment={NAME}")
    options = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s")
    with ThreadPoolExecutor() as beside:
        yield lambda node: beside.submit(kubectl, "drain", node, *ours, *options)
    kubectl("uncordon", *nodes)


@pytest.mark.timeout(480)
def test_the_node_of_the_new_server(here: Namespace, hub: str, drain: Drain) -> None:
    """And no other has room for it: the winner replaces the old server in place."""
    old, new = half_way(here, hub)
    assert node_of(new) != node_of(old)
    fill(here, [node_of(old)])
    drain(node_of(new)).result()
    told = here.wait("it to be told", lambda: "unschedulable" in progress(here, NAME) and progress(here, NAME), 30)
    assert "Insufficient nvidia.com/gpu" in told
    assert says(here.get("specdep", NAME), "Ready", "True", "Serving")
    here.wait("it to be withdrawn", lambda: target(here, NAME).get("surge") == "Withdrawn", 90)
    ends_well(here, node_of(old))


@pytest.mark.timeout(480)
def test_the_node_of_the_old_server(here: Namespace, hub: str, drain: Drain) -> None:
    """Nothing serves until the new one is ready."""
    old, new = half_way(here, hub)
    drained = drain(node_of(old))
    told = here.wait("it to be told", lambda: evicted(here), 10)
    assert f"taken off node {node_of(old)}: EvictionByEvictionAPI" in told
    drained.result()
    ends_well(here, node_of(new))


def evicted(here: Namespace) -> str:
    """What Ready says while a server is taken off its node; "" before and after that."""
    found = condition(here.get("specdep", NAME), "Ready") or {}
    return str(found["message"]) if found.get("reason") == "Evicted" else ""


def half_way(here: Namespace, hub: str) -> tuple[Manifest, Manifest]:
    """The old server, which serves, and the new one, which loads on its node."""
    here.apply(small(NAME, hub, promotion={"mode": "Manual"}, engine=SLOW))
    here.wait("a verdict", lambda: says(here.get("specdep", NAME), "Promoted", "False", "AwaitingPromote"), 240)
    promote(here, "once", NAME)
    return here.wait("one server more", lambda: old_and_new(here), 30)


def old_and_new(here: Namespace) -> tuple[Manifest, Manifest] | None:
    by_arm = {labels_of(pod)["paceline.dev/arm"]: pod for pod in here.list("pods", LABELS)}
    if by_arm.keys() != {"baseline", "wide"} or not node_of(by_arm["wide"]):
        return None
    assert ready(by_arm["baseline"])
    assert not ready(by_arm["wide"])
    return by_arm["baseline"], by_arm["wide"]


def ends_well(here: Namespace, node: str) -> None:
    """One server, of the winner, on the node that is left; the pool has lent nothing."""
    here.wait("the winner to be served", served(here, NAME, "wide"), 90)
    here.wait("the others to have ended", lambda: len(here.list("pods", LABELS)) == 1, 60)
    (server,) = here.list("pods", LABELS)
    assert node_of(server) == node
    entry = pool_of(here.get("specdep", NAME))
    assert not (entry.keys() | entry["internal"].keys()) & {"borrowed", "loan", "holds"}


def node_of(pod: Manifest) -> str:
    return str(pod["spec"].get("nodeName", ""))
