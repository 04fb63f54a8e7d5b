"""What a round is asked, as another release wrote it."""

import dataclasses
import json

import pytest
from tests.support.rounds import PLAN

from paceline.evidence import RoundPlan


def test_what_only_another_release_knows_is_left_out() -> None:
    raw = json.loads(PLAN.to_json())
    for place in (raw, raw["arms"][0], raw["workloads"][0], raw["workloads"][0]["dataset"]):
        place["later"] = [1]
    assert RoundPlan.from_json(json.dumps(raw)) == PLAN


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"arms": [1]}', PLAN.to_json().replace('"port"', '"porto"')])
def test_what_is_no_plan_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a round's plan"):
        RoundPlan.from_json(text)


def test_what_few_rounds_are_asked_moves_no_other_rounds_question() -> None:
    apart = dataclasses.replace(PLAN, apart=True)
    assert RoundPlan.from_json(apart.to_json()) == apart
    assert "apart" not in json.loads(PLAN.to_json())
