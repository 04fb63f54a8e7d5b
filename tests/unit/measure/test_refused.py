"""What cannot be measured here is told before anything starts, with the way out; exit code 1."""

from pathlib import Path

import pytest
import yaml
from tests.support import example
from tests.support.messages import Says
from tests.unit.measure.test_models import put

from paceline.cli import main
from paceline.pods.prompt_file import read_prompts

EXAMPLES = example.FILE.parent


def models(directory: Path) -> Path:
    """Those of examples/benchmark-only.yaml."""
    for path in ("qwen/Qwen3-8B", "heads/Qwen3-8B-Eagle3"):
        put(directory / path)
    return directory


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], file: Path, *options: str) -> str:
    assert main(["measure", str(file), "-o", str(tmp_path / "run.yaml"), *options]) == 1
    assert not (tmp_path / "run.yaml").exists()
    return capsys.readouterr().err


def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    """An nvidia-smi that knows so many GPUs."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nfor n in $(seq 0 {gpus - 1}); do echo $n, GPU-$n$n$n; done\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_a_pool_is_named_where_there_are_several(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    assert " latency, throughput" in refused(tmp_path, capsys, example.FILE)


def test_one_thing_is_measured_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    both = tmp_path / "both.yaml"
    both.write_text((EXAMPLES / "try.yaml").read_text() + "---\n" + (EXAMPLES / "benchmark-only.yaml").read_text())
    says(refused(tmp_path, capsys, both))


def test_a_model_on_a_claim_has_to_be_here(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    says(refused(tmp_path, capsys, EXAMPLES / "benchmark-only.yaml"))


def test_no_model_of_a_bucket_is_made_up(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    says(refused(tmp_path, capsys, EXAMPLES / "head-in-a-bucket.yaml", "--emulated"))


@pytest.mark.parametrize(
    "options",
    [
        ("-o", "{there}"),
        ("-o", "."),
        ("-o", "{there}/run.d"),
        ("-o", "{there}/a-file/run.yaml"),
        ("-o", "{there}/question.yaml"),
        ("--report", "{there}/run.yaml"),
        ("--report", "{there}/no/page.html"),
        ("--venv", "{there}/no"),
        ("--venv", "baseline={there}/no"),
        ("--venv", "wide={there}"),
        ("--engine-command", "/bin/false"),
        ("--engine-command", "wide='x"),
        ("--venv", "nope={there}"),
        ("--venv", "baseline="),
    ],
)
def test_what_cannot_be_written_or_started_is_told_before_anything_is_downloaded(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, str],
    says: Says,
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # where no driver is
    file = tmp_path / "question.yaml"
    file.write_text((EXAMPLES / "try.yaml").read_text())
    (tmp_path / "a-file").touch()
    given = [word.format(there=tmp_path) for word in ("--engine-command", "/bin/true", *options)]
    said = refused(tmp_path, capsys, file, *given)
    assert options[0] in said
    says(said)


def test_prompts_that_no_round_could_use_are_told_before_a_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    run = yaml.safe_load((EXAMPLES / "benchmark-only.yaml").read_text())
    run["spec"]["workloads"] = [{"name": "own", "source": "pvc://logs/own.jsonl", "concurrency": 1, "requests": 5}]
    question, own = tmp_path / "question.yaml", tmp_path / "own.jsonl"
    question.write_text(yaml.safe_dump(run))
    there = ("--models", str(models(tmp_path / "models")), "--engine-command", "/bin/true", "--prompts", f"own={own}")
    own.write_text('{"prompt": "One?"}\n{"prompt":')
    says(refused(tmp_path, capsys, question, *there))
    own.write_text('{"prompt": "One?"}')
    read_prompts.cache_clear()
    says(refused(tmp_path, capsys, question, *there))


def test_an_engine_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says) -> None:
    at = ("--models", str(models(tmp_path / "models")))
    says(refused(tmp_path, capsys, EXAMPLES / "benchmark-only.yaml", *at, "--engine-command", "/no/python -m sglang"))


@pytest.mark.parametrize(
    ("gpus", "devices"),
    [
        (4, "0,1"),
        (4, "7"),
        (0, "0"),
    ],
)
def test_a_server_gets_the_gpus_of_its_pod(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    gpus: int,
    devices: str,
    says: Says,
) -> None:
    driver(tmp_path, monkeypatch, gpus)
    options = ("--models", str(models(tmp_path / "models")), "--engine-command", "/bin/true", "--devices", devices)
    says(refused(tmp_path, capsys, EXAMPLES / "benchmark-only.yaml", *options))


def test_what_preflight_finds_is_found_here_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A head whose vocabulary is another one's."""
    manifest = yaml.safe_load((EXAMPLES / "try.yaml").read_text())
    manifest["spec"]["target"]["source"] = "pvc://models/target"
    manifest["spec"]["draft"]["source"] = "pvc://models/head"
    manifest["spec"]["cache"] = {"claimName": "models"}
    file = tmp_path / "question.yaml"
    file.write_text(yaml.safe_dump(manifest))
    for name in ("target", "head"):
        put(tmp_path / "models" / name)
    said = refused(tmp_path, capsys, file, "--models", str(tmp_path / "models"), "--emulated")
    assert "spec.draft" in said


def test_a_run_needs_a_commit_for_a_model_of_the_hub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    file = tmp_path / "run-of-the-hub.yaml"
    file.write_text((EXAMPLES / "benchmark-only.yaml").read_text().replace("pvc://company-models/qwen/", "hf://qwen/"))
    says(refused(tmp_path, capsys, file, "--models", str(models(tmp_path / "models"))))
