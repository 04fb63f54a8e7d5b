"""Where prompts come from, and what to do about a source that is none."""

import pytest
from tests.support.edits import example
from tests.support.messages import Says

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
    "source",
    [
        HUB,
        "hf://datasets/team/prompts.jsonl",
        f"{HUB}/state.arrow",
        f"{HUB}/code.jsonl.gz",
        f"{HUB}/README",
        # A revision has a field of its own.
        f"{HUB}/code.jsonl@v1",
        "hf://datasets/team@v1/code.jsonl",
        "hf://team/code.jsonl",
    ],
)
def test_anything_else_is_refused_with_the_way_out(source: str, says: Says) -> None:
    (problem,) = said(source)
    assert problem.startswith("spec.benchmark.datasets[0].source: ")
    assert source in problem
    says(problem)


@pytest.mark.parametrize("source", ["builtin://code", "configMap://team/code.jsonl", "pvc://team/code.jsonl"])
def test_nothing_else_has_a_revision(source: str, says: Says) -> None:
    (problem,) = said(source, revision="main")
    assert problem.startswith("spec.benchmark.datasets[0].revision: ")
    says(problem)


def test_whoever_writes_replay_as_a_rate_is_told_how_to_replay(says: Says) -> None:
    manifest = example()
    manifest["spec"]["pools"][0]["load"] = [{"requestRate": "replay", "maxConcurrency": 8}]
    (problem,) = map(str, api.problems(manifest))
    assert problem.startswith("spec.pools[0].load[0].requestRate: ")
    says(problem)
