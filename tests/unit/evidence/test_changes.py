"""The differences between two questions, in sentences."""

from typing import Any

import pytest
from tests.support.messages import Says

from paceline.evidence.changes import summary

ARMS = [{"name": "baseline"}, {"name": "wide", "draft": {"source": "hf://a/head", "commit": "1"}, "tree": {"topK": 4}}]
CODE = {"name": "code", "concurrency": 1, "maxTokens": 24}
SPEC: dict[str, Any] = {
    "pool": "latency",
    "target": {"source": "hf://a/target", "commit": "1", "servedName": "x"},
    "engine": {"type": "SGLang", "image": "a", "args": ["--a=1"], "env": [{"name": "A", "value": "secret"}]},
    "arms": ARMS,
    "workloads": [CODE],
    "gate": {"minImprovement": "5%", "decideAfterRounds": [3, 5]},
}


def engine(**changes: Any) -> dict[str, Any]:
    return {"engine": {**SPEC["engine"], **changes}}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (engine(image="b"), "image"),
        (engine(args=["--a=1", "--key=secret"]), "--key"),
        (engine(args=["--a=2"]), "--a"),
        (engine(env=[{"name": "A", "value": "other"}]), "engine.env"),
        ({"target": {**SPEC["target"], "commit": "2"}}, "commit"),
        ({"target": {**SPEC["target"], "source": "hf://b/target", "commit": "2"}}, "hf://b/target"),
        ({"arms": [*ARMS, {"name": "narrow"}]}, "narrow"),
        ({"arms": ARMS[:1]}, "wide"),
        ({"arms": [ARMS[0], {**ARMS[1], "tree": {"topK": 2}}]}, "tree.topK"),
        ({"workloads": [{**CODE, "maxTokens": 32}]}, "maxTokens"),
        ({"workloads": [CODE, {**CODE, "concurrency": 2}]}, "code@2"),
        ({"gate": {**SPEC["gate"], "minImprovement": "4%"}}, "gate.minImprovement"),
        ({"gate": {**SPEC["gate"], "decideAfterRounds": [4]}}, "decideAfterRounds"),
        ({"budget": {"gpuHours": "3"}}, "budget.gpuHours"),
        ({**engine(image="b"), "arms": ARMS[:1], "gate": {"minImprovement": "4%", "decideAfterRounds": [3]}}, "wide"),
        ({"workloads": [{**CODE, "concurrency": number} for number in range(2, 7)]}, "code@5"),
    ],
)
def test_it_is_named_with_both_values(change: dict[str, Any], named: str, says: Says) -> None:
    sentence = summary(SPEC, {**SPEC, **change})
    assert named in sentence
    assert "secret" not in sentence
    says(sentence)


def test_whose_rounds_are_judged_is_no_change() -> None:
    assert summary(SPEC, {**SPEC, "gate": {**SPEC["gate"], "roundsOf": "another-run"}}) == ""
