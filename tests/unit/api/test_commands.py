"""`paceline validate` and `paceline crds` as a user runs them."""

import argparse
import json
from pathlib import Path

import pytest
import yaml

from paceline.api import crds as definitions
from paceline.cli import crds, validate

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
    text = EXAMPLE.read_text().replace("topK: 1, numDraftTokens: 6", "topK: 1, numDraftTokens: 8")
    file.write_text(text + "---\n" + EXAMPLE.read_text().replace("servedName", "servedname"))
    return file


def test_the_example_has_no_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("validate", str(EXAMPLE)) == 0
    assert capsys.readouterr().out == ""


def test_each_problem_is_a_line_with_file_path_and_fix(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("validate", str(EXAMPLE), str(bad)) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{bad}: spec.pools[1].candidates[1].tree.numDraftTokens: "
        "numDraftTokens must be numSteps + 1 = 6 where topK is 1 (a chain); got 8 (document 1 of 2)",
        f"{bad}: spec.target.servedName: must be set (document 2 of 2)",
        f"{bad}: spec.target.servedname: is no field here; did you mean servedName? (document 2 of 2)",
    ]


def test_problems_as_json(bad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("validate", "-o", "json", str(bad)) == 1
    first = json.loads(capsys.readouterr().out)[0]
    assert first["file"] == str(bad)
    assert first["path"] == "spec.pools[1].candidates[1].tree.numDraftTokens"
    assert "got 8" in first["message"]


def test_other_peoples_documents_are_passed_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "others.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\n---\n---\n[1, 2]\n")
    assert paceline("validate", str(file)) == 0
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "did not find expected node content"),
        ("a: 1\na: 2\n", "a stands twice"),
        ("apiVersion: paceline.dev/v1\nkind: BenchmarkRun\n", "apiVersion: must be paceline.dev/v1alpha1"),
        ("apiVersion: paceline.dev/v1alpha1\nkind: Benchmark\n", "kind: must be SpeculativeDeployment or BenchmarkRun"),
        ("apiVersion: paceline.dev/v1alpha1\nkind: BenchmarkRun\nspec: 7\n", "spec: must be an object"),
        (
            "apiVersion: paceline.dev/v1alpha1\nkind: BenchmarkRun\nspec: {pool: 2026-11-21}\n",
            "spec.pool: must be lower",
        ),
    ],
)
def test_what_cannot_be_read_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    assert paceline("validate", str(file)) == 1
    assert says in capsys.readouterr().out


def test_a_file_that_is_not_there_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("validate", "nowhere.yaml") == 1
    assert "No such file" in capsys.readouterr().out


def test_the_crds_are_printed_as_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    assert paceline("crds") == 0
    assert list(yaml.safe_load_all(capsys.readouterr().out)) == definitions()
