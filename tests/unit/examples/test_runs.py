"""The examples that measure and deploy nothing."""

from pathlib import Path

import pytest
import yaml
from tests.support.example import RUN
from tests.support.example_files import RUNS
from tests.support.messages import Says

from paceline import api
from paceline.cli import main
from paceline.core import Purpose, RunSpec
from paceline.evidence import RoundPlan
from paceline.plan.run.snapshot import RoundJob
from paceline.plan.run.steps.check import fault
from paceline.render.round_job import round_plan


def run(path: Path) -> RunSpec:
    return api.run(yaml.safe_load(path.read_text()))


LEFT_OUT = {"benchmark-only": [], "sweep-gb10": ["spec.target.commit", "spec.arms[1].draft.commit"]}


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_what_is_left_to_fill_in_is_said_before_a_gpu_is_taken(path: Path) -> None:
    said = fault(run(path)) or ""
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


def asked(capsys: pytest.CaptureFixture[str], path: Path, *arguments: str) -> RoundPlan:
    """What the Job that is printed asks of its client."""
    assert main(["render", str(path), *arguments]) == 0
    return RoundJob(job=yaml.safe_load(capsys.readouterr().out), pod=None).plan


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_its_first_round_is_rendered(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, plan = run(path), asked(capsys, path)
    assert (plan.round, plan.try_) == (0, 0)
    assert [arm.name for arm in plan.arms] == [arm.name for arm in spec.arms]
    assert plan.workloads == spec.workloads


def test_one_arm_is_rendered_beside_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert [arm.name for arm in asked(capsys, RUNS[0], "--pool", "chat", "--arm", "wide").arms] == ["baseline", "wide"]
    assert [arm.name for arm in asked(capsys, RUNS[0], "--arm", "baseline").arms] == ["baseline"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--pool", "code"], "no pool code; the run own-models-chat is of chat"),
        (["--arm", "slim"], "no arm slim; the run own-models-chat has baseline, narrow, wide"),
    ],
)
def test_a_pool_or_arm_that_is_not_there(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", str(RUNS[0]), *arguments]) == 1
    assert capsys.readouterr().err == f"{RUNS[0]}: {says}\n"


def sweep(tmp_path: Path, commit: str | None) -> Path:
    """examples/sweep-gb10.yaml with this commit of both models; None: without any."""
    manifest = yaml.safe_load(next(path for path in RUNS if path.stem == "sweep-gb10").read_text())
    for model in (manifest["spec"]["target"], manifest["spec"]["arms"][1]["draft"]):
        model.update({"commit": commit} if commit else {})
        if not commit:
            del model["commit"]
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(manifest))
    return path


def test_commits_that_are_missing_are_named_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    assert main(["render", str(sweep(tmp_path, None))]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[1] for line in lines] == [*LEFT_OUT["sweep-gb10"]]
    says(*lines)


def test_what_a_run_costs_is_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    """Five rounds of two arms: 120 s to start and 64 requests of 512 tokens at 1, 2, 4 and 8 times 100 tokens/s."""
    planned = ["--start-seconds", "120", "--tokens-per-second", "100", "--gpus-free", "1"]
    assert main(["plan", str(sweep(tmp_path, "1" * 40)), *planned]) == 0
    said = capsys.readouterr().out.splitlines()
    hours = 5 * 2 * (120 + 64 * 512 / 100 * (1 + 1 / 2 + 1 / 4 + 1 / 8)) / 3600
    assert said[3].split() == ["gb10", "5", "5", "10", f"{hours:.1f}"]
    says(*said[-3:])


def test_a_run_that_cannot_be_carried_out_is_planned_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", str(sweep(tmp_path, None))]) == 1
    assert "Stalled: spec.target.commit " in capsys.readouterr().out
