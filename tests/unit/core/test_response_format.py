"""Structured output: which forms can be asked for, and which answers have them."""

import json
from typing import Any

import pytest
from tests.support.messages import Says

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
    ("format", "named"),
    [
        (of(BUG), ""),
        ({"type": "json_object"}, ""),
        ({"type": "text"}, "type"),
        ({"type": "json_schema", "schema": BUG}, "json_schema"),
        (of({"$schema": []}), "$schema"),
        (of({"$ref": "#/$defs/line", "$defs": {"line": {}}}), ""),
        (of({"$ref": "#/$defs/line"}), "#/$defs/line"),
        (of({"anyOf": [ELSEWHERE]}), "https://example.com/schema.json"),
        (of({"properties": {"$ref": {"type": "string"}}}), ""),
        (of({"$id": "https://example.com/a", "$ref": "b", "$defs": {"b": {"$id": "b"}}}), ""),
        (of({"type": "integre"}), "'integre'"),
    ],
)
def test_which_forms_can_be_asked_for(format: dict[str, Any], named: str, says: Says) -> None:
    wrong = problem(format)
    assert named in wrong
    assert bool(wrong) == bool(named)
    assert problem_of_text(json.dumps(format)) == wrong
    says(*filter(None, [wrong]))


def test_a_text_that_is_no_json(says: Says) -> None:
    says(problem_of_text("{type: json_object}"))


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
