"""Models, a free port, and ways to start a round's pod, or its wrapper alone."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from tests.support.running import free_port
from tests.unit.round.pod import Arms, Pod, Start, begin, write_models
from tests.unit.round.wrapped import QUICK, STARTED, Wrap, Wrapped, alive

from paceline.core import Workload
from paceline.evidence import RoundPlan


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return write_models(tmp_path)


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def start(models: Path, port: int) -> Iterator[Start]:
    pods: list[Pod] = []

    def start(
        arms: Arms,
        *workloads: Workload,
        change: Callable[[RoundPlan], RoundPlan] | None = None,
        alone: bool = False,
        **env: str,
    ) -> Pod:
        pods.append(begin(models, port, arms, *workloads, change=change, alone=alone, **env))
        return pods[-1]

    yield start
    for pod in pods:
        pod.end()


@pytest.fixture
def wrap(tmp_path: Path) -> Iterator[Wrap]:
    made: list[Wrapped] = []

    def start(*, alone: tuple[str, ...] = (), **env: str) -> Wrapped:
        ctl = tmp_path / "ctl"
        for side in ("in/arm", "out"):
            (ctl / side).mkdir(parents=True)
        out = {"PACELINE_CTL": str(ctl), "PACELINE_OUT": str(ctl / "out")}
        environment: Mapping[str, str] = {**os.environ, **QUICK, **out, **env}
        log = (tmp_path / "stdout").open("wb")
        process = subprocess.Popen([*alone, *STARTED], env=environment, stdout=log, stderr=log)
        made.append(Wrapped(process, ctl))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.wait()
        if one.seen and alive(one.seen):
            os.killpg(one.seen, signal.SIGKILL)
