"""Where servers and rounds may run: on nodes of the product that is asked for."""

from collections.abc import Iterator

import pytest
from tests.cluster.example import pool, small
from tests.support.kubernetes import Namespace, kubectl, listed
from tests.support.queries import finished, run_of, served

PRODUCT = "nvidia.com/gpu.product"
OTHER = "NVIDIA-A100-SXM4-80GB"


@pytest.fixture
def relabelled(nodes: tuple[str, str]) -> Iterator[str]:
    """A node that has GPUs of another product for as long as the test takes."""
    node = nodes[1]
    (before,) = {found["metadata"]["labels"][PRODUCT] for found in listed("nodes", "--selector", PRODUCT)}
    kubectl("label", "node", node, f"{PRODUCT}={OTHER}", "--overwrite")
    yield node
    kubectl("label", "node", node, f"{PRODUCT}={before}", "--overwrite")


def test_a_node_with_another_product_gets_none(here: Namespace, hub: str, relabelled: str) -> None:
    here.apply(small("coder", hub, pools=[pool(replicas=2)]))
    run = here.wait("a run", run_of(here, "coder"), 90)
    here.wait("the verdict", finished(here, run), 90)
    here.wait("the winner to be served", served(here, "coder", "wide"), 60)
    pods = here.list("pods", "app.kubernetes.io/managed-by=paceline")
    assert {pod["metadata"]["labels"]["paceline.dev/component"] for pod in pods} == {"fetch", "server", "round"}
    assert relabelled not in {pod["spec"]["nodeName"] for pod in pods}
