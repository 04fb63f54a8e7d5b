"""The differences between two questions, in sentences."""

from typing import Any

import pytest

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
    ("change", "sentence"),
    [
        (engine(image="b"), "the image changed: a to b"),
        (engine(args=["--a=1", "--key=secret"]), "engine.args changed: --key"),
        (engine(args=["--a=2"]), "engine.args changed: --a"),
        (engine(env=[{"name": "A", "value": "other"}]), "engine.env changed"),
        ({"target": {**SPEC["target"], "commit": "2"}}, "the target's commit changed: 1 to 2"),
        (
            {"target": {**SPEC["target"], "source": "hf://b/target", "commit": "2"}},
            "the target changed: hf://a/target to hf://b/target",
        ),
        ({"arms": [*ARMS, {"name": "narrow"}]}, "candidate narrow was added"),
        ({"arms": ARMS[:1]}, "candidate wide was removed"),
        ({"arms": [ARMS[0], {**ARMS[1], "tree": {"topK": 2}}]}, "candidate wide: tree.topK changed: 4 to 2"),
        ({"workloads": [{**CODE, "maxTokens": 32}]}, "workload code@1: maxTokens changed: 24 to 32"),
        ({"workloads": [CODE, {**CODE, "concurrency": 2}]}, "workload code@2 was added"),
        ({"gate": {**SPEC["gate"], "minImprovement": "4%"}}, "gate.minImprovement changed: 5% to 4%"),
        ({"gate": {**SPEC["gate"], "decideAfterRounds": [4]}}, "decideAfterRounds changed: 3, 5 to 4"),
        ({"gate": {**SPEC["gate"], "roundsOf": "another-run"}}, ""),
        ({"budget": {"gpuHours": "3"}}, "budget.gpuHours changed: none to 3"),
        (
            {**engine(image="b"), "arms": ARMS[:1], "gate": {"minImprovement": "4%", "decideAfterRounds": [3]}},
            "the image changed: a to b; candidate wide was removed; gate.minImprovement changed: 5% to 4%; "
            "decideAfterRounds changed: 3, 5 to 3",
        ),
        (
            {"workloads": [{**CODE, "concurrency": number} for number in range(2, 7)]},
            "workload code@2 was added; workload code@3 was added; workload code@4 was added; "
            "workload code@5 was added; and 2 more changes",
        ),
    ],
)
def test_it_is_named_with_both_values(change: dict[str, Any], sentence: str) -> None:
    assert summary(SPEC, {**SPEC, **change}) == sentence
