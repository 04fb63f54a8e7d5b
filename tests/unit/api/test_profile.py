"""How a deployment and its profile become one manifest."""

from copy import deepcopy
from typing import Any, get_args

import pytest
from tests.unit.api.test_defaults import smallest

from paceline import api
from paceline.api import Reason
from paceline.api.deployment import MeasuringSpec
from paceline.api.model import fields_of
from paceline.api.profile import BenchmarkProfileSpec, ProfiledField
from paceline.api.profiled import WITH

REF = {"profileRef": {"name": "team"}}
LENT = {"capacityPolicy": "Borrow", "minServing": 0}


def profile(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "team", "namespace": "models"}
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "BenchmarkProfile", "metadata": metadata, "spec": spec}


def merged(of_profile: dict[str, Any], **spec: Any) -> dict[str, Any]:
    benchmark = spec.pop("benchmark", {})
    manifest = smallest(benchmark=REF | benchmark, **spec)
    before = deepcopy(manifest)
    found: dict[str, Any] = api.with_profile(manifest, profile(**of_profile))["spec"]
    assert manifest == before, "the object of a store is shared"
    return {name: found[name] for name in ("benchmark", "gate") if name in found}


@pytest.mark.parametrize(
    ("of_profile", "written", "whole"),
    [
        ({}, {}, {"benchmark": {}}),
        ({"gate": {"confidence": "99%"}}, {}, {"benchmark": {}, "gate": {"confidence": "99%"}}),
        (
            {"gate": {"confidence": "99%", "minImprovement": "5%"}},
            {"gate": {"minImprovement": "7%"}},
            {"benchmark": {}, "gate": {"confidence": "99%", "minImprovement": "7%"}},
        ),
        (
            {"benchmark": {"timeouts": {"start": "45m", "workload": "30m"}, "queueName": "gpus"}},
            {"benchmark": {"timeouts": {"start": "30m"}}},
            {"benchmark": {"timeouts": {"start": "30m"}, "queueName": "gpus"}},
        ),
        ({"benchmark": LENT}, {}, {"benchmark": LENT}),
        ({"benchmark": LENT}, {"benchmark": {"capacityPolicy": "Wait"}}, {"benchmark": {"capacityPolicy": "Wait"}}),
        (
            {"benchmark": {"queueName": "gpus"}},
            {"benchmark": {"queueName": None}},
            {"benchmark": {"queueName": "gpus"}},
        ),
    ],
    ids=["nothing", "a gate", "field by field", "a field as a whole", "both", "what belongs together", "null"],
)
def test_what_is_not_written_is_the_profiles(
    of_profile: dict[str, Any], written: dict[str, Any], whole: dict[str, Any]
) -> None:
    assert merged(of_profile, **written) == whole


@pytest.mark.parametrize(
    ("of_profile", "written", "paths"),
    [
        ({"gate": {"confidence": "99%"}}, {"gate": {"confidence": "95%"}}, ["spec.gate.confidence"]),
        ({"gate": {"confidence": "99%"}}, {"gate": {"confidence": "99%"}}, []),
        ({}, {"gate": {"confidence": "99%"}}, ["spec.gate.confidence"]),
        ({"benchmark": LENT}, {"benchmark": {"minServing": 1}}, ["spec.benchmark.minServing"]),
        ({"benchmark": {"queueName": "gpus"}}, {"benchmark": {"queueName": "mine"}}, []),
    ],
    ids=["another value", "its own value", "what it leaves out", "what belongs together", "what it has not locked"],
)
def test_a_lock_names_the_field_that_contradicts_it(
    of_profile: dict[str, Any], written: dict[str, Any], paths: list[str]
) -> None:
    locked = {**of_profile, "locked": ["gate", "capacityPolicy"]}
    if not paths:
        merged(locked, **written)
        return
    with pytest.raises(api.InvalidManifestError) as refused:
        merged(locked, **written)
    assert refused.value.reason is Reason.ProfileLocked
    assert [problem.path for problem in refused.value.problems] == paths
    assert all("BenchmarkProfile team " in problem.message for problem in refused.value.problems)


def test_each_field_can_be_locked_and_there_is_no_other_word() -> None:
    fields = {"gate", *fields_of(MeasuringSpec)}
    assert {WITH.get(field, field) for field in fields} == set(get_args(ProfiledField))
    assert set(fields_of(BenchmarkProfileSpec)) == {"benchmark", "gate", "locked"}


def test_no_field_of_a_profile_nor_what_it_stands_for_has_a_default() -> None:
    """What nobody has written would look written, and win over a profile, or be locked."""
    (crd,) = (crd for crd in api.crds() if crd["spec"]["names"]["kind"] == "BenchmarkProfile")
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields = {**spec, **spec["benchmark"]["properties"], **spec["gate"]["properties"]}
    assert [name for name, node in fields.items() if "default" in node] == []


@pytest.mark.parametrize("spec", [None, "text", {"benchmark": []}, {"benchmark": {"profileRef": "team"}}])
def test_a_manifest_of_any_shape_has_no_profile_rather_than_an_error(spec: Any) -> None:
    manifest = {**smallest(), "spec": spec}
    assert api.profile_of(manifest) == ""
    assert api.with_profile(manifest, None) is manifest


def test_a_locked_policy_keeps_what_it_lends() -> None:
    """Written again with the same value, it does not shed the profile's minServing."""
    of_profile = {"benchmark": {"capacityPolicy": "Borrow", "minServing": 3}, "locked": ["capacityPolicy"]}
    assert merged(of_profile, benchmark={"capacityPolicy": "Borrow"})["benchmark"]["minServing"] == 3
