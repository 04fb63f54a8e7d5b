"""The BenchmarkProfile on a real API server, and what a deployment that names one may leave to it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.chart import of_kind, rendered
from tests.api.test_refusals import dry_run
from tests.support.apiserver import Running
from tests.support.edits import Change, changed, example, example_profile

from paceline.api import problems, stored
from paceline.api.problems import with_defaults

TEAM = {"profileRef": {"name": "house-rules"}}


@pytest.fixture
def profile(apiserver: Running) -> Iterator[dict[str, Any]]:
    manifest = example_profile()
    apiserver.kubectl("create", "-f", "-", given=manifest)
    yield manifest
    apiserver.kubectl("delete", "benchprof", manifest["metadata"]["name"])


def test_a_line_says_what_is_locked(apiserver: Running, profile: dict[str, Any]) -> None:
    header, line = apiserver.kubectl("get", "benchprof").stdout.splitlines()
    assert header.split() == ["NAME", "LOCKED", "AGE"]
    assert line.split()[:2] == ["house-rules", '["gate","window"]']
    assert "benchmarkprofile.paceline.dev/house-rules" in apiserver.kubectl("get", "paceline").stdout


def test_nothing_is_written_into_it_that_nobody_wrote(apiserver: Running, profile: dict[str, Any]) -> None:
    """A default would look like the platform team's will."""
    found = json.loads(apiserver.kubectl("get", "benchprof", "house-rules", "-o", "json").stdout)["spec"]
    assert found == profile["spec"] == with_defaults(profile)
    assert dry_run(apiserver, changed(profile, ("spec", {}), ("metadata.name", "empty")))["spec"] == {}


def test_explain_says_what_a_field_stands_for(apiserver: Running) -> None:
    said = " ".join(apiserver.kubectl("explain", "benchprof.spec").stdout.split())
    assert "no deployment may write with another value" in said
    assert "Each whole field applies to deployments that do not write it" in said
    of_deployments = " ".join(apiserver.kubectl("explain", "specdep.spec.benchmark.profileRef").stdout.split())
    assert "BenchmarkProfile that supplies absent fields" in of_deployments


@pytest.mark.parametrize(
    "changes",
    [
        [("spec.pools.0.load.0.datasets", ["own"])],
        [("spec.pools.0.load", [{"requestRate": "8", "arrivals": "Replayed", "maxConcurrency": 32}])],
        [("spec.benchmark.minServing", 0)],
        [("spec.pools.0.load", [{"concurrency": list(range(1, 9))}])],
        [("spec.benchmark.capacityPolicy", "Borrow"), ("spec.pools.0.replicas", 1), ("spec.pools.1.replicas", 1)],
    ],
    ids=["its datasets", "their timestamps", "its servers to lend", "fewer datasets than the built-in", "its least"],
)
def test_what_its_profile_may_have_is_no_fault_of_a_deployment(apiserver: Running, changes: list[Change]) -> None:
    """Without the reference each of them is refused, by the server and at the desk."""
    alone = changed(example(), *changes)
    named = changed(alone, *((f"spec.benchmark.{field}", value) for field, value in TEAM.items()))
    assert problems(named) == []
    assert dry_run(apiserver, named)["kind"] == "SpeculativeDeployment"
    assert problems(alone) != []
    assert dry_run(apiserver, alone)["status"] == "Failure"


def test_the_desk_stores_what_the_server_stores(apiserver: Running) -> None:
    """Locks are compared with values as they are stored."""
    manifest = changed(example_profile(), ("spec.benchmark.parity", {"samples": 4}), ("spec.benchmark.timeouts", {}))
    assert dry_run(apiserver, manifest)["spec"] == stored(manifest)["spec"]


@pytest.mark.parametrize(
    ("role", "verbs"),
    [
        ("view", {"get", "list", "watch"}),
        ("edit", {"get", "list", "watch"}),
        ("profiles", {"get", "list", "watch", "create", "delete", "deletecollection", "patch", "update"}),
        ("promote", set()),
    ],
)
def test_who_edits_deployments_does_not_write_profiles(role: str, verbs: set[str]) -> None:
    (found,) = (one for one in of_kind(rendered(), "ClusterRole") if one["metadata"]["name"] == f"paceline-{role}")
    rules = [rule for rule in found["rules"] if "benchmarkprofiles" in rule["resources"]]
    assert {verb for rule in rules for verb in rule["verbs"]} == verbs
    aggregated = {label.rpartition("-")[2] for label in found["metadata"]["labels"] if "aggregate-to" in label}
    assert aggregated == {"view": {"view"}, "edit": {"edit", "admin"}}.get(role, {"admin"})
