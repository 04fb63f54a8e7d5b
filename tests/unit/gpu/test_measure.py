"""dev/gpu/measure and its question, with programs in place of SGLang's Python and of Paceline."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.unit.gpu.test_report import run

from paceline.cli import main

GPU = Path(__file__).parents[3] / "dev" / "gpu"


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Programs that write down how they were called; Paceline's leaves a run, and rejects."""
    measured = tmp_path / "measured.yaml"
    measured.write_text(yaml.safe_dump(run()))
    models = tmp_path / "out" / "models" / "big"
    program(tmp_path / "venv/bin/python", f"echo models $* >>{tmp_path}/calls; mkdir -p {models}; "
                                          f"touch {models}/model.safetensors.index.json")  # fmt: skip
    paceline = program(
        tmp_path / "paceline", f"echo $* >>{tmp_path}/calls; cp {measured} {tmp_path}/out/run.yaml; exit 10"
    )
    return {**os.environ, "VENV": f"{tmp_path}/venv", "PACELINE": str(paceline), "REPORT": f"{tmp_path}/gpu.md"}


def measure(tmp_path: Path, environ: dict[str, str], *options: str) -> int:
    command = [str(GPU / "measure"), str(tmp_path / "out"), *options]
    return subprocess.run(command, env=environ, check=False).returncode


def test_models_are_made_once_then_rounds_are_measured_and_reported(tmp_path: Path, environ: dict[str, str]) -> None:
    out = tmp_path / "out"
    assert [measure(tmp_path, environ | {"ENGINE_ENV": "A=1 B=2"}, "--layers", "8") for _ in range(2)] == [10, 10]
    rounds = (
        f"measure {GPU}/rounds.yaml --models {out}/models --venv {tmp_path}/venv --env HF_HUB_OFFLINE=1 "
        f"--env A=1 --env B=2 --output {out}/run.yaml"
    )
    made = f"models {GPU}/models.py {out}/models --layers 8"
    assert (tmp_path / "calls").read_text().splitlines() == [made, rounds, rounds]
    assert (tmp_path / "gpu.md").read_text().startswith("# One GPU")


def test_without_an_engine_it_says_what_to_set(tmp_path: Path, environ: dict[str, str]) -> None:
    assert measure(tmp_path, {key: value for key, value in environ.items() if key != "VENV"}) != 0
    assert not (tmp_path / "calls").exists()


def test_the_question_is_admitted() -> None:
    assert main(["validate", str(GPU / "rounds.yaml")]) == 0
