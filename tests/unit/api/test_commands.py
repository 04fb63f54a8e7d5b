"""`paceline validate` and `paceline crds` as a user runs them."""

import argparse
import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from tests.support.messages import Says
from tests.support.processor_time import least_seconds

from paceline.api import crds as definitions
from paceline.cli import crds, validate
from paceline_emulator.hub.models import generated

GROUP = "apiVersion: paceline.dev/v1alpha1"
EXAMPLE = Path(__file__).parents[3] / "examples" / "qwen3-coder-next.yaml"


def paceline(*argv: str) -> int:
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers()
    for command in (crds, validate):
        command.add(subparsers)
    args = parser.parse_args(argv)
    code: int = args.run(args)
    return code


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A chain of five steps that asks for eight tokens, and a misspelt field."""
    file = tmp_path / "bad.yaml"
    text = EXAMPLE.read_text().replace("{numSteps: 5}", "{numSteps: 5, topK: 1, numDraftTokens: 8}")
    file.write_text(text + "---\n" + EXAMPLE.read_text().replace("servedName", "servedname"))
    return file


def test_the_example_has_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("validate", str(EXAMPLE)) == 0
    assert capsys.readouterr().out == ""


def test_each_problem_is_a_line_with_file_path_and_fix(
    bad: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    assert paceline("validate", str(EXAMPLE), str(bad)) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{bad}:41:51: spec.candidates[1].tree.numDraftTokens: ")
    assert second.startswith(f"{bad}:72:5: spec.target.servedname: ")
    says(first, second)


def test_problems_as_json(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("validate", "-o", "json", str(bad)) == 1
    first = json.loads(capsys.readouterr().out)[0]
    assert first["file"] == str(bad)
    assert (first["line"], first["column"]) == (41, 51)
    assert first["path"] == "spec.candidates[1].tree.numDraftTokens"
    assert "got 8" in first["message"]


def test_other_peoples_documents_are_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "others.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\n---\n---\n[1, 2]\n")
    assert paceline("validate", str(file)) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "text", ["", "- a\n", "apiVersion: v1\nkind: ConfigMap\n", "apiVersion: x.dev/v1\nkind: Pool\n"]
)
def test_a_file_in_which_nothing_was_checked_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: Says
) -> None:
    """It is no problem: a folder of manifests may be given file by file."""
    file = tmp_path / "others.yaml"
    file.write_text(text)
    assert paceline("validate", str(file)) == 0
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    says(err)
    assert paceline("validate", str(tmp_path), str(EXAMPLE)) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1] == f"{EXAMPLE}: valid (1 SpeculativeDeployment)"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a: [", ""),
        ("a: 1\na: 2\n", ""),
        ("a: " + "[" * 100_000, ""),
        (f"{GROUP}\nkind: BenchmarkRun\nspec: &spec {{pool: *spec}}\n", ""),
        ("a: " + "1" * 5000, ""),
        ("apiVersion: paceline.dev/v1\nkind: BenchmarkRun\n", "apiVersion: "),
        ("apiVersion: pacelin.dev/v1alpha1\nkind: SpeculativeDeployment\n", "apiVersion: "),
        (f"{GROUP}\nkind: BenchmarkRun\nspec: {{}}\n", "metadata.name: "),
        (f"{GROUP}\nkind: Benchmark\n", "kind: "),
        (f"{GROUP}\nkind: BenchmarkRun\nspec: 7\n", "spec: "),
        (f"{GROUP}\nkind: BenchmarkRun\nspec: {{pool: 2026-11-21}}\n", "spec.pool: "),
    ],
    ids=range(11),
)
def test_what_cannot_be_read_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, path: str, says: Says
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    assert paceline("validate", str(file)) == 1
    lines = [line.partition(": ")[2] for line in capsys.readouterr().out.splitlines()]
    assert any(line.startswith(path) for line in lines)
    says(*lines)


def test_a_file_that_is_not_there_is_a_problem(capsys: pytest.CaptureFixture[str], says: Says) -> None:
    assert paceline("validate", "nowhere.yaml") == 1
    says(capsys.readouterr().out)


def test_a_directory_is_its_manifests(tmp_path: Path, bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("a: [")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "worse.json").write_text('{"apiVersion": "paceline.dev/v1alpha1", "kind": "Pool"}')
    assert paceline("validate", str(tmp_path)) == 1
    assert {line.partition(":")[0] for line in capsys.readouterr().out.splitlines()} == {str(bad)}
    assert paceline("validate", "-R", str(tmp_path)) == 1
    assert f"{tmp_path / 'below' / 'worse.json'}:1:41: kind: " in capsys.readouterr().out


def test_a_directory_without_manifests_is_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("validate", str(tmp_path)) == 1
    assert ".json, .yaml, .yml" in capsys.readouterr().out


def test_standard_input(bad: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(bad.read_text()))
    assert paceline("validate", "-") == 1
    assert capsys.readouterr().out.startswith("-:41:51: spec.candidates[1].tree.numDraftTokens: ")


def test_a_terminal_that_knows_ascii_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "unicode.yaml"
    file.write_text(EXAMPLE.read_text().replace("name: latency", "name: 延迟"))
    shown = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(shown, encoding="ascii", write_through=True))
    assert paceline("validate", str(file)) == 1
    assert b"spec.pools[0].name: " in shown.getvalue()


def test_a_whole_number_may_have_a_point(tmp_path: Path) -> None:
    """kubectl sends it without."""
    file = tmp_path / "point.yaml"
    file.write_text(EXAMPLE.read_text().replace("count: 4", "count: 4.0"))
    assert paceline("validate", str(file)) == 0


def test_a_list_is_its_items(tmp_path: Path, bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As `kubectl get specdep -o yaml` prints it."""
    file = tmp_path / "list.yaml"
    items = list(yaml.safe_load_all(bad.read_text()))
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    assert paceline("validate", str(file)) == 1
    assert "(document 2 of 2)" in capsys.readouterr().out


def test_what_the_engine_refuses_is_said_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "port.yaml"
    file.write_text(EXAMPLE.read_text().replace("- --mem-fraction", "- --port=1\n      - --mem-fraction"))
    assert paceline("validate", str(file)) == 1
    assert f"{file}:32:9: spec.engine.args[1]: --port" in capsys.readouterr().out


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """As `hf download` leaves the target, and the head in a folder of its own."""
    repositories = generated()
    target = repositories["Qwen/Qwen3-Coder-Next"].at("main")
    head = repositories["thoughtworks/Qwen3-Coder-Next-Eagle3"].at("main")
    assert target
    assert head
    cached = tmp_path / "models--Qwen--Qwen3-Coder-Next"
    write(cached / "refs", {"main": target.commit.encode()})
    write(cached / "snapshots" / target.commit, {name: file.content for name, file in target.files.items()})
    write(tmp_path / "thoughtworks" / "Qwen3-Coder-Next-Eagle3", {n: file.content for n, file in head.files.items()})
    return tmp_path


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def test_with_the_models_at_hand_preflight_is_done_at_the_desk(
    tmp_path: Path, models: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert paceline("validate", "--models", str(models), str(EXAMPLE)) == 0, capsys.readouterr().out
    file = tmp_path / "eagle.yaml"
    file.write_text(EXAMPLE.read_text().replace("algorithm: EAGLE3", "algorithm: EAGLE"))
    assert paceline("validate", "--models", str(models), str(file)) == 1
    assert capsys.readouterr().out.startswith(f"{file}:23:5: spec.draft.algorithm: ")


def test_a_model_that_is_not_at_hand_is_said(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = models / "thoughtworks" / "Qwen3-Coder-Next-Eagle3" / "config.json"
    head.unlink()
    assert paceline("validate", "--models", str(models), str(EXAMPLE)) == 1
    assert "hf://thoughtworks/Qwen3-Coder-Next-Eagle3 at main " in capsys.readouterr().out


def test_of_a_list_that_is_too_short_nothing_else_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], says: Says
) -> None:
    """Nor of the lists that it stands in; and fields are called as in the manifest."""
    manifest = yaml.safe_load(EXAMPLE.read_text())
    depth, twice = {"fromBatchSize": 1, "numSteps": 3}, tmp_path / "twice.yaml"
    manifest["spec"]["candidates"] = [{"name": "one", "depthByBatchSize": [depth]}]
    manifest["spec"]["pools"] = [{"name": "latency", "load": [{"concurrency": [1]}]}]
    (short := tmp_path / "short.yaml").write_text(yaml.safe_dump(manifest))
    assert paceline("validate", str(short)) == 1
    told = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in told] == ["spec.candidates[0].depthByBatchSize"]
    manifest["spec"]["candidates"][0]["depthByBatchSize"] = [depth, depth]
    twice.write_text(yaml.safe_dump(manifest))
    assert paceline("validate", str(twice)) == 1
    says(capsys.readouterr().out.partition(": ")[2])


def test_one_file_takes_little_longer_than_to_import_what_it_needs() -> None:
    """Some six times as long as the three libraries, for the models of the API. An import it does not need is what
    would make it slow."""
    code = "import sys; from paceline.cli import main; assert main(sys.argv[1:]) == 0; print(*sys.modules)"
    command = [sys.executable, "-c", code, "validate", str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    libraries = least_seconds("-c", "import pydantic, yaml, cel_expr_python")
    assert least_seconds(*command[1:]) < 15 * libraries
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded.isdisjoint({"kopf", "kubernetes", "scipy", "numpy", "aiohttp", "jinja2", "huggingface_hub"})


def test_the_crds_are_printed_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("crds") == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == definitions()
