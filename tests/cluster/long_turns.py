"""Two runs on one node, which has room for one of them. It takes minutes: `make test-all`."""

import itertools
import json
from collections.abc import Iterator

import pytest
from tests.cluster.example import pool, small
from tests.cluster.test_capacity import HOST, PRODUCT, everywhere, filler, free_gpus, holds_gpus
from tests.support.kubernetes import Manifest, Namespace, kubectl, listed, says


@pytest.fixture
def strangers() -> Iterator[None]:
    """On every node a pod of nobody's, in a namespace without runs, that carries the label of our rounds."""
    names = []
    for node in listed("nodes", "--selector", PRODUCT):
        name = f"stranger-{node['metadata']['name']}"
        names.append(name)
        manifest = stranger(name, node["metadata"]["name"])
        kubectl("apply", "--namespace", "default", "-f", "-", feed=json.dumps(manifest))
    yield
    kubectl("delete", "pod", "--namespace", "default", *names, "--grace-period=0", "--force")


@pytest.mark.timeout(480)
@pytest.mark.usefixtures("strangers")
def test_two_runs_take_turns_on_the_node_that_has_room(here: Namespace, hub: str, nodes: tuple[str, str]) -> None:
    """One GPU is left when both pools are served: their rounds alternate on it, none is a try in vain, and strangers
    with our label hold nothing up."""
    here.wait("other stories to give their GPUs back", lambda: not any(map(holds_gpus, everywhere())), 120)
    by_hand = {"mode": "Manual"}  # or the servers of what is promoted first push the other pool's round aside
    here.apply(small("turns", hub, suspend=True, promotion=by_hand, pools=[pool(), pool() | {"name": "other"}]))
    here.wait("both pools to serve", lambda: says(here.get("specdep", "turns"), "Ready", "True", "Serving"), 120)
    first = next(node for node in nodes if free_gpus(node))
    fillers = [filler(node, rest) for node in nodes if (rest := free_gpus(node) - (node == first))]
    for pod in fillers:
        here.apply(pod)
    here.kubectl("wait", "--for=condition=Ready", "pod", *(pod["metadata"]["name"] for pod in fillers), "--timeout=30s")
    here.kubectl("patch", "specdep", "turns", "--type=merge", "-p", '{"spec":{"suspend":false}}')

    def both() -> list[Manifest] | None:
        found = here.list("bench", "paceline.dev/deployment=turns")
        return found if len(found) == 2 and all("verdict" in run.get("status", {}) for run in found) else None

    runs = here.wait("both verdicts", both, 300)
    rounds = sorted((one for run in runs for one in run["rounds"]), key=lambda one: str(one["startTime"]))
    assert [(one["node"], one.get("reason", "")) for one in rounds] == [(first, "")] * 4
    assert all(earlier["completionTime"] <= later["startTime"] for earlier, later in itertools.pairwise(rounds))
    assert {run["status"]["verdict"]["outcome"] for run in runs} == {"Promote"}


def stranger(name: str, node: str) -> Manifest:
    container = {"name": "idle", "image": "localhost/paceline:dev", "command": ["sleep", "infinity"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"paceline.dev/component": "round"}},
        "spec": {
            "nodeSelector": {HOST: node},
            "tolerations": [{"operator": "Exists"}],
            "containers": [{**container, "resources": {"requests": {"cpu": "1m"}}}],
        },
    }
