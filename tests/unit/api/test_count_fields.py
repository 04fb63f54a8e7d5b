"""What `dev/count-fields` counts, on a schema made by hand."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paceline.api.crd import crds

ROOT = Path(__file__).parents[3]

WORD: dict[str, Any] = {"type": "string"}
ENV: dict[str, Any] = {
    "type": "array",
    "items": {"properties": {"name": WORD, "valueFrom": {"properties": {"secretKeyRef": {"properties": {}}}}}},
}
SPEC: dict[str, Any] = {
    "x-kubernetes-validations": [{"rule": "true"}],
    "properties": {
        "model": {"properties": {"source": WORD}},
        "pools": {
            "type": "array",
            "items": {
                "properties": {"name": WORD, "sizes": {"type": "array", "items": WORD}},
                "x-kubernetes-validations": [{"rule": "true"}, {"rule": "false"}],
            },
        },
        "limits": {"additionalProperties": {"properties": {"most": WORD}}},
        "environment": WORD,
        "env": ENV,
        "template": {"x-kubernetes-preserve-unknown-fields": True},
    },
}
PATHS = [
    *("model", "model.source", "pools", "pools[].name", "pools[].sizes", "limits", "limits{}.most", "environment"),
    *("env", "env[].name", "env[].valueFrom", "env[].valueFrom.secretKeyRef", "template"),
]
OWN = [path for path in PATHS if not path.startswith("env[]")]


@pytest.fixture(scope="module")
def count() -> ModuleType:
    loader = SourceFileLoader("count_fields", str(ROOT / "dev" / "count-fields"))
    module = module_from_spec(spec_from_loader("count_fields", loader) or pytest.fail("it cannot be loaded"))
    loader.exec_module(module)
    return module


def test_every_property_at_every_depth_is_one(count: ModuleType) -> None:
    assert list(count.fields(SPEC)) == PATHS


def test_a_copy_of_env_var_is_not_our_own_and_its_list_is(count: ModuleType) -> None:
    assert count.own(PATHS) == OWN


def test_memory_and_the_fields_of_conditions_are_no_api(count: ModuleType) -> None:
    condition = {"type": "array", "items": {"properties": {"type": WORD, "reason": WORD}}}
    pool = {"properties": {"name": WORD, "conditions": condition, "internal": {"properties": {"target": SPEC}}}}
    status = {"properties": {"conditions": condition, "pools": {"type": "array", "items": pool}}}
    assert count.api(list(count.fields(status))) == ["conditions", "pools", "pools[].name", "pools[].conditions"]


def test_the_status_of_a_deployment_has_sixty_one_fields_at_most(count: ModuleType) -> None:
    (crd,) = (one for one in crds() if one["spec"]["names"]["kind"] == "SpeculativeDeployment")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    told = list(count.fields(schema["properties"]["status"]))
    assert len(count.api(told)) <= 61 < len(told)


def test_rules_count_at_every_depth(count: ModuleType) -> None:
    assert count.rules(SPEC) == 3


def test_what_no_example_sets_is_unused(count: ModuleType) -> None:
    one = {"model": {"source": "a"}, "pools": [{"name": "b"}, {"sizes": []}], "template": {"spec": {"anything": 1}}}
    other = {"limits": {"tokens": {"most": "9"}}, "env": [{"name": "c"}]}
    assert count.unused(SPEC, [one, other]) == ["environment"]
    assert count.unused(SPEC, [one]) == ["limits", "limits{}.most", "environment", "env"]
    assert count.unused(SPEC, []) == OWN


def test_the_line_of_a_kind(count: ModuleType) -> None:
    schema = {"properties": {"spec": SPEC, "status": {"properties": {"state": WORD}}}}
    crd = {"names": {"kind": "SpeculativeDeployment"}, "versions": [{"schema": {"openAPIV3Schema": schema}}]}
    line = count.row({"spec": crd}, 77, [{"environment": "d"}])
    assert dict(zip(count.HEAD, line, strict=True)) == {
        "kind": "SpeculativeDeployment",
        "spec": "13",
        "own": "10",
        "top-level": "6",
        "status": "1",
        "api": "1",
        "rules": "3",
        "bytes": "77",
        "unused": "9",
    }
