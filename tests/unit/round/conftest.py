"""Models, a free port, and a way to start a round's pod."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.round.pod import Arms, Pod, Start, begin, free_port, write_models

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
