"""The CustomResourceDefinitions, from the models: JSON schema as pydantic writes it into a structural schema."""

import inspect
from collections.abc import Mapping
from functools import cache
from typing import Any

from paceline.api.model import Model

KEPT = frozenset((
    "type", "format", "enum", "items", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum",
    "maxProperties", "pattern", "required", "description", "default",
))  # fmt: skip


@cache
def schema(model: type[Model]) -> dict[str, Any]:
    """The model as a structural schema."""
    json = model.model_json_schema(by_alias=True)
    return _structural(json, json.get("$defs", {}))


def _structural(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """References inlined (what stands beside one wins), null dropped, nothing kept that Kubernetes forbids."""
    node = dict(node)
    while "$ref" in node or "anyOf" in node:
        if "$ref" in node:
            inner = definitions[node.pop("$ref").rpartition("/")[2]]
        else:
            (inner,) = (option for option in node.pop("anyOf") if option != {"type": "null"})
        node = {**inner, **node}
    out = {key: value for key, value in node.items() if key in KEPT or key.startswith("x-kubernetes-")}
    if "const" in node:
        out["enum"] = [node["const"]]
    if out.get("default", ()) in ((), None, [], {}, ""):
        out.pop("default", None)
    if "description" in out:
        out["description"] = " ".join(inspect.cleandoc(out["description"]).split())
    match out["type"]:
        case "integer":
            out["format"] = "int32" if out.get("maximum", 2**63) < 2**31 else "int64"
        case "array":
            out["items"] = _structural(node["items"], definitions)
        case "object" if "properties" in node:
            out["properties"] = {name: _structural(child, definitions) for name, child in node["properties"].items()}
        case "object" if isinstance(values := node.get("additionalProperties"), Mapping):
            out["additionalProperties"] = _structural(values, definitions)
        case "object":
            out["x-kubernetes-preserve-unknown-fields"] = True
    return out
