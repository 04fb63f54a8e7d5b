"""The file of `paceline measure`, applied by kubectl to a real API server."""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.operating import an_operator
from tests.api.test_namespaces import within
from tests.support import imported, signing
from tests.support.apiserver import Running

from paceline import cli
from paceline.evidence.signature import key_id
from paceline.measure import record

HERE = "imported"
SECONDS = 90


@pytest.fixture(scope="module")
def server(apiserver: Running) -> Iterator[Running]:
    apiserver.kubectl("create", "namespace", HERE)
    yield apiserver
    apiserver.kubectl("delete", "namespace", HERE, "--wait=false")


def saved(directory: Path, run: dict[str, Any]) -> str:
    """As `paceline measure` saves it, which knows of no namespace."""
    file = directory / "run.yaml"
    record.save(file, {**run, "metadata": {"name": run["metadata"]["name"]}})
    return str(file)


def stored(server: Running, name: str = imported.NAME) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(server.kubectl("get", "bench", name, "-n", HERE, "-o", "json").stdout)
    return found


def is_judged(server: Running, name: str) -> bool:
    return "conditions" in stored(server, name).get("status", {})


def test_the_file_is_judged_anew_and_stays_as_it_was_judged(server: Running, tmp_path: Path) -> None:
    """Its own status is dropped, and applying it again, by whatever way, changes nothing."""
    run = imported.with_status()
    run["status"]["verdict"]["message"] = "as the file says"
    file, log = saved(tmp_path, run), tmp_path / "log"
    server.kubectl("apply", "-n", HERE, "-f", file)
    assert "status" not in stored(server)
    with an_operator(server.kubeconfig, log, PACELINE_NAMESPACES=HERE, PACELINE_IMPORTED_EVIDENCE="true"):
        assert within(SECONDS, lambda: "conditions" in stored(server).get("status", {})), log.read_text()[-3000:]
        first = stored(server)
        assert (first["status"]["verdict"]["outcome"], first["status"]["imported"]) == ("Promote", True)
        assert "measured without a cluster" in first["status"]["verdict"]["message"]
        server.kubectl("apply", "-n", HERE, "-f", file)
        server.kubectl("apply", "-n", HERE, "-f", file, "--server-side", "--force-conflicts")
        again = stored(server)
        assert (again["spec"], again["status"]) == (first["spec"], first["status"])
        assert again["metadata"]["generation"] == 1
        owners = json.loads(server.kubectl("get", "benchround", "-n", HERE, "-o", "json").stdout)["items"]
        uids = [one["metadata"]["ownerReferences"][0]["uid"] for one in owners]
        assert uids == [again["metadata"]["uid"]] * 3, "they go with their run"
    assert server.kubectl("get", "jobs", "-n", HERE, "-o", "name").stdout == ""
    run["spec"]["measured"]["rounds"] -= 1
    other = server.kubectl("apply", "-n", HERE, "-f", saved(tmp_path, run), check=False).stderr
    assert "spec is immutable: make another BenchmarkRun" in other


def test_the_number_of_its_rounds_is_bounded(server: Running, tmp_path: Path) -> None:
    run = imported.with_status()
    for rounds, said in ((65, "should be less than or equal to 64"), (["paceline1:"], "must be of type integer")):
        spec = {**run["spec"], "measured": {**run["spec"]["measured"], "rounds": rounds}}
        wrong = {**run, "metadata": {"name": "wrong"}, "spec": spec, "rounds": []}
        refused = server.kubectl("apply", "-n", HERE, "-f", saved(tmp_path, wrong), check=False)
        assert said in refused.stderr


def test_a_round_that_no_client_could_have_measured_is_refused(server: Running, tmp_path: Path) -> None:
    """By its schema; the run then waits for it in vain."""
    run = imported.with_status()
    run["rounds"][0] = {**run["rounds"][0], "points": "none"}
    refused = server.kubectl("apply", "-n", HERE, "-f", saved(tmp_path, run), check=False)
    assert "spec.points" in refused.stderr


def test_a_signed_run_is_what_was_signed_after_the_api_server_has_stored_it(server: Running, tmp_path: Path) -> None:
    """Its defaults and its order of fields change no text. A round that is edited afterwards does."""
    key, file, applied, log = signing.key(), tmp_path / "run.yaml", tmp_path / "signed.yaml", tmp_path / "log"
    record.save(file, imported.with_status())
    assert cli.main(["evidence", "export", str(file), "-o", str(tmp_path / "statement.json")]) == 0
    bundle = signing.as_bytes(signing.bundle((tmp_path / "statement.json").read_text(), key))
    (tmp_path / "bundle.json").write_bytes(bundle)
    (tmp_path / "desk.pub").write_text(signing.pem(key))
    words = [str(tmp_path / "bundle.json"), "--key", str(tmp_path / "desk.pub"), "-o", str(applied)]
    assert cli.main(["evidence", "verify", *words]) == 0
    name = yaml.safe_load(applied.read_text().partition("---")[0])["metadata"]["name"]
    server.kubectl("apply", "-n", HERE, "-f", str(applied))
    edited = applied.read_text().replace(name, "edited")
    speed = re.findall(r"steadyThroughput: '([0-9.]+)'", edited)[-1]
    (tmp_path / "edited.yaml").write_text(edited.replace(f"steadyThroughput: '{speed}'", "steadyThroughput: '9999'"))
    server.kubectl("apply", "-n", HERE, "-f", str(tmp_path / "edited.yaml"))
    settings = {"PACELINE_IMPORTED_EVIDENCE": "true", "PACELINE_EVIDENCE_SIGNERS": json.dumps({"d": signing.pem(key)})}
    with an_operator(server.kubeconfig, log, PACELINE_NAMESPACES=HERE, **settings):
        for one in (name, "edited"):
            ended = partial(is_judged, server, one)
            assert within(SECONDS, ended), log.read_text()[-3000:]
        assert stored(server, name)["status"]["verdict"]["outcome"] == "Promote"
        assert stored(server, name)["status"]["signer"] == key_id(signing.pem(key))
        assert "verdict" not in stored(server, "edited")["status"]
        assert "no listed key has signed it" in json.dumps(stored(server, "edited")["status"]["conditions"])
