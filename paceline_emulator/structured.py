"""Answers under a `response_format`: JSON of the schema that was asked for, as the grammar of a real engine forces it.

Types: `ResponseFormat` of `srt/entrypoints/openai/protocol.py`, SGLang 0.5.23; vLLM has the same.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

TYPES = ("text", "json_object", "json_schema")
WORDS = ("parse", "retry", "empty input", "off by one", "missing lock", "wrong index", "slow path", "test first")
DEEPEST = 20
IGNORED = frozenset({
    "contains", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "minContains", "multipleOf",
    "not", "then", "uniqueItems",
})  # fmt: skip
"""Keywords that xgrammar does not enforce (`constrained/json_schema_validation.py:35` of 0.5.23)."""
WITHIN_ONE = ("additionalProperties", "contains", "else", "if", "items", "not", "then")
WITHIN_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
WITHIN_MAPS = ("$defs", "definitions", "patternProperties", "properties")


class IgnoredError(ValueError):
    """A keyword of the schema would be ignored: SGLang 0.5.23 refuses the request."""


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
        raise ValueError("schema_ is required for json_schema response format request.")
    return dict(named["schema"])


def check(body: Mapping[str, Any]) -> None:
    """Raises IgnoredError in SGLang's words. Strings' formats are not looked at."""
    for schema, place in _schemas(asked(body), "#"):
        if ignored := sorted(IGNORED.intersection(schema)):
            raise IgnoredError(
                f"Failed to compile json grammar: JSON Schema at {place} is not supported by xgrammar: keyword(s) "
                f"{', '.join(ignored)} would be ignored"
            )


def _schemas(schema: Any, place: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The schema and all below it, each with its JSON pointer."""
    if not isinstance(schema, dict):
        return
    yield schema, place
    for key in WITHIN_ONE:
        yield from _schemas(schema.get(key), f"{place}/{key}")
    for key in WITHIN_LISTS:
        for number, one in enumerate(schema.get(key) or ()):
            yield from _schemas(one, f"{place}/{key}/{number}")
    for key in WITHIN_MAPS:
        for name, one in (schema.get(key) or {}).items():
            yield from _schemas(one, f"{place}/{key}/{name}")


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
