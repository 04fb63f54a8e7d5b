"""The table of wrong resources, its rows of stage preflight; and the examples, of which none is wrong."""

import pytest
from tests.support.edits import Row, example
from tests.support.example_files import DEPLOYMENTS
from tests.support.messages import Says
from tests.wrong.preflight import FACTS, PREFLIGHT

from paceline import api
from paceline.core import ModelFacts
from paceline.engines import refusals_of_spec
from paceline.plan.deployment.checks import model_problems
from paceline.preflight import findings

IMAGES = "oci://registry.example.com/models/qwen3-8b"
AT_HOME = {
    "pvc://company-models/qwen/Qwen3-8B": FACTS["hf://Qwen/Qwen3-8B"],
    "pvc://company-models/heads/Qwen3-8B-Eagle3": FACTS["hf://thoughtworks/Qwen3-8B-Eagle3"],
    f"{IMAGES}@sha256:{1:064}/models": FACTS["hf://Qwen/Qwen3-8B"],
    f"{IMAGES}-eagle3@sha256:{2:064}": FACTS["hf://thoughtworks/Qwen3-8B-Eagle3"],
}


@pytest.mark.parametrize("row", PREFLIGHT, ids=lambda row: row.name)
def test_it_is_found_here_and_not_before(row: Row, says: Says) -> None:
    manifest = row.manifest()
    spec = api.deployment(manifest)
    assert api.problems(manifest) == []
    assert refusals_of_spec.refused(spec, manifest["spec"]) == ()
    texts = [one.text for one in model_problems(spec, manifest["spec"], FACTS) if one.blocks]
    assert any(text.startswith(f"{row.path}: ") for text in texts), texts
    says(*texts)


@pytest.mark.parametrize("row", PREFLIGHT, ids=lambda row: row.name)
def test_without_the_mistake_it_is_not(row: Row) -> None:
    assert blocking(row.on, FACTS) == []


@pytest.mark.parametrize("name", [path.stem for path in DEPLOYMENTS])
def test_no_example_is_refused(name: str) -> None:
    assert blocking(name, {**FACTS, **AT_HOME}) == []


@pytest.mark.parametrize("name", [path.stem for path in DEPLOYMENTS])
def test_every_example_reads_its_heads_own_layers(name: str) -> None:
    manifest = example(name)
    spec = api.deployment(manifest)
    texts = [
        finding.problem
        for pool in spec.pools
        for finding in findings(spec.server, pool.arms, {**FACTS, **AT_HOME})
        if finding.rule.startswith("aux-layers") and finding.rule != "aux-layers-are-named"
    ]
    assert texts == []


def blocking(name: str, known: dict[str, ModelFacts]) -> list[str]:
    manifest = example(name)
    spec = api.deployment(manifest)
    assert spec.server.target.source in known
    return [one.text for one in model_problems(spec, manifest["spec"], known) if one.blocks]
