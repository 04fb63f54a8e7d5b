"""Rounds in a queue, on a real API server. Kueue is played: its webhook suspends Jobs that name a queue when they are
made, and its controller admits and preempts them by writing to the Job's spec."""

import json
import ssl
import subprocess
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.api.operating import an_operator
from tests.support.apiserver import Running
from tests.support.example import RUN, SETTINGS, pool, run

from paceline.core.manifest import Manifest
from paceline.kube import difference, stamped
from paceline.render import round_job
from paceline.render.round_job import round_plan
from paceline.render.where import ANYWHERE

EXAMPLE = Path(__file__).parents[2] / "examples" / "benchmark-only.yaml"
QUEUE = "kueue.x-k8s.io/queue-name"
NAMESPACE = "queued"
SECONDS = 60


class Suspending(BaseHTTPRequestHandler):
    """As Kueue's defaulting webhook: a Job that names a queue is made suspended."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        job = review["request"]["object"]
        patch = [{"op": "add", "path": "/spec/suspend", "value": True}]
        queued = QUEUE in job["metadata"].get("labels", {})
        change = {"patchType": "JSONPatch", "patch": b64encode(json.dumps(patch).encode()).decode()} if queued else {}
        answer = {**review, "response": {"uid": review["request"]["uid"], "allowed": True, **change}}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""


@pytest.fixture(scope="module")
def kueue(apiserver: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    directory = tmp_path_factory.mktemp("kueue")
    certificate, key = directory / "crt", directory / "key"
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=kueue")
    named = ("-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate))
    subprocess.run([*made, *named], check=True, capture_output=True)
    server = HTTPServer(("127.0.0.1", 0), Suspending)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = {
        "url": f"https://127.0.0.1:{server.server_port}",
        "caBundle": b64encode(certificate.read_bytes()).decode(),
    }
    jobs = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["CREATE"]}
    webhook = {
        "name": "mjob.kb.io",
        "clientConfig": client,
        "rules": [jobs],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
    }
    group = "admissionregistration.k8s.io/v1"
    kind = "MutatingWebhookConfiguration"
    hook = {"apiVersion": group, "kind": kind, "metadata": {"name": "kueue"}, "webhooks": [webhook]}
    apiserver.kubectl("create", "namespace", NAMESPACE)
    apiserver.kubectl("apply", "--server-side", "-f", "-", given=hook)
    until("the webhook to be asked", lambda: _suspended(apiserver))
    yield apiserver
    apiserver.kubectl("delete", "mutatingwebhookconfiguration", "kueue")
    apiserver.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
    server.shutdown()


def _suspended(apiserver: Running) -> bool:
    stored = applied(apiserver, asked_job("tried"), "--dry-run=server")
    return bool(stored["spec"]["suspend"])


def until(what: str, found: Callable[[], Any]) -> Any:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if there := found():
            return there
        time.sleep(0.1)
    raise AssertionError(f"gave up waiting for {what}")


def asked_job(name: str) -> Manifest:
    owner = replace(RUN, name=name, namespace=NAMESPACE)
    spec = replace(run(), queue_name="gpus")
    return stamped(round_job(owner, spec, round_plan(owner, spec, pool().spec.arms, 0, 0), ANYWHERE, SETTINGS))


def applied(apiserver: Running, manifest: Manifest, *flags: str) -> Manifest:
    strictly = ("--server-side", "--field-manager=paceline", "--validate=strict", "-o", "json")
    stored: Manifest = json.loads(apiserver.kubectl("apply", *strictly, *flags, "-f", "-", given=manifest).stdout)
    return stored


def admit(apiserver: Running, job: str, suspend: bool = False) -> None:
    """To the nodes of a flavour; or preempt it."""
    selected = {"spec": {"nodeSelector": {"flavour": "spot"}}}
    patch = {"spec": {"suspend": suspend, **({} if suspend else {"template": selected})}}
    apiserver.kubectl(
        *("patch", "job", job, "-n", NAMESPACE, "--field-manager=kueue", "--type=merge", "-p", json.dumps(patch))
    )


def test_what_the_queue_has_written_is_no_change_of_ours(kueue: Running) -> None:
    wanted = asked_job("apart")
    name = wanted["metadata"]["name"]
    assert applied(kueue, wanted)["spec"]["suspend"] is True

    admit(kueue, name)
    stored = json.loads(kueue.kubectl("get", "job", name, "-n", NAMESPACE, "-o", "json").stdout)
    assert (stored["spec"]["suspend"], stored["spec"]["template"]["spec"]["nodeSelector"]["flavour"]) == (False, "spot")
    assert difference(stored, wanted) is None, "so nothing is sent that could take it back"


def test_a_run_says_in_which_queue_its_round_waits(kueue: Running, tmp_path: Path) -> None:
    """The operator's own process. Nobody runs pods here: what is admitted is a Job without one."""
    manifest = yaml.safe_load(EXAMPLE.read_text())
    manifest["metadata"]["namespace"] = NAMESPACE
    manifest["spec"]["queueName"] = "gpus"

    def found() -> Any:
        text = kueue.kubectl("get", "bench", manifest["metadata"]["name"], "-n", NAMESPACE, "-o", "json").stdout
        return json.loads(text).get("status") or {}

    def complete() -> Any:
        return next((one for one in found().get("conditions", ()) if one["type"] == "Complete"), {})

    kueue.kubectl("apply", "-f", "-", given=manifest)
    with an_operator(kueue.kubeconfig, tmp_path / "log", PACELINE_NAMESPACES=NAMESPACE, PACELINE_IMAGE="paceline"):
        until("the round to wait", lambda: complete().get("reason") == "WaitingForCapacity")
        job = found()["progress"]["job"]
        assert f"Job {job} waits in queue gpus" in complete()["message"]

        admit(kueue, job)
        until("the round to go on", lambda: complete().get("reason") == "Measuring")
        admit(kueue, job, suspend=True)
        until("the round to wait again", lambda: complete().get("reason") == "WaitingForCapacity")
        assert found()["progress"]["round"] == 0
