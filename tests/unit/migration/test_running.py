"""`paceline import pod/NAME`: the words are those of real processes, which a real sh reads behind an API server that
speaks exec as Kubernetes does."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from tests.support.answered import talking_to
from tests.support.messages import Says
from tests.support.migration import CASES, Manifest

from paceline.cli import main
from paceline.cli.importing.running import READ, processes, referring
from paceline.kube import transport

OPTIONS = ("--engine-version=0.5.23", "--product=H100", "--target=hf://Q/R", "--served-name=r")
SLEEP = "import os, time; open(os.environ['READY'], 'w').close(); time.sleep(60)"
WORKERS = f"""
import os, subprocess, sys
if "WORKER" not in os.environ:
    subprocess.Popen(sys.orig_argv, env={{**os.environ, "WORKER": "1"}})
{SLEEP}"""
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
INIT = '#!/bin/sh\n"$@" --log-level debug &\nwait\n'
TEMPLATE = {"name": "sglang", "image": "lmsysorg/sglang:v0.5.23", "resources": {"limits": {"nvidia.com/gpu": 1}}}
FROM_SECRET = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "api"}}}


@dataclass(kw_only=True)
class Cluster:
    """A Deployment with one pod, whose only container runs `words`."""

    folder: Path
    words: tuple[str, ...]
    container: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    engine: str = "sglang"
    """What `sglang.launch_server` does: `sglang`, `workers` or `titled`."""
    objects: dict[str, Manifest] = field(default_factory=dict)
    refused: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Path, or exec → status and message."""
    seconds: float = 0.0
    """That exec takes."""
    ends: bytes = b'{"status": "Success"}'
    """What exec says last; nothing if it is empty."""

    def __post_init__(self) -> None:
        for name, code in {"sglang": SLEEP, "workers": WORKERS, "titled": f"{TITLE}\n{SLEEP}"}.items():
            package = self.folder / name / "sglang"
            package.mkdir(parents=True)
            (package / "__init__.py").touch()
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
        if refusal := self.refused.get("exec" if name.endswith("/exec") else name):
            return web.json_response({"kind": "Status", "message": refusal[1]}, status=refusal[0])
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
        assert request.headers["Authorization"] == "Bearer secret"
        *command, files = request.query.getall("command")
        seen = " ".join(name.replace("[0-9]*", str(pid)) for name in files.split() for pid in self.pids())
        run = asyncio.create_subprocess_exec(*command, seen, env=self.environ, stdout=asyncio.subprocess.PIPE)
        out, _ = await (await run).communicate()
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        await asyncio.sleep(self.seconds)
        for at in range(0, len(out), 999):
            await socket.send_bytes(b"\1" + out[at : at + 999])
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
        return {"PATH": path, "PYTHONPATH": str(self.folder / self.engine), "READY": ready, **self.env}

    def pids(self) -> list[int]:
        """A session is what a container has here."""
        listed = subprocess.run(["ps", "-s", str(self.started), "-o", "pid="], capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]

    async def imported(self, *options: str, named: str = "pod/llm-1-a") -> int:
        """The exit code."""
        running = await asyncio.create_subprocess_exec(
            *self.words, env=self.environ, cwd=self.folder, start_new_session=True
        )
        self.started = running.pid
        try:
            deadline = time.monotonic() + 10
            while not (self.folder / "ready").exists():
                assert time.monotonic() < deadline, "it does not start"
                await asyncio.sleep(0.02)
            async with talking_to(self.answer, self.folder):
                kubeconfig = ("--kubeconfig", str(self.folder / "kubeconfig"))
                words = ["import", named, "-n", "models", *kubeconfig, *OPTIONS, *options]
                return await asyncio.to_thread(main, words)
        finally:
            os.killpg(running.pid, signal.SIGKILL)
            await running.wait()


def owned(kind: str, name: str) -> Manifest:
    return {"ownerReferences": [{"kind": kind, "name": name, "controller": True}]}


SERVER = ("python3", "-m", "sglang.launch_server", "--model-path", "Q/R")
OWN = (
    "--attention-backend",
    "triton",
    "--chat-template",
    "a  b\n'c'",
    "--json-model-override-args",
    '{"x": "$Y $$"}',
)


async def engine_of(cluster: Cluster, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[Manifest, str]:
    """`spec.engine`, and the comments."""
    code = await cluster.imported(*options)
    printed = capsys.readouterr()
    assert code == 0, printed.err
    engine: Manifest = yaml.safe_load(printed.out)["spec"]["engine"]
    return engine, "".join(line for line in printed.out.splitlines(keepends=True) if line.startswith("#"))


@pytest.mark.parametrize(
    ("words", "engine", "more"),
    [
        ((*SERVER, *OWN), "sglang", []),
        (("sh", "-c", 'if true; then "$0" "$@"; fi; true', *SERVER, *OWN), "sglang", []),
        (("tini", *SERVER, *OWN), "sglang", ["--log-level", "debug"]),
        ((*SERVER, *OWN), "workers", []),
    ],
    ids=["by itself", "below a shell", "below an init that adds words to its own", "with workers that have its words"],
)
async def test_the_words_are_those_of_the_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], engine: str, more: list[str]
) -> None:
    found, comments = await engine_of(Cluster(folder=tmp_path, words=words, engine=engine), capsys)
    assert (found["type"], found["args"]) == ("SGLang", [*OWN, *more])
    assert re.search(r"process \d+", comments)


async def test_a_console_script_is_run_by_an_interpreter(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    container = {"image": "vllm/vllm-openai:v0.33.0"}
    cluster = Cluster(
        folder=tmp_path, container=container, words=("vllm", "serve", "Q/R", "--generation-config", "vllm")
    )
    engine, comments = await engine_of(cluster, capsys, "--engine-version=0.33.0")
    assert (engine["type"], engine["args"]) == ("vLLM", ["--generation-config", "vllm"])
    assert Path(sys.executable).name not in comments


async def test_a_value_of_a_secret_is_a_reference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of a Secret of envFrom, whose variable the resource then names."""
    cluster = Cluster(
        folder=tmp_path,
        words=(*SERVER, "--api-key", SECRET, "--hf-chat-template-name", "x/the-second-value=y"),
        container={"env": [FROM_SECRET], "envFrom": [{"prefix": "P_", "secretRef": {"name": "more"}}]},
        env={"KEY": SECRET, "P_b": "the-second-value"},
        objects={"secrets/more": {"metadata": {}, "data": {"b": "", "unused": ""}}},
    )
    assert await cluster.imported() == 1
    printed = capsys.readouterr()
    assert "spec.engine.args[1]: x/$(P_b)=y: " in printed.err
    engine = yaml.safe_load(printed.out)["spec"]["engine"]
    assert engine["apiKeySecretRef"] == {"name": "keys", "key": "api"}
    assert engine["args"] == ["--hf-chat-template-name", "x/$(P_b)=y"]
    second = {"name": "P_b", "valueFrom": {"secretKeyRef": {"name": "more", "key": "b"}}}
    assert engine["env"] == [FROM_SECRET, second]
    assert not any(value in printed.out + printed.err for value in cluster.env.values())


async def test_what_the_launcher_set_is_told_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launcher = f"export TOKEN={SECRET} SGL_X=1; exec {' '.join(SERVER)}"
    _, comments = await engine_of(Cluster(folder=tmp_path, words=("sh", "-c", launcher)), capsys)
    assert "environment SGL_X: " in comments
    assert "environment TOKEN: " in comments
    assert "environment P" not in comments
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
    assert f"models/r: becomes {tmp_path}/models/r" in printed


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


NO_SH = 'exec: "sh": executable file not found in $PATH'
FAILED = json.dumps({"status": "Failure", "reason": "InternalError", "code": 500, "message": NO_SH}).encode()
MAY_NOT = 'User "ann" cannot get resource "pods/exec" in API group "" in the namespace "models"'
NOT_SECRETS = 'secrets "more" is forbidden: User "ann" cannot get resource "secrets"'
TWO = f"{' '.join(SERVER)} & {' '.join(SERVER)} & wait"
MORE = {"container": {"envFrom": [{"secretRef": {"name": "more"}}]}}
OTHERS = ("bash", "-c", f'touch $READY; (exec -a "cache --token {SECRET}" sleep 60); true')
TITLED = ("bash", "-c", f'touch $READY; exec -a "{" ".join(SERVER)} --token {SECRET}" sleep 60')


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        (SERVER, {"refused": {"exec": (403, MAY_NOT)}}),
        (SERVER, {"refused": {"exec": (400, "no such container")}}),
        (SERVER, {"refused": {"secrets/more": (403, NOT_SECRETS)}, **MORE}),
        (SERVER, {"ends": b""}),
        (SERVER, {"ends": FAILED}),
        (OTHERS, {}),
        (("sh", "-c", TWO), {}),
        (SERVER, {"engine": "titled"}),
        (TITLED, {}),
    ],
    ids=["exec", "container", "secrets", "closed", "no sh", "no engine", "two", "a title", "its words in one"],
)
async def test_it_says_why_words_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], settings: Any, says: Says
) -> None:
    assert await Cluster(folder=tmp_path, words=words, **settings).imported() == 1
    printed = capsys.readouterr()
    assert (printed.out, SECRET in printed.err) == ("", False)
    says(re.sub(r"\b\d\d+\b", "PID", printed.err))


async def test_an_exec_that_does_not_end_is_given_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "EXEC_SECONDS", 0.2)
    assert await Cluster(folder=tmp_path, words=SERVER, seconds=1).imported() == 1
    assert " 0.2 s" in capsys.readouterr().err


SIDECAR = {"name": "log", "image": "log:1"}
CRASHED = {"waiting": {"reason": "CrashLoopBackOff"}}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.objects.pop("pods/llm-1-a"), "pod/llm-1-a"),
        (lambda c: c.objects.pop("pods/llm-1-a"), "deploy/llm"),
        (lambda c: c.objects.pop("deployments/llm"), "deployment/llm"),
        (lambda c: c.objects.pop("deployments/llm"), "pod/llm-1-a"),
        (lambda c: c.objects["pods/llm-1-a"]["metadata"].pop("ownerReferences"), "pods/llm-1-a"),
        (lambda c: c.objects["pods/llm-1-a"]["metadata"].update(owned("StatefulSet", "llm")), "pod/llm-1-a"),
        (lambda c: c.template["containers"].append(SIDECAR), "pod/llm-1-a"),
        (lambda c: c.objects.update({"pods/llm-1-a": c.pod("llm-1-a", **CRASHED)}), "pod/llm-1-a"),
    ],
)
async def test_it_says_which_pod_it_needs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Cluster], object], named: str, says: Says
) -> None:
    cluster = Cluster(folder=tmp_path, words=SERVER)
    change(cluster)
    assert await cluster.imported(named=named) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    says(printed.err)


async def test_the_engines_container_is_named(tmp_path: Path) -> None:
    cluster = Cluster(folder=tmp_path, words=SERVER)
    cluster.template["containers"].append(SIDECAR)
    assert await cluster.imported("-c", "sglang") == 0


def test_the_shell_that_reads_is_no_program_of_the_container() -> None:
    files = {"/proc/7/stat": b"7 (sh) S 0 7", "/proc/7/cmdline": b"\0".join([b"sh", b"-c", READ.encode(), b"mark"])}
    assert processes(files) == {}


def test_a_short_secret_counts_by_itself_and_a_long_one_anywhere() -> None:
    values = {"DB_PASSWORD": "pw1", "LEVEL": "8", "HOST": "host.example", "URL": "host.example.org"}
    words = ["--a=pw1", "pw12", "xpw1", "u:pw1@host.example:8", "xhost.example.org", "8", "$X"]
    after = ["--a=$(DB_PASSWORD)", "pw12", "xpw1", "u:$(DB_PASSWORD)@$(HOST):8", "x$(URL)", "8", "$$X"]
    assert referring(words, values) == after
