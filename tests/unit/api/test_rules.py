"""A rule is CEL; the desk evaluates the same text that the CRD carries."""

import json
from typing import Any

import pytest
from pydantic import Field

from paceline.api.model import SchemaModel
from paceline.api.problems import broken_rules, read_spec
from paceline.api.rules import DeskRule, Rule, one_of
from paceline.core.types import VALIDATIONS


class Box(SchemaModel):
    rules = (
        Rule(
            cel="self.size <= self.limit",
            message="size must be at most limit = {self.limit}, or 100 % is exceeded; got {self.size}",
            field=".size",
        ),
        one_of("red", "blue"),
    )

    size: int = 1
    limit: int = 10
    red: str | None = None
    blue: str | None = None


class Shelf(SchemaModel):
    rules = (
        Rule(
            each={"b": "self.boxes"},
            cel="b.size < self.strength",
            message="size must be below strength; got {b.size}",
            field=".size",
        ),
        Rule(each={"k": "self.labels"}, cel="k != 'paceline'", message="labels must be of others; got {k}"),
        Rule(
            each={"n": "self.notes", "s": "[self.strength]"},
            cel="n != 'weak' || s > 5",
            message="weak needs a strength above 5; got {s}",
        ),
        DeskRule(
            message="boxes must be few", broken=lambda shelf: [(".boxes", "got 3")] if len(shelf.boxes) > 2 else []
        ),
    )

    strength: int = 20
    boxes: tuple[Box, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    notes: tuple[str, ...] | None = None


def found(model: type[SchemaModel], **fields: Any) -> list[str]:
    text = json.dumps(fields)
    return [str(problem) for problem in broken_rules(read_spec(model, text), text)]


def rules(model: type[SchemaModel]) -> list[dict[str, str]]:
    validations: list[dict[str, str]] = model.model_json_schema()[VALIDATIONS]
    return validations


RED = {"red": "x"}


def test_the_message_has_the_values() -> None:
    assert found(Box, size=12, red="x") == [
        "spec.size: size must be at most limit = 10, or 100 % is exceeded; got 12",
    ]


def test_the_crd_has_the_same_rule_with_the_message_as_an_expression() -> None:
    assert rules(Box)[0] == {
        "rule": "self.size <= self.limit",
        "message": "size must be at most limit, or 100 % is exceeded",
        "messageExpression": '"size must be at most limit = %s, or 100 %% is exceeded; got %s"'
        ".format([self.limit, self.size])",
        "fieldPath": ".size",
    }


@pytest.mark.parametrize(
    ("fields", "right"), [({}, False), (RED, True), ({"blue": "x"}, True), ({**RED, "blue": "x"}, False)]
)
def test_one_of_takes_exactly_one(fields: dict[str, Any], right: bool) -> None:
    assert found(Box, **fields) == ([] if right else ["spec: exactly one of red and blue must be set"])


def test_each_names_the_item_at_the_desk_and_the_list_at_the_api_server() -> None:
    assert found(Shelf, boxes=({"size": 5, "limit": 10, **RED}, {"size": 30, "limit": 40, **RED})) == [
        "spec.boxes[1].size: size must be below strength; got 30"
    ]
    assert rules(Shelf)[0] == {
        "rule": "!has(self.boxes) || self.boxes.all(b, b.size < self.strength)",
        "message": "size must be below strength",
        "fieldPath": ".boxes",
    }


def test_each_runs_over_the_keys_of_a_map_and_over_a_value_in_brackets() -> None:
    assert found(Shelf, labels={"team": "x", "paceline": "y"}) == [
        "spec.labels.paceline: labels must be of others; got paceline"
    ]
    assert found(Shelf, strength=4, notes=("strong", "weak")) == ["spec.notes[1]: weak needs a strength above 5; got 4"]


def test_an_absent_list_breaks_no_rule() -> None:
    assert found(Shelf) == []


def test_the_desk_checks_its_own_rules_where_the_api_server_has_nothing_to_say() -> None:
    three = tuple({"size": 1, "limit": 10, **RED} for _ in range(3))
    assert found(Shelf, boxes=three) == ["spec.boxes: got 3"]
    assert found(Shelf, boxes=(*three, {"size": 99, "limit": 99, **RED})) == [
        "spec.boxes[3].size: size must be below strength; got 99"
    ]


@pytest.mark.parametrize(
    ("cel", "right"),
    [
        ("[1, 2, 2].isSorted()", True),
        ("[2, 1].isSorted()", False),
        ("[3, 7, 5].max() == 7", True),
        ("self.absent == 1", False),
    ],
)
def test_what_kubernetes_adds_to_cel_and_an_error_is_not_true(cel: str, right: bool) -> None:
    assert (list(Rule(cel=cel, message="must hold").findings({})) == []) is right
