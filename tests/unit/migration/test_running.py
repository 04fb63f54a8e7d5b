"""`paceline import pod/NAME`: the words are those of real processes, which a real sh reads behind an API server that
speaks exec as Kubernetes does."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from tests.support.answered import talking_to
from tests.support.migration import CASES, Manifest

from paceline.cli import main
from paceline.cli.importing.running import referring

OPTIONS = ("--engine-version=0.5.23", "--product=H100", "--target=hf://Q/R", "--served-name=r")
SLEEP = "import os, time; open(os.environ['READY'], 'w').close(); time.sleep(60)"
WORKERS = (
    f"import subprocess, sys; subprocess.Popen([*sys.orig_argv, '--a-worker']) if len(sys.argv) < 9 else 0; {SLEEP}"
)
TITLE = """
import sys
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
begin, end = int(fields[45]), int(fields[46])
with open("/proc/self/mem", "r+b", buffering=0) as memory:
    memory.seek(begin)
    memory.write(b"sglang::scheduler".ljust(end - begin, b"\\0"))
"""
"""As setproctitle writes it: over the process's own words."""
SECRET = "a-value-from-a-secret"
INIT = '#!/bin/sh\n"$@" &\nwait\n'
TEMPLATE = {"name": "sglang", "image": "lmsysorg/sglang:v0.5.23", "resources": {"limits": {"nvidia.com/gpu": 1}}}
FROM_SECRET = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}


@dataclass(kw_only=True)
class Cluster:
    """A Deployment with one pod, whose only container runs `words`."""

    folder: Path
    words: tuple[str, ...]
    container: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    objects: dict[str, Manifest] = field(default_factory=dict)
    refused: tuple[int, str] | None = None
    """Status and message of exec."""
    ends: bytes = b'{"status": "Success"}'
    """What exec says last; nothing if it is empty."""

    def __post_init__(self) -> None:
        for name, code in {"sglang": SLEEP, "workers": WORKERS, "titled": f"{TITLE}\n{SLEEP}"}.items():
            package = self.folder / name / "sglang"
            package.mkdir(parents=True)
            (package / "launch_server.py").write_text(code)
        for name, script in {"tini": INIT, "vllm": f"#!{sys.executable}\n{SLEEP}"}.items():
            (self.folder / name).write_text(script)
            (self.folder / name).chmod(0o755)
        deployment = deepcopy(CASES[0].deployment)
        deployment["metadata"] |= {"name": "llm", "namespace": "models"}
        pod = deployment["spec"]["template"]["spec"]
        pod["containers"] = [{**TEMPLATE, "command": ["/start.sh"], **self.container}]
        deployment["spec"]["selector"] = {"matchLabels": {"app": "llm"}}
        self.objects = {
            "deployments/llm": deployment,
            "replicasets/llm-1": {"metadata": owned("Deployment", "llm"), "spec": deepcopy(deployment["spec"])},
            "pods/llm-1-a": self.pod("llm-1-a"),
            **self.objects,
        }

    @property
    def template(self) -> Manifest:
        """Of the ReplicaSet."""
        found: Manifest = self.objects["replicasets/llm-1"]["spec"]["template"]["spec"]
        return found

    def pod(self, name: str, **state: Any) -> Manifest:
        status = [{"name": "sglang", "ready": True, "state": state or {"running": {}}}]
        metadata = {"name": name, "creationTimestamp": "2026-11-27T00:00:00Z", **owned("ReplicaSet", "llm-1")}
        return {"metadata": metadata, "status": {"phase": "Running", "containerStatuses": status}}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        name = request.path.partition("/namespaces/models/")[2]
        if name.endswith("/exec"):
            return await self.execute(request)
        if name == "pods":
            items = [one for path, one in self.objects.items() if path.startswith("pods/")]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
        if name in self.objects:
            return web.json_response(self.objects[name])
        return web.json_response({"kind": "Status", "message": "not found"}, status=404)

    async def execute(self, request: web.Request) -> web.StreamResponse:
        """Of the processes of this machine, those below ours are seen."""
        if self.refused:
            status, message = self.refused
            return web.json_response({"kind": "Status", "message": message}, status=status)
        assert request.headers["Authorization"] == "Bearer secret"
        *command, files = request.query.getall("command")
        seen = " ".join(name.replace("[0-9]*", str(pid)) for name in files.split() for pid in self.pids())
        done = subprocess.run([*command, seen], env=self.environ, capture_output=True, cwd="/", check=False)
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        for at in range(0, len(done.stdout), 999):
            await socket.send_bytes(b"\1" + done.stdout[at : at + 999])
        await socket.send_bytes(b"\2noise of stderr")
        if self.ends:
            await socket.send_bytes(b"\3" + self.ends)
        await socket.close()
        return socket

    @property
    def environ(self) -> dict[str, str]:
        """The container's."""
        path = f"{self.folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        ready = str(self.folder / "ready")
        return {"PATH": path, "PYTHONPATH": str(self.folder / "sglang"), "READY": ready, **self.env}

    def pids(self) -> list[int]:
        """A session is what a container has here."""
        found = []
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            try:
                found += [pid] if os.getsid(pid) == self.started else []
            except ProcessLookupError:
                continue
        return found

    async def imported(self, *options: str, named: str = "pod/llm-1-a") -> int:
        """The exit code."""
        running = subprocess.Popen(self.words, env=self.environ, cwd=self.folder, start_new_session=True)
        self.started = running.pid
        try:
            deadline = time.monotonic() + 10
            while not (self.folder / "ready").exists():
                assert running.poll() is None and time.monotonic() < deadline, "it does not start"
                await asyncio.sleep(0.02)
            async with talking_to(self.answer, self.folder):
                kubeconfig = ("--kubeconfig", str(self.folder / "kubeconfig"))
                words = ["import", named, "-n", "models", *kubeconfig, *OPTIONS, *options]
                return await asyncio.to_thread(main, words)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def owned(kind: str, name: str) -> Manifest:
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


SERVER = ("python3", "-m", "sglang.launch_server", "--model-path", "Q/R")
OWN = (
    "--attention-backend",
    "triton",
    "--chat-template",
    "a  b\n'c'",
    "--json-model-override-args",
    '{"x": "$Y $(Z)"}',
)


async def engine_of(cluster: Cluster, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[Manifest, str]:
    """`spec.engine`, and the comments."""
    code = await cluster.imported(*options)
    printed = capsys.readouterr()
    assert code == 0, printed.err
    engine: Manifest = yaml.safe_load(printed.out)["spec"]["engine"]
    return engine, "".join(line for line in printed.out.splitlines(keepends=True) if line.startswith("#"))


@pytest.mark.parametrize(
    ("words", "env"),
    [
        ((*SERVER, *OWN), {}),
        (("sh", "-c", 'if true; then "$0" "$@"; fi; true', *SERVER, *OWN), {}),
        (("tini", *SERVER, *OWN), {}),
        ((*SERVER, *OWN), {"PYTHONPATH": "workers"}),
    ],
    ids=["by itself", "below a shell", "below an init that has its words", "with workers that have its words"],
)
async def test_the_words_are_those_of_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], env: Mapping[str, str]
) -> None:
    cluster = Cluster(folder=tmp_path, words=words, env={name: str(tmp_path / value) for name, value in env.items()})
    engine, comments = await engine_of(cluster, capsys)
    assert (engine["name"], engine["args"]) == ("SGLang", list(OWN))
    assert "the engine's words are those of process" in comments


async def test_a_console_script_is_run_by_an_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    container = {"image": "vllm/vllm-openai:v0.33.0"}
    cluster = Cluster(
        folder=tmp_path, container=container, words=("vllm", "serve", "Q/R", "--generation-config", "vllm")
    )
    engine, comments = await engine_of(cluster, capsys, "--engine-version=0.33.0")
    assert (engine["name"], engine["args"]) == ("VLLM", ["--generation-config", "vllm"])
    assert "stands before the engine" not in comments


async def test_a_value_of_a_secret_is_a_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a Secret of envFrom, whose variable the resource then names."""
    cluster = Cluster(
        folder=tmp_path,
        words=(*SERVER, "--api-key", SECRET, "--hf-chat-template-name", "x/the-second-value=y"),
        container={"env": [FROM_SECRET], "envFrom": [{"prefix": "P_", "secretRef": {"name": "more"}}]},
        env={"KEY": SECRET, "P_b": "the-second-value"},
        objects={"secrets/more": {"metadata": {}, "data": {"b": "", "unused": ""}}},
    )
    engine, _ = await engine_of(cluster, capsys)
    assert engine["apiKeySecretRef"] == {"name": "keys", "key": "api"}
    assert engine["args"] == ["--hf-chat-template-name", "x/$(P_b)=y"]
    second = {"name": "P_b", "valueFrom": {"secretKeyRef": {"name": "more", "key": "b"}}}
    assert engine["env"] == [FROM_SECRET, second]


async def test_what_the_launcher_set_is_told_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = f"export TOKEN={SECRET} SGL_X=1; exec {' '.join(SERVER)}"
    _, comments = await engine_of(Cluster(folder=tmp_path, words=("sh", "-c", launcher)), capsys)
    assert "environment SGL_X: differs" in comments
    assert "environment TOKEN: differs" in comments
    assert "environment PATH" not in comments
    assert SECRET not in comments


async def test_a_relative_path_of_a_model_is_below_the_directory_of_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name of the hub that is no such directory stays one."""
    (tmp_path / "models" / "r").mkdir(parents=True)
    volumes = {"volumeMounts": [{"name": "v", "mountPath": str(tmp_path)}]}
    words = ("python3", "-m", "sglang.launch_server", "--model-path=models/r", "--tokenizer-path", "Q/T")
    cluster = Cluster(folder=tmp_path, words=words, container=volumes)
    cluster.template["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    assert await cluster.imported("--target=", "--served-name=r") == 0
    spec = yaml.safe_load(printed := capsys.readouterr().out)["spec"]
    assert spec["target"]["source"] == "pvc://c/models/r"
    assert spec["engine"]["args"] == ["--tokenizer-path", "Q/T"]
    assert f"models/r: is {tmp_path}/models/r here" in printed


async def test_of_a_deployment_a_ready_pod_is_read_with_the_template_it_was_made_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(folder=tmp_path, words=SERVER)
    loading = cluster.pod("llm-2-b", running={})
    loading["metadata"]["creationTimestamp"] = "2026-11-28T00:00:00Z"
    loading["status"]["containerStatuses"][0]["ready"] = False
    cluster.objects["pods/llm-2-b"] = loading
    cluster.objects["deployments/llm"]["spec"]["template"]["spec"]["containers"][0]["image"] = "lmsysorg/sglang:v9"
    assert await cluster.imported(named="deployment/llm") == 0
    printed = capsys.readouterr().out
    assert yaml.safe_load(printed)["spec"]["engine"]["image"] == TEMPLATE["image"]
    assert "Pod models/llm-1-a" in printed


def refused_exec(status: int, message: str) -> Mapping[str, Any]:
    return {"refused": (status, message)}


NO_SH = 'exec: "sh": executable file not found in $PATH'
FAILED = json.dumps({"status": "Failure", "reason": "InternalError", "code": 500, "message": NO_SH}).encode()
MAY_NOT = 'pods "llm-1-a" is forbidden: User "ann" cannot get resource "pods/exec" in API group "" in the namespace '
ALONE = {"metadata": {"name": "llm-1-a"}, "status": {}}
SIDECAR = {"name": "log", "image": "log:1"}


@pytest.mark.parametrize(
    ("words", "settings", "says"),
    [
        (
            SERVER,
            refused_exec(403, f'{MAY_NOT}"models"'),
            "no permission to get pods/exec in namespace models: ask for",
        ),
        (SERVER, refused_exec(400, "container is not valid"), "container is not valid; try again, or write the words"),
        (SERVER, {"ends": b""}, "the connection closed before the command ended"),
        (SERVER, {"ends": FAILED}, 'by sh in container sglang of Pod models/llm-1-a: exec: "sh": executable file not'),
        (SERVER, {"objects": {"pods/llm-1-a": ALONE}}, "belongs to nothing, not to a Deployment"),
        (
            SERVER,
            {"objects": {"pods/llm-1-a": {**ALONE, "metadata": {"name": "x", **owned("StatefulSet", "llm")}}}},
            "belongs to StatefulSet llm, not to a Deployment; for a model over several nodes",
        ),
        (
            SERVER,
            {"container": {"envFrom": [{"secretRef": {"name": "more"}}]}, "objects": {"secrets/more": {"data": {}}}},
            "",
        ),
        (
            ("sh", "-c", f"{SLEEP[:0]}touch $READY; sleep 60 # --token {SECRET}"),
            {},
            "no process starts SGLang or vLLM; programs: sh, sleep; write the words",
        ),
        (
            ("sh", "-c", f"{' '.join(SERVER)} & sleep 1; {' '.join(SERVER)} & wait"),
            {},
            "are engines that do not start each other",
        ),
        (("titled",), {}, "has another title than its words"),
        (
            ("bash", "-c", f'touch $READY; exec -a "{" ".join(SERVER)}" sleep 60'),
            {},
            "has another title than its words",
        ),
    ],
)
async def test_it_says_why_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], settings: Any, says: str
) -> None:
    pytest.skip("draft")


def test_a_short_secret_counts_by_itself_and_a_long_one_anywhere() -> None:
    values = {"DB_PASSWORD": "pw1", "LEVEL": "8", "URL": "host.example"}
    words = ["--a=pw1", "pw12", "u:pw1@host.example:8", "8", "$X"]
    assert referring(words, values) == ["--a=$(DB_PASSWORD)", "pw12", "u:$(DB_PASSWORD)@$(URL):8", "8", "$$X"]
