"""What Paceline costs, and how long it takes, with 100, 1,000 and 5,000 deployments: `make bench-scale`.

An etcd and an API server of its own on free ports of loopback, tests.scale.nature for the rest of a cluster, and the
operator as a process. One pool, one candidate, four datasets at concurrency 1; all in one namespace, which is the worst
case for whoever looks through a namespace. Figures of wall time depend on the machine and on who else uses it; seconds
of the processor much less. Prints one JSON object for each size, and writes the table of docs/performance.md.
"""

import argparse
import asyncio
import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from tests.scale import machine, table
from tests.scale.machine import Meter
from tests.support import apiserver
from tests.support.apiserver import Running, _free_ports
from tests.support.world import example

from paceline.controller.kinds import KINDS, SPECULATIVE_DEPLOYMENT
from paceline.kube import Manifest, Reflector, Transport, connect
from paceline.kube.throttle import Throttle

ROOT = Path(__file__).parents[2]
EXAMPLE = example("latency")
NAMESPACE = "models"
TOGETHER = 16
"""Requests of ours under way."""
Figures = dict[str, float]


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
    settings: dict[str, str]
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
            process = subprocess.Popen(argv, env=env, stdout=out, stderr=out, stdin=subprocess.DEVNULL)
            meter = Meter(process.pid, self.directory / "audit.log")
            try:
                yield Operator(process, metrics, meter, time.monotonic())
            finally:
                process.terminate()
                process.wait(30)

    async def until(self, what: str, done: Callable[[], bool], seconds: float, every: float = 0.1) -> float:
        """Seconds that it took; complains and goes on to tell what it knows if it takes longer than `seconds`."""
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

    async def each(self, names: Sequence[str], do: Callable[[str], Any]) -> None:
        turns = asyncio.Semaphore(TOGETHER)

        async def one(name: str) -> None:
            async with turns:
                await do(name)

        async with asyncio.TaskGroup() as group:
            for name in names:
                group.create_task(one(name))

    async def create(self, name: str) -> None:
        manifest = deployment(name)
        await self.api.create(manifest)

    async def set(self, name: str, **spec: Any) -> None:
        manifest = deployment(name)
        manifest["spec"] |= spec
        await self.api.apply(manifest, manager="bench")

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


async def measure(bench: Bench, size: int, options: argparse.Namespace) -> Figures:
    names = [f"served-{number}" for number in range(size)]
    figures: Figures = {"deployments": size}
    with ExitStack() as operators:
        operator = operators.enter_context(bench.operator("first"))
        await bench.until("the operator leads", lambda: bool(leader(bench)), 60)
        standby = operators.enter_context(bench.operator("second"))
        say(f"{size}: create")
        await bench.quiet(operator)
        batch = names[: min(size, options.created)]
        operator.meter.begin()
        await bench.each(batch, bench.create)
        await bench.until("all serve", lambda: all(bench.serving(name) == "baseline" for name in batch), 1200, 0.2)
        spent = operator.meter.cost()
        figures |= {
            "create_writes": spent.writes / len(batch),
            "create_reads": spent.reads / len(batch),
            "create_cpu_ms": 1000 * spent.cpu / len(batch),
            "create_seconds": spent.seconds,
            "create_load": machine.load(),
        }
        rest = names[len(batch) :]
        if rest:
            await bench.each(rest, bench.create)
            left = {*rest}

            def all_serve() -> bool:
                left.difference_update([name for name in left if bench.serving(name) == "baseline"])
                return not left

            await bench.until("all serve", all_serve, 3600, 0.5)
        figures |= await promotions(bench, operator, names[:1], "alone")
        figures |= await promotions(bench, operator, names[1 : 1 + options.promoted], "together")
        say(f"{size}: idle")
        await bench.quiet(operator)
        operator.meter.begin()
        await asyncio.sleep(options.idle)
        spent = operator.meter.cost()
        figures |= {
            "idle_writes": spent.writes,
            "idle_reads": spent.reads,
            "idle_mcores": 1000 * spent.cpu / spent.seconds,
        }
        figures |= await changes(bench, operator, names[-min(size, 800) :], options)
        figures |= dict(zip(("resident_mib", "peak_mib"), machine.memory(operator.process.pid), strict=True))
        say(f"{size}: hand over")
        standby.meter.begin()
        operator.process.send_signal(signal.SIGTERM)
        figures["handover_seconds"] = await bench.until("the next acts", lambda: standby.passes() > 0, 120)
        figures["handover_all_seconds"] = await bench.until(
            "the next has seen all", lambda: standby.passes() >= size, 900
        )
        figures["handover_load"] = machine.load()
    say(f"{size}: start")
    with bench.operator("third") as operator:
        operator.meter._cpu = 0.0
        await bench.until("all were looked at", lambda: operator.passes() >= size, 900)
        spent = operator.meter.cost()
        resident, peak = machine.memory(operator.process.pid)
        figures |= {
            "start_seconds": time.monotonic() - operator.spawned,
            "start_cpu": spent.cpu,
            "start_reads": spent.reads,
            "start_writes": spent.writes,
            "start_load": machine.load(),
            "restarted_mib": resident,
            "restarted_peak_mib": peak,
        }
    return figures


def leader(bench: Bench) -> bool:
    lease = bench.server.request("GET", "/apis/coordination.k8s.io/v1/namespaces/default/leases/paceline")
    return bool((lease.get("spec") or {}).get("holderIdentity"))


async def promotions(bench: Bench, operator: Operator, names: list[str], how: str) -> Figures:
    await bench.quiet(operator)
    say(f"{len(names)} promotions")
    passes = operator.passes()
    operator.meter.begin()
    log = bench.directory / "nature.jsonl"
    offset, began = log.stat().st_size, time.time()
    await bench.each(names, lambda name: bench.set(name, suspend=False))
    await bench.until("all promoted", lambda: all(bench.serving(name) == "wide" for name in names), 600)
    seconds = time.time() - began
    await asyncio.sleep(2)  # what is written afterwards counts too
    spent = operator.meter.cost()
    waits = gaps([json.loads(line) for line in log.read_bytes()[offset:].splitlines()])
    return {
        f"{how}_writes": spent.writes / len(names),
        f"{how}_reads": spent.reads / len(names),
        f"{how}_passes": (operator.passes() - passes) / len(names),
        f"{how}_cpu_ms": 1000 * spent.cpu / len(names),
        f"{how}_seconds": seconds,
        f"{how}_gap_p50": median(waits),
        f"{how}_gap_max": max(waits),
        f"{how}_load": machine.load(),
    }


def gaps(lines: list[tuple[str, str, float]]) -> list[float]:
    """Seconds from the end of a round to the beginning of the run's next."""
    of_run: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for run, what, at in lines:
        of_run[run].append((at, what))
    return [
        later - earlier
        for each in of_run.values()
        for (earlier, was), (later, now) in pairwise(sorted(each))
        if (was, now) == ("ended", "made")
    ]


async def changes(bench: Bench, operator: Operator, names: list[str], options: argparse.Namespace) -> Figures:
    """One status write for each change: the operator observes another generation of a suspended deployment."""
    names = [name for name in names if bench.serving(name) == "baseline"]
    await bench.quiet(operator)
    say(f"{options.rate} changes a second")
    operator.meter.begin()
    asked: list[tuple[str, int, float]] = []

    async def change(name: str, number: int) -> None:
        written = await bench.api.apply(patched(name, number), manager="bench-window")
        asked.append((name, written["metadata"]["generation"], time.monotonic()))

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for number in range(int(options.rate * options.changes)):
            group.create_task(change(names[number % len(names)], number))
            await asyncio.sleep(max(0.0, began + (number + 1) / options.rate - time.monotonic()))

    def observed(name: str, generation: int) -> float | None:
        return next((at for seen, at in bench.observed[name] if seen >= generation), None)

    await bench.until("all observed", lambda: all(observed(name, g) for name, g, _ in asked), 300, 0.2)
    spent = operator.meter.cost()
    waits = [max(0.0, (observed(name, generation) or 0.0) - at) for name, generation, at in asked]
    percent = quantiles(waits, n=100)
    return {
        "change_p50": percent[49],
        "change_p99": percent[98],
        "change_cpu_ms": 1000 * spent.cpu / len(asked),
        "change_load": machine.load(),
    }


def patched(name: str, number: int) -> Manifest:
    """Another patience of a deployment that measures nothing: its status names the generation, and no more happens."""
    manifest = deployment(name)
    manifest["spec"]["promotion"] = {"progressDeadline": f"{1800 + number}s"}
    return manifest


async def one_size(size: int, options: argparse.Namespace) -> Figures:
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
            async with await connect(str(server.kubeconfig), kinds=KINDS, throttle=Throttle(1000, 1000)) as api:
                bench = Bench(server, directory, api, dict(pair.split("=", 1) for pair in options.env))
                watch = Reflector(api, SPECULATIVE_DEPLOYMENT, namespace=NAMESPACE, on_change=bench.changed)
                watching = asyncio.create_task(watch.run())
                try:
                    return await measure(bench, size, options)
                finally:
                    watching.cancel()
                    await asyncio.gather(watching, return_exceptions=True)
                    if options.keep:
                        shutil.copytree(directory, options.keep, dirs_exist_ok=True, ignore=_all_but_logs)
        finally:
            if nature is not None:
                nature.kill()
                nature.wait()
            server.stop()


def _all_but_logs(_: str, names: list[str]) -> list[str]:
    return [name for name in names if not name.endswith((".log", ".jsonl"))]


def begin_nature(server: Running, directory: Path) -> "subprocess.Popen[bytes]":
    log = directory / "nature.jsonl"
    log.touch()
    argv = [sys.executable, "-m", "tests.scale.nature", str(server.kubeconfig_of("nature")), str(log)]
    with (directory / "nature.log").open("wb") as out:
        return subprocess.Popen(argv, cwd=ROOT, stdout=out, stderr=out, stdin=subprocess.DEVNULL)


def say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}, load {machine.load():.1f}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", type=int, default=[100, 1000, 5000])
    parser.add_argument("--created", type=int, default=200, help="deployments of which the creation is measured")
    parser.add_argument("--promoted", type=int, default=20, help="promotions at once")
    parser.add_argument("--idle", type=float, default=60, help="seconds")
    parser.add_argument("--rate", type=float, default=20, help="changes a second")
    parser.add_argument("--changes", type=float, default=30, help="seconds")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE for the operator")
    parser.add_argument("--keep", help="directory for the logs")
    parser.add_argument("--json", type=Path, help="file to add the figures to")
    parser.add_argument("--write", action="store_true", help="write the table of docs/performance.md")
    options = parser.parse_args()
    found = []
    for size in options.sizes:
        figures = asyncio.run(one_size(size, options))
        found.append(figures)
        print(json.dumps({name: round(value, 3) for name, value in figures.items()}), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(table.markdown(found))
    if options.write:
        table.write(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
