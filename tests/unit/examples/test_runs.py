"""The examples that measure and deploy nothing."""

from pathlib import Path

import pytest
import yaml
from tests.example_files import RUNS
from tests.unit.render.example import RUN

from paceline import api
from paceline.cli import main
from paceline.core import Purpose, RunSpec
from paceline.plan.run.check import fault
from paceline.render.benchmark import round_plan


def run(path: Path) -> RunSpec:
    return api.run(yaml.safe_load(path.read_text()))


LEFT_OUT = {"benchmark-only": [], "sweep-gb10": ["spec.target.commit", "spec.arms[1].draft.commit"]}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_what_is_left_to_fill_in_is_said_before_a_gpu_is_taken(path: Path) -> None:
    said = fault(run(path))
    assert [field for field in LEFT_OUT[path.stem] if f"{field} is missing" not in said] == []
    assert said.count("is missing") == len(LEFT_OUT[path.stem])


def test_one_of_each_purpose() -> None:
    assert {path.stem: run(path).purpose for path in RUNS} == {
        "benchmark-only": Purpose.GATE,
        "sweep-gb10": Purpose.SWEEP,
    }


def test_models_at_paths_of_ones_own_need_no_commit() -> None:
    (path,) = (path for path in RUNS if path.stem == "benchmark-only")
    spec = run(path)
    commands = [" ".join(arm.argv) for arm in round_plan(RUN, spec, spec.arms, 0, 0).arms]
    assert all("--model-path /models/qwen/Qwen3-8B " in command for command in commands)
    assert ["/models/heads/Qwen3-8B-Eagle3" in command for command in commands] == [False, True, True]


def test_a_run_has_nothing_to_render(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", str(RUNS[0])]) == 1
    assert "there is no SpeculativeDeployment in it" in capsys.readouterr().err
