"""A real API server takes what `paceline import` prints, and the servers that are rendered of it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml
from tests.support.apiserver import BINARIES, Running
from tests.support.followed import follow
from tests.support.migration import CASES, Case

from paceline.cli import main
from paceline.cli.render import rendered_objects

STRICT = ("--dry-run=server", "--validate=strict", "-f", "-")


@pytest.mark.parametrize("case", CASES, ids=str)
def test_it_is_taken(apiserver: Running, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(case.file), *case.options]) == 0
    manifest = yaml.safe_load(capsys.readouterr().out)
    manifest["metadata"]["namespace"] = "default"
    assert apiserver.kubectl("apply", *STRICT, given=manifest).stdout.endswith(" created (server dry run)\n")
    for one in rendered_objects(manifest, arm=manifest["spec"]["candidates"][0]["name"], pool="main"):
        one["metadata"].pop("ownerReferences")  # of a resource that was not created
        assert apiserver.kubectl("apply", *STRICT, given=one).stdout.endswith(" created (server dry run)\n")


NAME = "mistral-7b"
CACHED = {"type": "CacheReady", "status": "True", "reason": "Cached", "message": "", "observedGeneration": 1}


def test_the_commands_of_the_document(apiserver: Running, tmp_path: Path) -> None:
    """All of them, one after another. An operator's part is played: the models are there, servers are ready at once."""
    apiserver.kubectl("create", "namespace", "migration")
    old = yaml.safe_load(CASES[1].file.read_text())
    plain = {field: old["metadata"][field] for field in ("name", "labels")}
    created = {**old, "metadata": {**plain, "namespace": "migration"}, "status": None}
    apiserver.kubectl("create", "-f", "-", given=created)
    kubectl = f"{BINARIES / 'kubectl'} --kubeconfig {apiserver.kubeconfig} --namespace migration"
    with an_operator(apiserver) as reached:
        done = follow(tmp_path, kubectl, 1, 2, 3, 4, 5, 6, old=NAME, name=NAME, seconds=90)
    assert done.returncode == 0, done.stderr
    assert reached == [1, 2, 3]
    left = apiserver.kubectl("get", "deployment,specdep", "-n", "migration", "-o", "json").stdout
    (specdep,) = json.loads(left)["items"]
    assert (specdep["spec"]["suspend"], specdep["spec"]["pools"][0]["replicas"]) == (False, 3)


@contextmanager
def an_operator(apiserver: Running) -> Iterator[list[int]]:
    """Yields the numbers of replicas that it was asked for, one after another."""
    path, asked, over = "/apis/paceline.dev/v1alpha1/namespaces/migration/speculativedeployments", list[int](), Event()

    def reconcile() -> None:
        while not over.wait(0.2):
            for found in apiserver.request("GET", path).get("items", ()):
                replicas = found["spec"]["pools"][0]["replicas"]
                condition = {**CACHED, "lastTransitionTime": "2026-11-24T10:00:00Z"}
                pool = {"name": "main", "readyReplicas": replicas}
                found["status"] = {"conditions": [condition], "pools": [pool]}
                apiserver.request("PUT", f"{path}/{NAME}/status", found)
                asked.extend([replicas] if replicas and replicas not in asked else [])

    thread = Thread(target=reconcile)
    thread.start()
    try:
        yield asked
    finally:
        over.set()
        thread.join()
