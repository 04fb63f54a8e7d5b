"""Model directories that every test of a running emulator needs, and vLLM servers that end with their test."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contract.vllm_running import PATIENCE, Serve, Vllm
from tests.support.running import HEAD, QUICK, TARGET, model


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    return model(tmp_path_factory.mktemp("target"), TARGET)


@pytest.fixture(scope="session")
def head(tmp_path_factory: pytest.TempPathFactory) -> str:
    return model(tmp_path_factory.mktemp("head"), HEAD)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "server.log"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a vLLM; HEAD in its speculative configuration is the directory of a head."""
    running: list[Vllm] = []
    target, head = model(tmp_path / "target", TARGET), model(tmp_path / "head", HEAD)

    def serve(*args: str, speculative: dict[str, Any] | None = None, **env: str) -> Vllm:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = listener.getsockname()[1]
        said = () if speculative is None else ("--speculative-config", json.dumps(speculative).replace("HEAD", head))
        argv = [sys.executable, "-m", "paceline_emulator.vllm", "serve", target, "--served-model-name", "pair"]
        argv += ["--host", "127.0.0.1", "--port", str(port), *said, *args]
        process = subprocess.Popen(argv, env={**os.environ, **QUICK, **env}, stderr=subprocess.PIPE, text=True)
        running.append(Vllm(process, f"http://127.0.0.1:{port}"))
        return running[-1]

    yield serve
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait(PATIENCE)
        assert one.process.stderr
        one.process.stderr.close()
