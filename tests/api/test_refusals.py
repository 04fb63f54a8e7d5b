"""Every wrong manifest is refused by `paceline validate` and by a real API server, and both name field and fix."""

from typing import Any

import pytest
from tests.api.apiserver import Running
from tests.api.refusals import EDITS, RUN_EDITS, Edit, example, example_run

from paceline.api import problems

CASES = [pytest.param(example(), edit, id=f"{i:02}-{edit.path}") for i, edit in enumerate(EDITS)] + [
    pytest.param(example_run(), edit, id=f"run-{i:02}-{edit.path}") for i, edit in enumerate(RUN_EDITS)
]
PLURALS = {"SpeculativeDeployment": "speculativedeployments", "BenchmarkRun": "benchmarkruns"}


def dry_run(apiserver: Running, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object as it would be stored, or a Status: nothing is stored."""
    path = f"/apis/paceline.dev/v1alpha1/namespaces/default/{PLURALS[manifest['kind']]}"
    return apiserver.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)


@pytest.mark.parametrize(("good", "edit"), CASES)
def test_a_wrong_manifest_is_refused_at_the_desk(good: dict[str, Any], edit: Edit) -> None:
    found = [str(problem) for problem in problems(edit.on(good))]
    assert any(edit.blames in line and edit.says in line for line in found), found


@pytest.mark.parametrize(("good", "edit"), CASES)
def test_a_wrong_manifest_is_refused_by_the_api_server(apiserver: Running, good: dict[str, Any], edit: Edit) -> None:
    answer = dry_run(apiserver, edit.on(good))
    assert answer.get("status") == "Failure", "it was accepted"
    assert edit.blames in answer["message"]
    assert edit.says in answer["message"]


@pytest.mark.parametrize("manifest", [example(), example_run()], ids=lambda manifest: manifest["kind"])
def test_a_good_manifest_is_taken_as_it_is(apiserver: Running, manifest: dict[str, Any]) -> None:
    assert problems(manifest) == []
    assert dry_run(apiserver, manifest)["kind"] == manifest["kind"]


def test_what_the_operator_writes_is_stored_unchanged(apiserver: Running) -> None:
    """The fingerprint of a run is a hash of its spec: a default that the server added would change it."""
    manifest = example_run()
    assert dry_run(apiserver, manifest)["spec"] == manifest["spec"]
