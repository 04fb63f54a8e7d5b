"""The table of wrong resources: each is refused at the earliest place that can know, and what passes there is refused
at the next. Every message names the field; Kubernetes' releases word its own part differently."""

from typing import Any

import pytest
from tests.support.apiserver import Running
from tests.support.edits import Row, Stage, example, example_profile, example_run
from tests.support.messages import Says
from tests.wrong.rows import ROWS, of

from paceline.api import problems
from paceline.cli.validate import wrong

PLURALS = {
    "SpeculativeDeployment": "speculativedeployments",
    "BenchmarkRun": "benchmarkruns",
    "BenchmarkProfile": "benchmarkprofiles",
}
AT_THE_SERVER = (Stage.SCHEMA, Stage.CEL)


def dry_run(apiserver: Running, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object as it would be stored, or a Status: nothing is stored."""
    path = f"/apis/paceline.dev/v1alpha1/namespaces/default/{PLURALS[manifest['kind']]}"
    return apiserver.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", manifest)


def rows(*stages: Stage) -> list[Any]:
    return [pytest.param(row, id=row.name.replace(" ", "-")) for row in of(*stages)]


def test_the_table_has_every_stage_and_no_name_twice() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names)) >= 60
    assert {row.stage for row in ROWS} == set(Stage)


@pytest.mark.parametrize("row", rows(*AT_THE_SERVER))
def test_a_wrong_manifest_is_refused_by_the_api_server(apiserver: Running, row: Row) -> None:
    answer = dry_run(apiserver, row.manifest())
    assert answer.get("status") == "Failure", "it was accepted"
    assert row.path in answer["message"]


@pytest.mark.parametrize("row", rows(*AT_THE_SERVER))
def test_the_desk_refuses_what_the_api_server_refuses(row: Row, says: Says) -> None:
    found = [str(problem) for problem in problems(row.manifest())]
    assert any(row.path in line for line in found), found
    says(*found)


@pytest.mark.parametrize("row", rows(Stage.VALIDATE))
def test_what_the_api_server_cannot_know_is_refused_at_the_desk(apiserver: Running, row: Row, says: Says) -> None:
    assert "status" not in dry_run(apiserver, row.manifest())
    found = wrong(row.manifest())
    assert any(problem.path == row.path for problem in found), found
    says(*found)


@pytest.mark.parametrize("row", rows(Stage.PREFLIGHT))
def test_what_the_models_alone_can_tell_passes_until_they_are_there(apiserver: Running, row: Row) -> None:
    assert "status" not in dry_run(apiserver, row.manifest())
    assert wrong(row.manifest()) == []


@pytest.mark.parametrize(
    "manifest", [example(), example_run(), example_profile()], ids=lambda manifest: manifest["kind"]
)
def test_a_good_manifest_is_taken_as_it_is(apiserver: Running, manifest: dict[str, Any]) -> None:
    assert problems(manifest) == []
    assert dry_run(apiserver, manifest)["kind"] == manifest["kind"]


def test_what_the_operator_writes_is_stored_unchanged(apiserver: Running) -> None:
    """The fingerprint of a run is a hash of its spec: a default that the server added would change it."""
    manifest = example_run()
    assert dry_run(apiserver, manifest)["spec"] == manifest["spec"]
