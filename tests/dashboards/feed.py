"""What feeds the Prometheus that the dashboards are asked of: an operator with two deployments on a real API server,
and emulated servers of SGLang and vLLM behind their pods' addresses, read as the chart's PodMonitors say.

In place of the rest of a cluster: `tests.scale.nature` makes pods and answers for rounds; `Kubelet` gives each server's
pod an address of loopback with an emulator behind it.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from tests.api.operating import an_operator
from tests.support.apiserver import Running
from tests.support.edits import changed, example
from tests.support.running import CALM, HEAD, QUICK, TARGET, free_port, launch, model, tree

from paceline.engines import ENGINES
from paceline.kube import Manifest
from paceline.render.serving import ARM_LABEL

ROOT = Path(__file__).parents[2]
NAMESPACE = "dashboards"
WITHOUT = "gone"
"""A namespace that the operator is told of and that does not exist; to an administrator it is empty, not closed."""
PATIENCE = 90.0
CLIENTS = 4
"""Of each server."""
SERVERS = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=paceline.dev/component%3Dserver"
CHAIN = {"numSteps": 3, "topK": 1, "numDraftTokens": 4}


def deployment(engine: str, guard: Mapping[str, Any], **metadata: str) -> Manifest:
    """One pool with the candidate `wide`, of which nature knows how fast it is."""
    manifest = changed(
        example(),
        ("metadata", {"name": f"coder-{engine.lower()}", "namespace": NAMESPACE, **metadata}),
        ("spec.cache", {"hostPath": "/var/lib/models"}),
        ("spec.gate", {"decideAfterRounds": [3, 5, 8]}),
        ("spec.guard", dict(guard)),
    )
    spec = manifest["spec"]
    spec["pools"] = [pool for pool in spec["pools"] if pool["name"] == "latency"]
    for part in ("target", "draft"):
        spec[part]["revision"] = "0123456789abcdef0123456789abcdef01234567"
    if engine == "vLLM":
        spec["engine"] = {"type": "vLLM", "version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0"}
        spec["candidates"][0]["tree"] = CHAIN
    return manifest


@dataclass
class Kubelet:
    """Emulators behind the addresses of servers' pods. `arms`: those that get one."""

    server: Running
    directory: Path
    arms: frozenset[str]
    running: dict[str, tuple[str, "subprocess.Popen[Any]"]] = field(default_factory=dict)
    """Pod → URL and process."""

    def look(self) -> None:
        pods = {pod["metadata"]["name"]: pod for pod in self.server.request("GET", SERVERS)["items"]}
        for gone in [name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]]:
            self.server.kubectl("delete", "pod", gone, "-n", NAMESPACE, "--force", "--grace-period=0")
            del pods[gone]
        for gone in self.running.keys() - pods.keys():
            self.running.pop(gone)[1].kill()
        for name, pod in pods.items():
            if name not in self.running and pod["metadata"]["labels"][ARM_LABEL] in self.arms:
                pods[name] = self._start(name, pod)
        known = [pod for pod in pods.values() if (pod.get("status") or {}).get("podIP")]
        beside = self.found.with_suffix(".new")
        beside.write_text(json.dumps([as_discovered(pod) for pod in known]))
        beside.replace(self.found)

    @property
    def found(self) -> Path:
        """What Prometheus discovers."""
        return self.directory / "targets.json"

    def _start(self, name: str, pod: Manifest) -> Manifest:
        address = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}.{random.randint(1, 254)}"
        labels = pod["metadata"]["labels"]
        engine = "vLLM" if "vllm" in labels["paceline.dev/deployment"] else "SGLang"
        speculates = labels[ARM_LABEL] != "baseline"
        process = LAUNCH[engine](self, address, ENGINES[engine].port, speculates)
        self.running[name] = f"http://{address}:{ENGINES[engine].port}", process
        status = {"podIP": address, "podIPs": [{"ip": address}]}
        ref = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/status"
        said = patch(self.server, ref, {"status": status})
        assert said["status"].get("podIP") == address, said
        return said

    def end(self) -> None:
        for _, process in self.running.values():
            process.kill()
            process.wait()


def patch(server: Running, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    kind, name = path.split("/")[-3:-1]
    words = "-n", NAMESPACE, "--subresource=status", "--type=merge", "-o", "json", "-p", json.dumps(body)
    done = server.kubectl("patch", kind, name, *words)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _sglang(kubelet: Kubelet, address: str, port: int, speculates: bool) -> "subprocess.Popen[Any]":
    directory = kubelet.directory
    head = tree(model(directory / "head", HEAD), 3, 4, 8) if speculates else ()
    argv = ("--model-path", model(directory / "target", TARGET), "--host", address, "--port", str(port),
            "--attention-backend", "triton", "--enable-metrics", *head)  # fmt: skip
    return launch(argv, directory / f"{address}.log", {**QUICK, **CALM})


def _vllm(kubelet: Kubelet, address: str, port: int, speculates: bool) -> "subprocess.Popen[Any]":
    directory = kubelet.directory
    argv = [sys.executable, "-m", "paceline_emulator.vllm", "serve", model(directory / "target", TARGET)]
    argv += ["--served-model-name", "coder", "--host", address, "--port", str(port)]
    if speculates:
        head = model(directory / "head", HEAD)
        argv += ["--speculative-config", json.dumps({"method": "eagle3", "model": head, "num_speculative_tokens": 3})]
    with (directory / f"{address}.log").open("wb") as log:
        return subprocess.Popen(argv, env={**os.environ, **QUICK}, stdout=log, stderr=log)


LAUNCH: Mapping[str, Callable[[Kubelet, str, int, bool], "subprocess.Popen[Any]"]] = {"SGLang": _sglang, "vLLM": _vllm}


@dataclass
class Feed:
    server: Running
    directory: Path
    kubelet: Kubelet
    metrics_port: int
    """The operator's."""
    tokens: int = 24
    requests: int = 0

    def serving(self, name: str) -> str:
        """The arm, once the deployment is Ready."""
        path = f"/apis/paceline.dev/v1alpha1/namespaces/{NAMESPACE}/speculativedeployments/{name}"
        status = self.server.request("GET", path).get("status") or {}
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
        pools = status.get("pools") or [{}]
        return str((pools[0].get("serving") or {}).get("arm", "")) if ready else ""

    def apply(self, manifest: Manifest) -> None:
        self.server.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=manifest)

    async def until(self, what: str, done: Callable[[], bool], seconds: float = PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while not await asyncio.to_thread(done):
            await asyncio.to_thread(self.kubelet.look)
            assert time.monotonic() < deadline, f"{what}: not within {seconds:.0f} s"
            await asyncio.sleep(0.5)

    async def under_load(self, what: str, done: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """As `until`, while every server is asked, those that come meanwhile, too."""
        sending = asyncio.create_task(self.send(seconds))
        try:
            await self.until(what, done, seconds)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def send(self, seconds: float) -> None:
        """Clients that ask every server, one request after another each."""
        until, begun = time.monotonic() + seconds, set[str]()
        async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as group:
            while time.monotonic() < until:
                for url, _ in list(self.kubelet.running.values()):
                    for number in range(0 if url in begun else CLIENTS):
                        group.create_task(self._client(http, url, until, number))
                    begun.add(url)
                await asyncio.sleep(0.5)

    async def _client(self, http: aiohttp.ClientSession, url: str, until: float, number: int) -> None:
        dice = random.Random(number)
        while time.monotonic() < until:
            body = {
                "model": "coder", "prompt": "def fib(n): " * dice.randint(5, 40), "stream": True, "ignore_eos": True,
                "max_tokens": dice.randint(self.tokens // 2, 3 * self.tokens // 2),
            }  # fmt: skip
            try:
                async with http.post(f"{url}/v1/completions", json=body) as answer:
                    await answer.read()
                    self.requests += answer.status == 200
            except aiohttp.ClientError:  # not there yet, or gone
                if url not in [known for known, _ in self.kubelet.running.values()]:
                    return
                await asyncio.sleep(0.3)


NATURE = """
import asyncio, sys
from pathlib import Path
from tests.scale import nature
from tests.support import answers
took, said = map(float, sys.argv[3:])
nature.SECONDS = {**nature.SECONDS, "round": took}
answers.START_SECONDS = said / 10
nature.answer = lambda plan, truth, _, ended, spoiled: answers.answer(plan, truth, ended - said, ended, spoiled)
asyncio.run(nature.main(sys.argv[1], Path(sys.argv[2])))
"""


@contextmanager
def _nature(server: Running, directory: Path, *seconds: float) -> Iterator[None]:
    """`seconds`: what a round takes, and what it says that it took."""
    said = str(server.kubeconfig), str(directory / "nature.jsonl"), *map(str, seconds)
    argv = [sys.executable, "-c", NATURE, *said]
    with (directory / "nature.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=ROOT, stderr=log)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _take_away(server: Running) -> None:
    """What the operator and nature have made, where nobody deletes what an owner had."""
    kinds = "specdep,bench,jobs,deployments,services,controllerrevisions,pods"
    server.kubectl("delete", kinds, "--all", "-n", NAMESPACE, "--force", "--grace-period=0", "--wait=false")


@asynccontextmanager
async def feed(
    server: Running, directory: Path, arms: frozenset[str], *, round_takes: float = 0.5, round_says: float = 60.0
) -> AsyncIterator[Feed]:
    """An operator that works in NAMESPACE; nothing is deployed yet."""
    server.kubectl("create", "namespace", NAMESPACE)
    port = free_port()
    with ExitStack() as ends:
        ends.callback(_take_away, server)  # the last of all: others use this API server, too
        ends.enter_context(_nature(server, directory, round_takes, round_says))
        more = {"PACELINE_NAMESPACES": f"{NAMESPACE},{WITHOUT}", "PACELINE_METRICS_PORT": str(port)}
        ends.enter_context(an_operator(server.kubeconfig, directory / "operator.log", **more))
        kubelet = Kubelet(server, directory, arms)
        ends.callback(kubelet.end)
        yield Feed(server, directory, kubelet, port)


def discovery(found: Path, monitor: Manifest) -> dict[str, Any]:
    """A scrape of the pods that a PodMonitor selects, as the Prometheus Operator writes it; `found` has the pods with
    the labels that Prometheus' discovery in Kubernetes gives them, which Debian's Prometheus lacks."""
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    kept = {META + "pod_label_" + sanitised(k): v for k, v in monitor["spec"]["selector"]["matchLabels"].items()}
    kept |= {META + "pod_container_port_name": endpoint["port"]}
    copied = {META + "namespace": "namespace", META + "pod_name": "pod", META + "pod_container_name": "container"}
    for label in monitor["spec"].get("podTargetLabels", ()):
        copied[META + "pod_label_" + sanitised(label)] = sanitised(label)
    return {
        "job_name": monitor["metadata"]["name"],
        "honor_labels": endpoint.get("honorLabels", False),
        "file_sd_configs": [{"files": [str(found)], "refresh_interval": "1s"}],
        "relabel_configs": [
            *({"source_labels": [label], "regex": value, "action": "keep"} for label, value in kept.items()),
            *({"source_labels": [label], "target_label": to} for label, to in copied.items()),
        ],
    }


META = "__meta_kubernetes_"


def as_discovered(pod: Manifest) -> dict[str, Any]:
    """One target of a pod's first port."""
    container = pod["spec"]["containers"][0]
    (port,) = container["ports"]
    labels = {META + "pod_label_" + sanitised(label): value for label, value in pod["metadata"]["labels"].items()}
    labels |= {META + "namespace": pod["metadata"]["namespace"], META + "pod_name": pod["metadata"]["name"]}
    labels |= {META + "pod_container_name": container["name"], META + "pod_container_port_name": port["name"]}
    return {"targets": [f"{pod['status']['podIP']}:{port['containerPort']}"], "labels": labels}


def sanitised(label: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in label)


def of_process(ports: Mapping[str, int]) -> dict[str, Any]:
    """A scrape of the operator's own process, or of who tells a story in its place: pod → port."""
    static = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"namespace": "paceline-system", "pod": pod}}
        for pod, port in ports.items()
    ]
    return {"job_name": "paceline", "honor_labels": True, "static_configs": static}


@contextmanager
def prometheus(directory: Path, program: str, *scrapes: Mapping[str, Any]) -> Iterator[str]:
    """Its URL. It reads everything every second."""
    port = free_port()
    config = {"global": {"scrape_interval": "1s"}, "scrape_configs": list(scrapes)}
    (directory / "prometheus.yml").write_text(json.dumps(config))
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [program, f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.kill()
        process.wait()
