"""Structured output: which forms can be asked for, and which answers have them."""

import json
from typing import Any

import pytest

from paceline.core.response_format import fits, problem, problem_of_text

BUG = {
    "type": "object",
    "properties": {"line": {"type": "integer"}},
    "required": ["line"],
    "additionalProperties": False,
}
ELSEWHERE = {"$ref": "https://example.com/schema.json"}


def of(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "bug", "schema": schema}}


@pytest.mark.parametrize(
    ("format", "wrong"),
    [
        (of(BUG), ""),
        ({"type": "json_object"}, ""),
        ({"type": "text"}, "type must be one of json_object, json_schema"),
        ({"type": "json_schema", "schema": BUG}, 'json_schema must be {"name": …, "schema": {…}}'),
        (of({"$schema": []}), "json_schema.schema: $schema must be text"),
        (of({"$ref": "#/$defs/line", "$defs": {"line": {}}}), ""),
        (of({"$ref": "#/$defs/line"}), "json_schema.schema refers to #/$defs/line, which it does not contain;"),
        (of({"anyOf": [ELSEWHERE]}), "json_schema.schema refers to https://example.com/schema.json, which"),
        (of({"properties": {"$ref": {"type": "string"}}}), ""),
        (of({"$id": "https://example.com/a", "$ref": "b", "$defs": {"b": {"$id": "b"}}}), ""),
        (of({"type": "integre"}), "json_schema.schema is not a JSON schema: 'integre' is not valid"),
    ],
)
def test_which_forms_can_be_asked_for(format: dict[str, Any], wrong: str) -> None:
    assert problem(format).startswith(wrong)
    assert bool(problem(format)) == bool(wrong)
    assert problem_of_text(json.dumps(format)) == problem(format)


def test_a_text_that_is_no_json() -> None:
    assert problem_of_text("{type: json_object}").startswith("must be JSON, as in a request: ")


@pytest.mark.parametrize(
    ("answer", "format", "has"),
    [
        ('{"line": 3}', of(BUG), True),
        ('{"line": 3', of(BUG), False),
        ('{"line": "3"}', of(BUG), False),
        ('{"line": 3, "file": "a"}', of(BUG), False),
        ('Here you are: {"line": 3}', of(BUG), False),
        ('{"anything": 1}', {"type": "json_object"}, True),
        ("[1]", {"type": "json_object"}, False),
        ("{}", of(ELSEWHERE), False),  # nothing is fetched to find out
        ("[" * 100_000, of(BUG), False),
    ],
)
def test_which_answers_have_it(answer: str, format: dict[str, Any], has: bool) -> None:
    assert fits(answer, format) == has
