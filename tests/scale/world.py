"""What the bench measures in: an etcd and an API server of its own on free ports of loopback, tests.scale.nature for
the rest of a cluster, and operators as processes."""

import asyncio
import copy
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.scale import machine
from tests.scale.machine import Meter
from tests.support import apiserver
from tests.support.apiserver import Running, _free_ports
from tests.support.world import example

from paceline.controller.kinds import RECONCILED_KINDS, SPECULATIVE_DEPLOYMENT
from paceline.kube import Manifest, Reflector, Transport, Unavailable, connect
from paceline.kube.throttle import Throttle

ROOT = Path(__file__).parents[2]
EXAMPLE = example("latency")
NAMESPACE = "models"
TOGETHER = 16
"""Requests of ours under way."""


@dataclass
class Operator:
    process: "subprocess.Popen[bytes]"
    metrics: int
    meter: Meter
    spawned: float

    def passes(self) -> int:
        return machine.passes(self.metrics)


@dataclass
class Bench:
    """One API server and what lives on it."""

    server: Running
    directory: Path
    api: Transport
    settings: Mapping[str, str]
    others: Mapping[str, int] = field(default_factory=dict)
    """Who else uses the machine for it: name → pid."""
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TOGETHER))
    heard: dict[str, Manifest] = field(default_factory=dict)
    """Name → the deployment as last heard of."""
    observed: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    """Name → generation and when a status of it was first seen."""

    def changed(self, _: str, found: Manifest, __: Manifest | None) -> None:
        name, status = found["metadata"]["name"], found.get("status") or {}
        self.heard[name] = found
        generation = status.get("observedGeneration", 0)
        seen = self.observed[name]
        if not seen or seen[-1][0] < generation:
            seen.append((generation, time.monotonic()))

    @contextmanager
    def operator(self, name: str) -> Iterator[Operator]:
        metrics, probe = _free_ports(2)
        env = os.environ | {
            "KUBECONFIG": str(self.server.kubeconfig_of("operator")),
            "PACELINE_METRICS_PORT": str(metrics),
            "PACELINE_PROBE_PORT": str(probe),
            "POD_NAME": name,
            "POD_NAMESPACE": "default",
            **self.settings,
        }
        with (self.directory / f"{name}.log").open("wb") as out:
            argv = [sys.executable, "-m", "paceline.cli", "operator"]
            spawned = time.monotonic()
            process = subprocess.Popen(argv, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            try:
                yield Operator(process, metrics, Meter(process.pid, self.directory / "audit.log", self.others), spawned)
            finally:
                process.terminate()
                process.wait(30)

    def leads(self) -> bool:
        """Whether anybody does."""
        lease = self.server.request("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/paceline")
        return bool((lease.get("spec") or {}).get("holderIdentity"))

    async def until(self, what: str, done: Callable[[], bool], seconds: float, every: float = 0.1) -> float:
        """Seconds that it took."""
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > seconds:
                raise TimeoutError(f"{what}: not within {seconds:.0f} s")
            await asyncio.sleep(every)
        return time.monotonic() - began

    async def quiet(self, operator: Operator, seconds: float = 3.0) -> None:
        """Until no pass has ended for so long."""
        seen, since = operator.passes(), time.monotonic()
        while time.monotonic() - since < seconds:
            await asyncio.sleep(0.2)
            if (now := operator.passes()) != seen:
                seen, since = now, time.monotonic()

    async def each(self, names: Sequence[str], do: Callable[[str], Awaitable[object]]) -> None:
        async def one(name: str) -> None:
            async with self.turns:
                await do(name)

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(one(name))

    async def create(self, name: str) -> None:
        await self.apply(deployment(name))

    async def set(self, name: str, **spec: Any) -> Manifest:
        manifest = deployment(name)
        manifest["spec"] |= spec
        return await self.apply(manifest)

    async def apply(self, manifest: Manifest) -> Manifest:
        """Again and again where the machine is too busy to answer; an apply may be repeated."""
        for _ in range(5):
            with suppress(Unavailable):
                return await self.api.apply(manifest, manager="bench")
            await asyncio.sleep(1)
        return await self.api.apply(manifest, manager="bench")

    async def serve(self, names: Sequence[str], arm: str, seconds: float) -> float:
        """Until all of them serve this arm and are at rest: seconds that it took."""
        left = {*names}

        def done() -> bool:
            left.difference_update([name for name in left if self.serving(name) == arm])
            return not left

        return await self.until(f"all of {len(names)} serve {arm}", done, seconds)

    def serving(self, name: str) -> str:
        """The arm that serves, where the pool is at rest; else ""."""
        status = self.heard.get(name, {}).get("status") or {}
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
        pools = status.get("pools") or [{}]
        return str((pools[0].get("serving") or {}).get("arm", "")) if ready else ""


def deployment(name: str) -> Manifest:
    manifest = copy.deepcopy(EXAMPLE)
    manifest["metadata"] = {"name": name, "namespace": NAMESPACE}
    manifest["spec"]["target"]["servedName"] = name  # no two specs are alike: nothing that is kept serves all
    manifest["spec"] |= {"suspend": True, "cache": {"hostPath": "/var/lib/models"}}
    for model in ("target", "draft"):
        manifest["spec"][model]["revision"] = "0123456789abcdef0123456789abcdef01234567"
    return manifest


@asynccontextmanager
async def world(settings: Mapping[str, str], keep: str | None) -> AsyncIterator[Bench]:
    """All of it but an operator; what there is of logs is copied to the directory `keep`."""
    with tempfile.TemporaryDirectory(prefix="paceline-scale-", dir="/var/tmp") as place:
        directory = Path(place)
        policy = directory / "audit.yaml"
        policy.write_text(machine.AUDIT_POLICY)
        # The last of two options counts; a service has an address of its own.
        wide = "--service-cluster-ip-range=10.0.0.0/16"
        audit = (wide, f"--audit-policy-file={policy}", f"--audit-log-path={directory / 'audit.log'}")
        server = apiserver.start(directory, options=audit, users=("operator", "nature"))
        nature: subprocess.Popen[bytes] | None = None
        try:
            server.install(ROOT / "crds")
            server.kubectl("create", "namespace", NAMESPACE)
            nature = begin_nature(server, directory)
            pids = [process.pid for process in server.processes]
            others = dict(zip(("etcd", "api"), pids, strict=True)) | {"nature": nature.pid, "bench": os.getpid()}
            async with await connect(
                str(server.kubeconfig), kinds=RECONCILED_KINDS, throttle=Throttle(1000, 1000)
            ) as api:
                bench = Bench(server, directory, api, settings, others)
                watch = Reflector(api, SPECULATIVE_DEPLOYMENT, namespace=NAMESPACE, on_change=bench.changed)
                watching = asyncio.create_task(watch.run())
                try:
                    yield bench
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
        finally:
            if nature is not None:
                nature.kill()
                nature.wait()
            server.stop()
            if keep:
                shutil.copytree(directory, keep, dirs_exist_ok=True, ignore=_all_but_logs)


def _all_but_logs(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith((".log", ".jsonl"))]


def begin_nature(server: Running, directory: Path) -> "subprocess.Popen[bytes]":
    log = directory / "nature.jsonl"
    log.touch()
    argv = [sys.executable, "-m", "tests.scale.nature", str(server.kubeconfig_of("nature")), str(log)]
    with (directory / "nature.log").open("wb") as out:
        return subprocess.Popen(argv, cwd=ROOT, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
