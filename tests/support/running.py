"""Starts emulated servers for tests, and asks them things the way a stranger would: over loopback."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paceline_emulator

PACKAGES = Path(paceline_emulator.__file__).parents[1]
IMAGE = Path(__file__).parents[2] / "dev" / "emulator-image"
PATIENCE = 30.0

# The facts of Qwen3-Coder-Next and of its published head that matter here.
TARGET = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "num_hidden_layers": 48,
    "num_experts": 512,
    "vocab_size": 151936,
    "max_position_embeddings": 262144,
}
HEAD = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 2048,
    "vocab_size": 151936,
    "draft_vocab_size": 32000,
    "max_position_embeddings": 4096,
}

QUICK = {"PACELINE_EMULATE_STARTUP_SECONDS": "0.1", "PACELINE_EMULATE_WARMUP_SECONDS": "0.05"}
CALM = {"PACELINE_EMULATE_NOISE_CV": "0", "PACELINE_EMULATE_DRAIN_POLL_SECONDS": "0.1"}
SHORT_HEADS = {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    text: str
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Running:
    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def get(self, path: str, **headers: str) -> Response:
        return ask(self.url + path, None, headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Response:
        return ask(self.url + path, json.dumps(body or {}).encode(), headers)

    def metrics(self) -> dict[str, float]:
        """Sample (name and labels as written, model name left out) → value."""
        return samples(self.get("/metrics").text)


def model(directory: Path, config: Mapping[str, Any]) -> str:
    """A model directory that holds a config.json and nothing else."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    return str(directory)


def tree(head: str, steps: int, topk: int, tokens: int, algorithm: str = "EAGLE3") -> tuple[str, ...]:
    """The flags of one candidate."""
    return (
        "--speculative-algorithm", algorithm, "--speculative-draft-model-path", head,
        "--speculative-num-steps", str(steps), "--speculative-eagle-topk", str(topk),
        "--speculative-num-draft-tokens", str(tokens),
    )  # fmt: skip


def launch(argv: tuple[str, ...], log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """As the operator starts SGLang: `python3 -m sglang.launch_server …`."""
    return subprocess.Popen(
        [sys.executable, "-m", "sglang.launch_server", *argv],
        stdout=subprocess.DEVNULL,
        stderr=log.open("wb"),
        env={**os.environ, "PYTHONPATH": f"{PACKAGES}:{IMAGE}", **SHORT_HEADS, **env},
    )


@contextmanager
def emulated(target: str, log: Path, *flags: str, **env: str) -> Iterator[Running]:
    """A server that is ready; killed at the end, if it still runs."""
    port = free_port()
    argv = ("--model-path", target, "--port", str(port), "--attention-backend", "triton", "--enable-metrics", *flags)
    process = launch(argv, log, {**QUICK, **CALM, **env})
    running = Running(process, f"http://127.0.0.1:{port}", log)
    try:
        wait_ready(running, "/health_generate" if "PACELINE_EMULATE_VERSION" in env else "/ready")
        yield running
    finally:
        process.kill()
        process.wait()


def wait_ready(running: Running, path: str = "/ready") -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert running.process.poll() is None, running.log.read_text()
        try:
            if running.get(path).status == 200:
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError(f"not ready in {PATIENCE} s:\n{running.log.read_text()}")


def refused(target: str, log: Path, *flags: str, **env: str) -> tuple[int, str]:
    """Exit code and stderr of a server that ends by itself."""
    process = launch(("--model-path", target, "--port", str(free_port()), *flags), log, {**QUICK, **env})
    try:
        return process.wait(PATIENCE), log.read_text()
    finally:
        process.kill()
        process.wait()


def ask(url: str, body: bytes | None, headers: Mapping[str, str]) -> Response:
    began = time.perf_counter()
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return Response(response.status, response.read().decode(), time.perf_counter() - began)
    except urllib.error.HTTPError as error:
        return Response(error.code, error.read().decode(), time.perf_counter() - began)


def events(text: str) -> list[Any]:
    """What came in a stream, [DONE] left out."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ") and line != "data: [DONE]"]


def samples(text: str) -> dict[str, float]:
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[re.sub(r',?model_name="[^"]*"', "", name)] = float(value)
    return found


def total(found: Mapping[str, float], name: str) -> float:
    """A counter over all its labels."""
    return sum(value for key, value in found.items() if key.split("{")[0] == name)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
