"""An operator that is confined to namespaces, one of which it may not look into: on a real API server, with Kopf."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.api.operating import an_operator
from tests.support.apiserver import Running
from tests.support.edits import example

OPEN, SHUT = "open", "shut"
SECONDS = 120
"""The operator looks again every 30 s, and Kopf every 20 to 30."""


def may_work_in(apiserver: Running, namespace: str) -> None:
    account = ("create", "rolebinding", "operator", "--clusterrole=cluster-admin", "--serviceaccount=default:operator")
    apiserver.kubectl(*account, "-n", namespace)


@pytest.fixture
def confined(apiserver: Running, tmp_path: Path) -> Iterator[Path]:
    """Its kubeconfig."""
    apiserver.kubectl("create", "serviceaccount", "operator", "-n", "default")
    for namespace in (OPEN, SHUT):
        apiserver.kubectl("create", "namespace", namespace)
        manifest = example("ngram-no-draft")
        manifest["metadata"] = {"name": "served", "namespace": namespace}
        apiserver.kubectl("create", "-f", "-", given=manifest)
    for namespace in (OPEN, "default"):
        may_work_in(apiserver, namespace)
    token = apiserver.kubectl("create", "token", "operator", "-n", "default").stdout.strip()
    config = json.loads(apiserver.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    yield kubeconfig
    for namespace in (OPEN, SHUT):
        apiserver.kubectl("delete", "specdep", "served", "-n", namespace)


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(1)
    return holds()


def test_one_that_is_forbidden_is_nobody_elses_trouble_and_is_served_once_it_is_allowed(
    apiserver: Running, confined: Path, tmp_path: Path
) -> None:
    def served(namespace: str) -> bool:
        return bool(apiserver.kubectl("get", "jobs", "-n", namespace, "-o", "name").stdout)

    with an_operator(confined, tmp_path / "log", PACELINE_NAMESPACES=f"{OPEN},{SHUT}") as operator:
        assert within(SECONDS, lambda: served(OPEN)), (tmp_path / "log").read_text()[-3000:]
        assert not served(SHUT)
        may_work_in(apiserver, SHUT)
        assert within(SECONDS, lambda: served(SHUT)), (tmp_path / "log").read_text()[-3000:]
        assert operator.poll() is None
