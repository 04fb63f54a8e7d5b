"""Where prompts come from, and what to do about a source that is none."""

import pytest
from tests.support.edits import example

from paceline import api

HUB = "hf://datasets/team/prompts"


def said(source: str, **more: str) -> list[str]:
    """Of a deployment that is measured on it."""
    manifest = example()
    manifest["spec"]["benchmark"] = {"datasets": [{"name": "mine", "source": source, **more}]}
    return [str(problem) for problem in api.problems(manifest)]


@pytest.mark.parametrize(
    "file", ["code.jsonl", "data/chat.json", "a/b-1/c_2.v3.jsonl", "data/train.parquet", "train.csv"]
)
def test_a_file_of_a_dataset_repository(file: str) -> None:
    assert said(f"{HUB}/{file}") == []
    assert said(f"{HUB}/{file}", revision="v1.0") == []


@pytest.mark.parametrize(
    ("source", "way"),
    [
        (HUB, "name a file of this repository"),
        ("hf://datasets/team/prompts.jsonl", "name a file of this repository"),
        (f"{HUB}/state.arrow", "write the rows out with to_parquet"),
        (f"{HUB}/code.jsonl.gz", "name a file that is not packed"),
        (f"{HUB}/README", "name a file with such an ending"),
    ],
)
def test_anything_else_is_refused_with_the_way_out(source: str, way: str) -> None:
    (problem,) = said(source)
    assert problem.startswith("spec.benchmark.datasets[0].source: ")
    assert f"must name one .json, .jsonl, .parquet or .csv file of prompts: {way}" in problem
    assert problem.endswith(f"got {source}")


@pytest.mark.parametrize("source", [f"{HUB}/code.jsonl@v1", "hf://datasets/team@v1/code.jsonl", "hf://team/code.jsonl"])
def test_a_revision_has_a_field_of_its_own(source: str) -> None:
    (problem,) = said(source)
    assert "without @: branch, tag and commit have fields of their own" in problem


@pytest.mark.parametrize("source", ["builtin://code", "configMap://team/code.jsonl", "pvc://team/code.jsonl"])
def test_nothing_else_has_a_revision(source: str) -> None:
    (problem,) = said(source, revision="main")
    assert problem.startswith("spec.benchmark.datasets[0].revision: revision must be left out")


def test_whoever_writes_replay_as_a_rate_is_told_how_to_replay() -> None:
    manifest = example()
    manifest["spec"]["pools"][0]["load"] = [{"requestRate": "replay", "maxConcurrency": 8}]
    (problem,) = map(str, api.problems(manifest))
    assert problem.startswith("spec.pools[0].load[0].requestRate: must be a decimal string")
    assert "write its mean rate, and arrivals: Replayed" in problem
