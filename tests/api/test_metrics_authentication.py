"""The chart's `metrics.authentication`: the operator's own process with the chart's rights, at a real API server."""

import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.api.chart import HOME, of_kind, rendered
from tests.api.test_health import until
from tests.support.apiserver import Running, _free_ports

QUICK = """
import sys
from paceline.cli import main
from paceline.controller import readers
readers.CERTIFICATE_SECONDS, readers.ALLOWED_SECONDS = 0.2, 0.0
sys.exit(main(["operator"]))
"""
"""It looks for another certificate at once, and asks about every request."""


@dataclass
class Scraped:
    port: int
    tls: Path
    log: Path

    def read(self, token: str = "", *, plain: bool = False) -> tuple[int, str]:
        """Status and page, as a scraper that trusts the certificate in the directory gets them; 0: nothing answered."""
        trusted = ssl.create_default_context(cafile=str(self.tls / "tls.crt"))
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"{'http' if plain else 'https'}://localhost:{self.port}/metrics"
        try:
            request = urllib.request.Request(url, headers=headers)
            with urllib.request.urlopen(request, timeout=10, context=None if plain else trusted) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


def certificate(directory: Path) -> None:
    """A new pair, as a Secret of type kubernetes.io/tls has it."""
    made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", directory / "tls.key", "-out", directory / "tls.crt"]
    subprocess.run(["openssl", "req", *made, *named, *files], check=True, capture_output=True)


@pytest.fixture
def tokens(apiserver: Running) -> Iterator[dict[str, str]]:
    """The rights of the chart. Account → its token: the operator's, a scraper's that is bound, a stranger's."""
    objects = rendered(metrics={"authentication": True, "tlsSecret": "metrics-tls"})
    names = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "ServiceAccount")
    home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
    given: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": [home, *of_kind(objects, *names)]}
    apiserver.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=given)
    found = {}
    for account in ("paceline", "scraper", "stranger"):
        apiserver.kubectl("create", "serviceaccount", account, "-n", HOME, check=False)
        found[account] = apiserver.kubectl("create", "token", account, "-n", HOME).stdout.strip()
    bound = ("--clusterrole=paceline-metrics-reader", f"--serviceaccount={HOME}:scraper")
    apiserver.kubectl("create", "clusterrolebinding", "scraper", *bound)
    yield found
    del given["items"][0]
    apiserver.kubectl("delete", "-f", "-", "--wait=false", given=given)


@asynccontextmanager
async def operating(apiserver: Running, token: str, directory: Path) -> AsyncIterator[Scraped]:
    """With the token of its own account."""
    tls = directory / "tls"
    tls.mkdir()
    certificate(tls)
    config = json.loads(apiserver.kubeconfig.read_text())
    config["users"] = [{"name": "admin", "user": {"token": token}}]
    kubeconfig = directory / "operators"
    kubeconfig.write_text(json.dumps(config))
    metrics, probe = _free_ports(2)
    env = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "PACELINE_METRICS_TLS": str(tls),
        "PACELINE_METRICS_PORT": str(metrics),
        "PACELINE_PROBE_PORT": str(probe),
        "PACELINE_LOG_FORMAT": "json",
        "POD_NAMESPACE": HOME,
        # Nothing answers there.
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }
    scraped = Scraped(metrics, tls, directory / "log")
    with scraped.log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", QUICK], env=env, stdout=out, stderr=out)  # noqa: ASYNC220
        try:
            yield scraped
        finally:
            process.terminate()
            process.wait(30)


async def test_only_who_may_reads_them_and_a_new_certificate_needs_no_restart(
    apiserver: Running, tokens: dict[str, str], tmp_path: Path
) -> None:
    async with operating(apiserver, tokens["paceline"], tmp_path) as scraped:

        async def answers() -> bool:
            return scraped.read(tokens["scraper"])[0] == 200

        await until(answers)
        assert "paceline_leading" in scraped.read(tokens["scraper"])[1]
        assert scraped.read()[0] == 401
        assert scraped.read("of-nobody")[0] == 401
        assert scraped.read(tokens["stranger"])[0] == 403
        assert scraped.read(tokens["scraper"], plain=True)[0] in (0, 400)

        before = (scraped.tls / "tls.crt").read_bytes()
        certificate(scraped.tls)
        assert (scraped.tls / "tls.crt").read_bytes() != before
        await until(answers)

        apiserver.kubectl("delete", "clusterrolebinding", "scraper")

        async def refused() -> bool:
            return scraped.read(tokens["scraper"])[0] == 403

        await until(refused)
    lines = [json.loads(line) for line in scraped.log.read_text().splitlines()]
    assert {line["message"].split()[0] for line in lines} >= {"HTTP_PROXY", "HTTPS_PROXY"}, "it goes past them"
    assert all({"message", "timestamp", "severity"} <= line.keys() for line in lines)
