"""The probes and metrics of the operator's own process, at a real API server, with something between the two.

The times of health and watches are a thirtieth here; tests/fault/test_health.py has the real ones, on a virtual clock.
"""

import asyncio
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.alerts.names import METRIC
from tests.support.apiserver import Running, _free_ports
from tests.support.broken_path import Between, Treat, between
from tests.support.edits import example

from paceline.controller.kinds import RECONCILED_KINDS

ROOT = Path(__file__).parents[2]
QUICK = """
import sys
from paceline.cli import main
from paceline.controller import health
from paceline.kube import contact, reflector, transport
health.SILENT_SECONDS, health.STUCK_SECONDS, health.AWAY_SECONDS = 10.0, 6.0, 6.0
contact.GAP, contact.ASK = 6.0, 1.0
reflector.LONGEST_DELAY, reflector.ABSENT_DELAY = 1.0, 1.0
transport.WATCH_SECONDS, transport.SILENCE = 2, 4.0
sys.exit(main(["operator"]))
"""
"""The operator, in a hurry."""
LEASE = "/apis/coordination.k8s.io/v1/namespaces/{home}/leases/paceline"
PATIENCE = 60.0


@dataclass
class Operator:
    process: "subprocess.Popen[bytes]"
    metrics_port: int
    probe_port: int
    log: Path

    async def probe(self, path: str) -> tuple[int, str]:
        """Status and words; 0 if nothing answers."""
        return await asyncio.to_thread(_asked, f"http://127.0.0.1:{self.probe_port}/{path}")

    async def page(self) -> str:
        return (await asyncio.to_thread(_asked, f"http://127.0.0.1:{self.metrics_port}/metrics"))[1]

    async def sample(self, name: str, **labels: str) -> float | None:
        families = text_string_to_metric_families(await self.page())
        of_name = [one for family in families for one in family.samples if one.name == name]
        return next((one.value for one in of_name if labels.items() <= one.labels.items()), None)


def _asked(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


@contextmanager
def an_operator(kubeconfig: Path, home: str, log: Path) -> Iterator[Operator]:
    metrics, probe = _free_ports(2)
    env = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "PACELINE_METRICS_PORT": str(metrics),
        "PACELINE_PROBE_PORT": str(probe),
        "POD_NAME": log.stem,
        "POD_NAMESPACE": home,
    }
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", QUICK], env=env, stdout=out, stderr=out)
        try:
            yield Operator(process, metrics, probe, log)
        finally:
            process.terminate()
            process.wait(30)


async def until(what: Callable[[], Any], seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not await what():  # noqa: ASYNC110 (it asks another process)
            await asyncio.sleep(0.2)


@asynccontextmanager
async def leading(path: Between, home: str, log: Path) -> AsyncIterator[Operator]:
    with an_operator(path.kubeconfig, home, log) as operator:

        async def leads() -> bool:
            return await operator.sample("paceline_leading") == 1 and await operator.probe("readyz") == (200, "ok")

        await until(leads)
        yield operator


@pytest.fixture
async def path(apiserver: Running, tmp_path: Path) -> AsyncIterator[Between]:
    async with between(apiserver, tmp_path) as found:
        yield found


@pytest.fixture
def home(apiserver: Running, request: pytest.FixtureRequest) -> str:
    """A namespace for the Lease of this test alone."""
    name = request.node.name.replace("_", "-")[:60].rstrip("-")
    apiserver.kubectl("create", "namespace", name)
    return str(name)


async def test_a_watch_that_is_dead_fails_both_probes(path: Between, home: str, tmp_path: Path) -> None:
    async with leading(path, home, tmp_path / "operator") as operator:
        assert await operator.probe("healthz") == (200, "ok")
        path.treat = lambda request: Treat.HANG if request.path == "/api/v1/pods" else Treat.PASS

        async def fails() -> bool:
            status, said = await operator.probe("healthz")
            assert status in (200, 500)
            return status == 500 and said.startswith("the watch of pods has heard nothing for ")

        await until(fails)
        status, said = await operator.probe("readyz")
        assert (status, said.endswith("s, but other requests are answered")) == (500, True)
        silent = await operator.sample("paceline_watch_silent_seconds", resource="pods")
        assert silent is not None
        assert silent > 10
        heard = await operator.sample("paceline_watch_silent_seconds", resource="jobs")
        assert heard is not None
        assert heard < 10
        path.treat = lambda _: Treat.PASS

        async def mends() -> bool:
            return await operator.probe("healthz") == await operator.probe("readyz") == (200, "ok")

        await until(mends)


async def test_who_stands_by_is_ready(path: Between, home: str, tmp_path: Path) -> None:
    async with leading(path, home, tmp_path / "first"):
        with an_operator(path.kubeconfig, home, tmp_path / "second") as second:

            async def ready() -> bool:
                return await second.probe("readyz") == (200, "ok")

            await until(ready)
            await asyncio.sleep(2)
            assert await second.probe("healthz") == (200, "ok")
            assert await second.sample("paceline_leading") == 0


async def test_who_stands_by_outlives_the_absence_of_the_api_server(path: Between, home: str, tmp_path: Path) -> None:
    """Twice as long as a watch may be silent. The leader ends by itself, once: it cannot know who works now."""
    async with leading(path, home, tmp_path / "first") as first:
        with an_operator(path.kubeconfig, home, tmp_path / "second") as second:

            async def ready() -> bool:
                return await second.probe("readyz") == (200, "ok")

            await until(ready)
            await path.close()
            said = set()
            for _ in range(20):
                await asyncio.sleep(1)
                said.add(await second.probe("healthz"))
            assert said == {(200, "ok")}
            status, why = await second.probe("readyz")
            assert (status, why.partition(" for ")[0]) == (500, "the API server has not answered")
            assert first.process.poll() == 1
            assert "lease paceline is lost" in first.log.read_text()
            await path.open()

            async def leads() -> bool:
                said.add(await second.probe("healthz"))
                return await second.sample("paceline_leading") == 1 and await ready()

            await until(leads)
            assert said == {(200, "ok")}


async def test_passes_that_do_not_end_fail_both_probes(
    path: Between, home: str, apiserver: Running, tmp_path: Path
) -> None:
    apiserver.kubectl("create", "namespace", "stuck")
    async with leading(path, home, tmp_path / "operator") as operator:
        path.treat = lambda request: Treat.HANG if request.method == "PATCH" else Treat.PASS
        apiserver.kubectl("create", "-f", "-", given=deployment("stuck"))

        async def fails() -> bool:
            return (await operator.probe("healthz"))[1].startswith("no pass has finished for ")

        await until(fails)
        assert (await operator.probe("readyz"))[0] == 500
        stuck = await operator.sample("paceline_queue_stuck_seconds")
        assert stuck is not None
        assert stuck > 6
        path.treat = lambda _: Treat.PASS
    apiserver.kubectl("delete", "specdep", "--all", "-n", "stuck")


async def test_who_loses_the_lease_ends(path: Between, home: str, apiserver: Running, tmp_path: Path) -> None:
    async with leading(path, home, tmp_path / "operator") as operator:
        url = LEASE.format(home=home)
        lease = apiserver.request("GET", url)
        lease["spec"]["holderIdentity"] = "somebody-else"
        apiserver.request("PUT", url, lease)
        said = set()

        async def ended() -> bool:
            said.add(await operator.probe("healthz"))
            return operator.process.poll() is not None

        await until(ended)
        assert operator.process.returncode == 1
        assert "lease paceline is lost" in operator.log.read_text()
        assert said <= {(200, "ok"), (500, "the lease is lost"), (0, "")}


async def test_its_metrics_are_those_of_the_alerts_and_bounded(
    path: Between, home: str, apiserver: Running, tmp_path: Path
) -> None:
    """One deployment that was looked at, in the page of the process itself."""
    apiserver.kubectl("create", "namespace", "measured")
    async with leading(path, home, tmp_path / "operator") as operator:
        apiserver.kubectl("create", "-f", "-", given=deployment("measured"))

        async def looked_at() -> bool:
            return await operator.sample("paceline_condition", namespace="measured", type="Ready") is not None

        await until(looked_at)
        families = {family.name: family for family in text_string_to_metric_families(await operator.page())}
        apiserver.kubectl("delete", "specdep", "--all", "-n", "measured")

        async def forgotten() -> bool:
            return await operator.sample("paceline_condition", namespace="measured") is None

        await until(forgotten)
    ours = {name: family for name, family in families.items() if name.startswith("paceline_")}
    series = {sample.name for family in families.values() for sample in family.samples}
    told = series | ours.keys() | {f"{name}_total" for name, family in ours.items() if family.type == "counter"}
    assert sorted(METRIC - told) == []
    plurals = {resource.plural for resource in RECONCILED_KINDS.values()}
    bounded = {"kind": plurals, "resource": plurals, "method": {"GET", "POST", "PATCH", "PUT", "DELETE"}}
    for family in ours.values():
        assert family.documentation
        for sample in family.samples:
            for label, value in sample.labels.items():
                assert value in bounded.get(label, {value}), (sample.name, label, value)
    codes = {sample.labels["code"] for sample in ours["paceline_api_requests"].samples}
    assert codes <= {"0", "200", "201", "404", "409"}
    watched = {sample.labels["resource"] for sample in ours["paceline_watch_silent_seconds"].samples}
    assert {"pods", "jobs", "speculativedeployments", "benchmarkruns"} <= watched
    writes = {s.labels["resource"]: s.value for s in ours["paceline_writes"].samples if s.name.endswith("_total")}
    assert writes["speculativedeployments"] >= 1


def deployment(namespace: str) -> dict[str, Any]:
    manifest = example("ngram-no-draft")
    manifest["metadata"] = {"name": "served", "namespace": namespace}
    return manifest
