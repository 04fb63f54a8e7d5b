"""Structured output: what is asked for, and a round in which a candidate's answers do not have it."""

import dataclasses
import json
from pathlib import Path

import pytest
from tests.support.rounds import PLAN
from tests.unit.round.pod import Arms, Start, workload
from tests.unit.round.test_round import published_pair

from paceline.core import Workload
from paceline.evidence import Failure, RoundPlan
from paceline.pods.round import load

BUG = {
    "type": "object",
    "properties": {"file": {"type": "string"}, "line": {"type": "integer"}, "kind": {"enum": ["crash", "leak"]}},
    "required": ["file", "line", "kind"],
    "additionalProperties": False,
}
FORM = json.dumps({"type": "json_schema", "json_schema": {"name": "bug", "schema": BUG}})
OWN = {"type": "json_object"}


def in_form(load: Workload) -> Workload:
    return dataclasses.replace(load, dataset=dataclasses.replace(load.dataset, response_format=FORM))


CODE = in_form(workload("code", 2, 16, 96))


@pytest.fixture
def pair(models: Path, port: int) -> Arms:
    return published_pair(models, port)


def test_every_request_asks_for_the_form_unless_its_entry_asks_for_another(tmp_path: Path) -> None:
    asked = [{"messages": [{"role": "user", "content": text}]} for text in ("One?", "Two?")]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (asked[0], {**asked[1], "response_format": OWN})))
    own = dataclasses.replace(CODE.dataset, name="own", source="configMap://prompts/own.jsonl", requests=2)
    load_of_two = dataclasses.replace(CODE, dataset=own)
    sent = load.load_requests(dataclasses.replace(PLAN, files={"own": str(file)}), PLAN.arms[0], load_of_two)
    forms = {body["messages"][0]["content"]: body["response_format"] for body in sent.bodies}
    assert forms == {"One?": json.loads(FORM), "Two?": OWN}


def test_a_plan_carries_the_form_where_there_is_one() -> None:
    plan = dataclasses.replace(PLAN, workloads=(CODE, *PLAN.workloads))
    assert RoundPlan.from_json(plan.to_json()) == plan
    assert "response_format" not in PLAN.to_json()


def test_a_candidate_whose_answers_lose_their_form_is_no_evidence(start: Start, pair: Arms) -> None:
    """The baseline's answers are all valid: of its point nothing is wrong."""
    faulty = {"PACELINE_EMULATE_MALFORMED": "0.5", "PACELINE_EMULATE_MALFORMED_WHEN": "speculative"}
    outcome = start(pair, CODE, **faulty).finish()
    assert outcome.client == 0, outcome.log
    baseline, wide = (outcome.judged[arm, "code@2"] for arm in ("baseline", "wide"))
    assert baseline.valid, baseline.why
    assert baseline.point is not None
    assert baseline.point.malformed == 0
    assert [one.failure for one in wide.objections] == [Failure.Malformed]
    assert "answers do not have the form of responseFormat; at most 1 may" in wide.why


def test_a_form_that_the_engine_refuses_is_told_in_its_words(start: Start, pair: Arms) -> None:
    """The schema is valid, and SGLang's grammar would ignore a part of it."""
    even = json.dumps({"type": "json_schema", "json_schema": {"name": "even", "schema": {"multipleOf": 2}}})
    refused = dataclasses.replace(CODE, dataset=dataclasses.replace(CODE.dataset, response_format=even))
    outcome = start(pair, refused).finish()
    assert {one.why for one in outcome.judged.values()} == {"0 of 16 requests completed"}
    note, *_ = outcome.result.notes
    assert note == (
        "baseline code@2: 16 requests failed, the first: in the stream: Failed to compile json grammar: JSON Schema at "
        "# is not supported by xgrammar: keyword(s) multipleOf would be ignored"
    )
