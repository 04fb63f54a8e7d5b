"""Structured output: the `response_format` of a request, and whether an answer has that form."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from paceline.core.text import error_text

TYPES = ("json_object", "json_schema")
DEEPEST_SCHEMA = 50
"""Levels of lists and objects in a schema: the library uses several calls per level, and Python allows 1,000 nested
calls. OpenAI's API allows 10 levels of objects."""


def problem(format: Any) -> str:
    """What is wrong with a request's `response_format`, starting with its name; "" if nothing is."""
    if not isinstance(format, dict) or format.get("type") not in TYPES:
        return f"type must be one of {', '.join(TYPES)}"
    if format["type"] == "json_object":
        return ""
    named = format.get("json_schema")
    schema, name = (named.get("schema"), named.get("name")) if isinstance(named, dict) else (None, None)
    if not isinstance(schema, dict) or not isinstance(name, str):
        return 'json_schema must be {"name": …, "schema": {…}}'
    if not _within(schema, DEEPEST_SCHEMA):
        return f"json_schema.schema is nested deeper than {DEEPEST_SCHEMA} levels; write its inner parts under $defs"
    from jsonschema import SchemaError

    if not isinstance(schema.get("$schema", ""), str):
        return "json_schema.schema: $schema must be text"
    try:
        _validator(json.dumps(schema))
    except SchemaError as error:
        return f"json_schema.schema is not a JSON schema: {error.message:.300}"
    if lost := next(_references_to_nowhere(schema), ""):
        return f"json_schema.schema refers to {lost:.300}, which it does not contain; define it under $defs"
    return ""


def problem_of_text(text: str) -> str:
    """`problem` for its JSON text."""
    try:
        format = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"must be JSON, as in a request: {error_text(error)}"
    return problem(format)


def fits(answer: str, format: Mapping[str, Any]) -> bool:
    """Whether the answer is a whole JSON object or, with a schema, valid under it. `format` has no `problem`."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return False
    if format["type"] == "json_object":
        return isinstance(value, dict)
    from referencing.exceptions import Unresolvable

    try:
        return bool(_validator(json.dumps(format["json_schema"]["schema"])).is_valid(value))
    except (Unresolvable, RecursionError, ArithmeticError):  # a number that does not fit in a float
        return False


def _references_to_nowhere(schema: Mapping[str, Any]) -> Iterator[str]:
    """References that no engine resolves, to other documents. A schema with an `$id` may refer to itself by it: not
    checked."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if any("$id" in part for part in _parts(schema)):
        return
    resolver = Registry[Any]().with_resource("", DRAFT202012.create_resource(schema)).resolver()
    for part in _parts(schema):
        if isinstance(reference := part.get("$ref"), str):
            try:
                resolver.lookup(reference)
            except Unresolvable:
                yield reference


def _within(value: Any, levels: int) -> bool:
    """Whether lists and objects in `value` are nested at most this deep."""
    level = [value]
    for _ in range(levels):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return not any(isinstance(inner, dict | list) for inner in level)


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    """All objects in it, starting with itself."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _parts(inner)


@cache
def _validator(schema: str) -> Any:
    """Does not follow references to other documents: a schema is foreign input."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import validator_for
    from referencing import Registry

    value = json.loads(schema)
    kind = validator_for(value, default=Draft202012Validator)
    kind.check_schema(value)
    return kind(value, registry=Registry())
