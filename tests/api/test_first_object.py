"""An operator that comes up where there is nothing of its kinds yet: on a real API server, with Kopf."""

from pathlib import Path

from tests.api.operating import an_operator
from tests.api.test_namespaces import within
from tests.support.apiserver import Running
from tests.support.edits import example

EMPTY = "nothing-yet"
SECONDS = 90


def test_it_waits_for_the_first_object_and_serves_it(apiserver: Running, tmp_path: Path) -> None:
    """The API server writes an empty list of metadata as null."""
    apiserver.kubectl("create", "namespace", EMPTY)
    log = tmp_path / "log"
    with an_operator(apiserver.kubeconfig, log, PACELINE_NAMESPACES=EMPTY) as operator:
        assert within(SECONDS, lambda: "lease" in log.read_text()), log.read_text()[-3000:]
        manifest = example("ngram-no-draft")
        manifest["metadata"] = {"name": "first", "namespace": EMPTY}
        apiserver.kubectl("create", "-f", "-", given=manifest)
        served = ("get", "jobs", "-n", EMPTY, "-o", "name")
        assert within(SECONDS, lambda: bool(apiserver.kubectl(*served).stdout)), log.read_text()[-3000:]
        assert operator.poll() is None
    apiserver.kubectl("delete", "specdep", "first", "-n", EMPTY)
