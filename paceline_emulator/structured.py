"""Answers under a `response_format`: JSON of the schema that was asked for, as the grammar of a real engine forces it.

Types: `ResponseFormat` of `srt/entrypoints/openai/protocol.py`, SGLang 0.5.23; vLLM has the same.
"""

import json
from collections.abc import Mapping
from typing import Any

TYPES = ("text", "json_object", "json_schema")
WORDS = ("parse", "retry", "empty input", "off by one", "missing lock", "wrong index", "slow path", "test first")
DEEPEST = 20


def asked(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema of a request's answer; None: plain text. ValueError for a form that is none."""
    form = body.get("response_format")
    if form is None:
        return None
    kind = form.get("type") if isinstance(form, dict) else None
    if kind not in TYPES:
        raise ValueError("response_format.type: Input should be 'text', 'json_object' or 'json_schema'")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object", "properties": {"answer": {"type": "string"}, "steps": {"type": "array"}}}
    named = form.get("json_schema")
    if not isinstance(named, dict) or not isinstance(named.get("schema"), dict):
        raise ValueError("response_format.json_schema.schema: Field required")
    return dict(named["schema"])


def written(schema: Mapping[str, Any], digest: bytes) -> str:
    """JSON under the schema, the same for the same prompt."""
    return json.dumps(_value(schema, schema, digest, 0))


def _value(schema: Any, root: Mapping[str, Any], digest: bytes, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > DEEPEST:
        return None
    if "$ref" in schema:
        return _value(_referred(root, str(schema["$ref"])), root, digest, depth + 1)
    for several in ("anyOf", "oneOf", "allOf"):
        if schema.get(several):
            return _value(schema[several][0], root, digest, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][digest[depth] % len(schema["enum"])]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    match kind:
        case "object":
            fields = schema.get("properties", {})
            return {name: _value(field, root, digest[1:] + digest[:1], depth + 1) for name, field in fields.items()}
        case "array":
            items = schema.get("items", {"type": "string"})
            return [_value(items, root, digest[n:] + digest[:n], depth + 1) for n in range(schema.get("minItems", 2))]
        case "integer" | "number":
            return schema.get("minimum", 0) + digest[depth] % 7
        case "boolean":
            return bool(digest[depth] % 2)
        case "null":
            return None
    text = " ".join(WORDS[byte % len(WORDS)] for byte in digest[:12]) + " " * schema.get("minLength", 0)
    return text[: schema.get("maxLength", len(text))]


def _referred(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if step and isinstance(found, dict) else found
    return found
