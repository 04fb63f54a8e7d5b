"""No example is stopped by preflight, given the configurations that the local hub has of its models."""

from pathlib import Path

import pytest
from tests.support.rendered import FILES, example

from paceline import api
from paceline.plan.deployment.models import models_of
from paceline.pods.fetch.reading import facts_of
from paceline.preflight import findings
from paceline_emulator.hub.models import generated
from paceline_emulator.hub.repository import Repository

ELSEWHERE = {
    "pvc://company-models/qwen/Qwen3-8B": "Qwen/Qwen3-8B",
    "pvc://company-models/heads/Qwen3-8B-Eagle3": "thoughtworks/Qwen3-8B-Eagle3",
    "gs://example-heads/qwen3-8b/eagle3": "thoughtworks/Qwen3-8B-Eagle3",
}
"""What the volume of examples/bring-your-own-pvc.yaml holds, and the bucket of examples/head-in-a-bucket.yaml."""


@pytest.fixture(scope="module")
def hub() -> dict[str, Repository]:
    return generated()


@pytest.mark.parametrize("name", [path.stem for path in FILES])
def test_preflight_lets_it_pass(name: str, hub: dict[str, Repository], tmp_path: Path) -> None:
    spec = api.deployment(example(name))
    facts = {}
    for model in models_of(spec):
        folder = tmp_path / model.source.replace("/", "_")
        folder.mkdir()
        for path, file in (
            hub[ELSEWHERE.get(model.source, model.source.removeprefix("hf://"))].history[-1].files.items()
        ):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(file.content)
        facts[model.source] = facts_of(model.source, folder)
    arms = tuple(dict.fromkeys(arm for pool in spec.pools for arm in pool.arms))
    assert [str(finding) for finding in findings(spec.server, arms, facts) if finding.blocks] == []
