"""The CRDs are current, structural and described. That a real API server takes them is in tests/api."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paceline.api.crd import crd_files, crds

ROOT = Path(__file__).parents[3]

FORBIDDEN = (
    *("$ref", "$defs", "definitions", "title", "examples", "const", "discriminator", "deprecated", "readOnly"),
    *("writeOnly", "patternProperties", "prefixItems", "uniqueItems", "anyOf", "oneOf", "allOf", "not"),
)
FORMATS = {"int32", "int64", "date-time"}

Node = tuple[str, dict[str, Any]]


def walk(path: str, node: dict[str, Any]) -> Iterator[Node]:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from walk(f"{path}.{name}", child)
    if "items" in node:
        yield from walk(f"{path}[]", node["items"])
    if isinstance(node.get("additionalProperties"), dict):
        yield from walk(f"{path}{{}}", node["additionalProperties"])


def nodes() -> list[Node]:
    schemas = {c["spec"]["names"]["kind"]: c["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for c in crds()}
    return [node for kind, schema in schemas.items() for node in walk(kind, schema)]


def ours() -> list[Node]:
    return [(path, node) for path, node in nodes() if ".spec" in path or ".status" in path]


def violations(node: dict[str, Any]) -> list[str]:
    """The rules of a structural schema, and of OpenAPI 3.0 as Kubernetes reads it."""
    found = [f"{key} is forbidden" for key in FORBIDDEN if key in node]
    if node.get("type") not in {"object", "array", "string", "integer", "boolean"}:
        found.append(f"type is {node.get('type')}")
    if "properties" in node and "additionalProperties" in node:
        found.append("properties and additionalProperties exclude each other")
    if node.get("type") == "array" and "items" not in node:
        found.append("an array without items")
    if node.get("type") == "object" and not node.keys() & {
        "properties",
        "additionalProperties",
        "x-kubernetes-preserve-unknown-fields",
    }:
        found.append("an object of nothing")
    if node.get("format", "int32") not in FORMATS or (node.get("type") == "integer") != (
        node.get("format") in {"int32", "int64"}
    ):
        found.append(f"format of {node.get('type')} is {node.get('format')}")
    if node.get("default", 0) is None:
        found.append("null is no default")
    if node.get("x-kubernetes-list-type") == "map":
        item = node["items"]
        for key in node["x-kubernetes-list-map-keys"]:
            if key not in item.get("required", []) and "default" not in item["properties"][key]:
                found.append(f"key {key} is neither required nor has a default")
    return found


@pytest.mark.parametrize("directory", ["crds", "charts/paceline/files/crds"])
def test_the_checked_in_files_are_current(directory: str) -> None:
    assert {path.name: path.read_text() for path in (ROOT / directory).glob("*.yaml")} == crd_files()


def test_no_message_has_a_value_that_only_the_desk_fills_in() -> None:
    """What the API server says word for word: `message`, where there is no expression for it."""
    rules = [(path, rule) for path, node in nodes() for rule in node.get("x-kubernetes-validations", ())]
    said = [(path, rule["message"]) for path, rule in rules if "messageExpression" not in rule]
    assert len(said) > 20
    assert [(path, text) for path, text in said if "{" in text] == []


def test_every_node_is_structural() -> None:
    assert {path: found for path, node in nodes() if (found := violations(node))} == {}


@pytest.mark.parametrize(
    "node",
    [
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"type": "array"},
        {"type": "integer"},
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "string", "format": "duration"},
        {"type": "string", "title": "Name"},
    ],
)
def test_the_checker_sees_what_pydantic_would_leave(node: dict[str, Any]) -> None:
    assert violations(node)


def test_every_field_is_described() -> None:
    items = ("[]", "{}")
    assert [path for path, node in ours() if not path.endswith(items) and not node.get("description")] == []


def test_every_string_list_and_map_is_bounded() -> None:
    bounds = {"string": "maxLength", "array": "maxItems"}
    loose = [
        path
        for path, node in ours()
        if node["type"] in bounds and bounds[node["type"]] not in node and "enum" not in node
    ]
    assert loose == []
    assert [path for path, node in ours() if "additionalProperties" in node and "maxProperties" not in node] == []


def test_only_what_kubernetes_defines_is_free_form_and_facts_for_ourselves() -> None:
    free = {path for path, node in nodes() if "x-kubernetes-preserve-unknown-fields" in node}
    assert {path for path in free if "internal" in path.split(".")} == {
        "SpeculativeDeployment.status.artifacts[].internal.facts"
    }
    assert {path.rpartition(".")[2] for path in free} == {"podTemplate", "facts"}


def test_the_defaults_that_the_api_server_writes_are_few() -> None:
    """Each is written into stored objects for ever. None is in an item of a list, where kubectl and Argo CD would
    see a difference at each apply; none is of a field that a pool's gate or a profile overrides."""
    found = {path: node["default"] for path, node in nodes() if "default" in node}
    assert {
        path.removeprefix("SpeculativeDeployment.spec."): v for path, v in found.items() if "Deployment" in path
    } == {
        "suspend": False,
        "target.revision": "main",
        "draft.revision": "main",
        "engine.trustRemoteCode": False,
        "accelerator.count": 1,
        "accelerator.resourceName": "nvidia.com/gpu",
        "accelerator.productLabel": "nvidia.com/gpu.product",
        "accelerator.nodes": 1,
        "cache.claim.accessModes": ["ReadWriteMany"],
        "cache.tokenSecretRef.key": "token",
        "cache.keepRevisions": 2,
        "gateway.header": "x-paceline-pool",
        "benchmark.window.timeZone": "UTC",
        "benchmark.parity.maxTokens": 128,
        "benchmark.timeouts.start": "30m",
        "promotion": {},
        "promotion.mode": "Automatic",
        "promotion.changes": "Gated",
        "promotion.maxOutputChange": "10%",
        "promotion.untilDecided": "Baseline",
        "promotion.surge": "Auto",
        "promotion.revisionHistoryLimit": 3,
        "promotion.progressDeadline": "30m",
        "guard": {},
        "guard.action": "Notify",
        "guard.acceptanceDrop": "25%",
        "guard.window": "10m",
        "guard.source": "Pods",
    }
