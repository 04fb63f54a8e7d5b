"""Models, a free port, and a way to start a round's pod."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.round.pod import ENVIRON, HEAD, PATIENCE, TARGET, WRAPPER, Arms, Pod, Start

from paceline.core import Workload
from paceline.evidence import ENVIRONMENT, RoundPlan
from paceline.hub import tokenizer


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name, config in {"target": TARGET, "head": HEAD}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(config))
    for name, content in tokenizer.files().items():
        (tmp_path / "target" / name).write_bytes(content)
    return tmp_path


@pytest.fixture
def port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture
def start(models: Path, port: int) -> Iterator[Start]:
    pods: list[Pod] = []

    def start(
        arms: Arms, *workloads: Workload, change: Callable[[RoundPlan], RoundPlan] | None = None, **env: str
    ) -> Pod:
        plan = RoundPlan(
            run="pair-latency-0123456789-1",
            round=2,
            attempt=0,
            engine="SGLang",
            served_name="pair",
            tokenizer=str(models / "target"),
            port=port,
            arms=arms,
            workloads=workloads,
            results_dir=str(models / "results"),
            compared=("attention_backend",),
            start_timeout_seconds=30,
        )
        plan = change(plan) if change else plan
        ctl = models / "ctl"
        ctl.mkdir()
        environment = {
            **os.environ,
            **ENVIRON,
            "PACELINE_CTL": str(ctl),
            "PACELINE_TERMINATION_LOG": str(models / "message"),
            "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1",
            ENVIRONMENT: plan.to_json(),
            **env,
        }
        processes = []
        for name, argv in {
            "server": ["dash", "-c", WRAPPER.read_text()],
            "client": [sys.executable, "-m", "paceline.pods.round"],
        }.items():
            with (models / f"{name}.log").open("wb") as log:
                processes.append(subprocess.Popen(argv, env=environment, stdout=log, stderr=log))
        pods.append(Pod(models, *processes, plan))
        return pods[-1]

    yield start
    for pod in pods:
        for process in (pod.client, pod.server):
            if process.poll() is None:
                process.terminate()  # the wrapper takes its server along
                process.wait(PATIENCE)
