"""Stories on the cluster that `make test` has brought up, with the operator installed in it by its chart."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from tests.demo.demo import LABEL
from tests.support.kubernetes import OPERATOR, Namespace, kubectl, listed, run
from tests.support.processes import Operator

HUB = Path(__file__).parents[2] / "dev" / "hub.yaml"


@contextmanager
def namespace_for(what: str, *, may_be_gone: bool = False) -> Iterator[Namespace]:
    """Deleted afterwards, without waiting for its servers' grace. `may_be_gone`: a story may delete it itself."""
    here = Namespace(f"{re.sub('[^a-z0-9]+', '-', what.lower())[:40].strip('-')}-{uuid4().hex[:4]}")
    kubectl("create", "namespace", here.name)
    try:
        yield here
    finally:
        kubectl("delete", "namespace", here.name, "--wait=false", f"--ignore-not-found={str(may_be_gone).lower()}")


@pytest.fixture(scope="session", autouse=True)
def without_demos() -> None:
    """`make demo` leaves its servers, which hold 8 of the 16 GPUs that the stories need, and would let answers end for
    minutes."""
    demos = [namespace["metadata"]["name"] for namespace in listed("namespaces", "--selector", LABEL)]
    for name in demos:
        kubectl("delete", "namespace", name, "--wait=false")
        kubectl("--namespace", name, "delete", "pods", "--all", "--grace-period", "1", "--wait=false")
    for name in demos:
        kubectl("wait", "--for", "delete", f"namespace/{name}", "--timeout", "100s")


@pytest.fixture(scope="session")
def hub() -> Iterator[str]:
    """The address of the local hub, for all stories."""
    running = run("--namespace", OPERATOR, "rollout", "status", "deployment/paceline", "--timeout", "60s")
    assert running.returncode == 0, f"no operator is installed; `make operator-up` does it: {running.stderr}"
    with namespace_for("hub") as here:
        here.kubectl("apply", "-f", str(HUB))
        here.kubectl("rollout", "status", "deployment/hub", "--timeout", "60s")
        yield f"http://hub.{here.name}.svc"


@pytest.fixture
def nodes() -> tuple[str, str]:
    """The names of the two that have GPUs."""
    first, second = sorted(node["metadata"]["name"] for node in listed("nodes", "--selector", "nvidia.com/gpu.product"))
    return first, second


@pytest.fixture
def here(request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A fresh namespace."""
    with namespace_for(request.node.name.removeprefix("test_")) as fresh:
        yield fresh


@pytest.fixture
def operator() -> Iterator[Operator]:
    """The operator's process, to be frozen and killed; afterwards a fresh pod, which does not wait out its restarts."""
    operator = Operator()
    yield operator
    operator.replace()
