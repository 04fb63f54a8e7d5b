"""A proxy and certificates of the installation: from the chart's values to the prefetch's pod, and to what its hub
client trusts."""

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.api.test_guards import installed
from tests.api.test_metrics_authentication import certificate
from tests.support.example import DEPLOYED, server

from paceline.core import Model
from paceline.render import fetch_job

PROXY = {"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"}
CLIENT = "import sys; from huggingface_hub.utils import get_session; print(get_session().get(sys.argv[1]).text)"
"""The client that downloads, asked for one page."""


def pod(*own: dict[str, Any], **values: Any) -> dict[str, Any]:
    """Of a prefetch by a chart with these values; `own` is the resource's cache.env."""
    asked = replace(server(), cache=replace(server().cache, env=own))
    job = fetch_job(DEPLOYED, asked, (Model(source="hf://a/b", revision="main"),), installed(**values).render)
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def environment(spec: dict[str, Any]) -> dict[str, Any]:
    (container,) = spec["containers"]
    names = [one["name"] for one in container["env"]]
    assert len(names) == len(set(names)), "the API server refuses a name that is there twice"
    return {one["name"]: one.get("value") for one in container["env"]}


def test_every_prefetch_has_the_installations_environment_and_the_resources_own_wins() -> None:
    assert "HTTPS_PROXY" not in environment(pod())
    assert environment(pod(fetch__env=[PROXY]))["HTTPS_PROXY"] == PROXY["value"]
    own = {"name": "HTTPS_PROXY", "value": "http://other.example.com"}
    assert environment(pod(own, fetch__env=[PROXY]))["HTTPS_PROXY"] == own["value"]


def test_a_ca_bundle_is_where_the_variable_says() -> None:
    assert "SSL_CERT_FILE" not in environment(pod())
    spec = pod(caBundle__configMap="trust", caBundle__key="bundle.pem")
    (volume,) = [one for one in spec["volumes"] if "configMap" in one]
    (mount,) = [one for one in spec["containers"][0]["volumeMounts"] if one["name"] == volume["name"]]
    (item,) = volume["configMap"]["items"]
    assert (volume["configMap"]["name"], item["key"]) == ("trust", "bundle.pem")
    assert environment(spec)["SSL_CERT_FILE"] == f"{mount['mountPath']}/{item['path']}"


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a hub")

    def log_message(self, *_: object) -> None:
        """Not on the test's output."""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """With a certificate that nobody else trusts."""
    certificate(tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as served:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
        served.socket = tls.wrap_socket(served.socket, server_side=True)
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"https://localhost:{served.server_port}/"
        served.shutdown()


def test_the_hubs_client_trusts_that_bundle_and_only_by_that_variable(hub: str, tmp_path: Path) -> None:
    def asked(**more: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "HF_HUB_OFFLINE": "0", **more}
        return subprocess.run([sys.executable, "-c", CLIENT, hub], env=env, capture_output=True, text=True, check=False)

    assert asked(SSL_CERT_FILE=str(tmp_path / "tls.crt")).stdout == "a hub\n"
    assert "CERTIFICATE_VERIFY_FAILED" in asked().stderr
