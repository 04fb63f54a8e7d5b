"""What a round is asked, as another release wrote it."""

import json

import pytest

from paceline.evidence import RoundPlan

from .test_judge import PLAN


def test_what_only_another_release_knows_is_left_out() -> None:
    raw = json.loads(PLAN.to_json())
    for place in (raw, raw["arms"][0], raw["workloads"][0], raw["workloads"][0]["dataset"]):
        place["later"] = [1]
    assert RoundPlan.from_json(json.dumps(raw)) == PLAN


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"arms": [1]}', PLAN.to_json().replace('"port"', '"porto"')])
def test_what_is_no_plan_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="not a round's plan"):
        RoundPlan.from_json(text)
