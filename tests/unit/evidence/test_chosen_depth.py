"""An arm whose depth the engine chooses may rest at some loads, not at all of them."""

import dataclasses
import json

import pytest
from tests.support.in_status import measurements, round_status
from tests.support.messages import Says
from tests.support.rounds import BASELINE, PLAN, SPECULATED, WIDE

from paceline.core import ArmOutcome, Gate
from paceline.evidence import Judged, Point, RoundPlan, RoundResult, judge_points
from paceline.gate import decide

CHOOSES = dataclasses.replace(PLAN, arms=(PLAN.arms[0], dataclasses.replace(PLAN.arms[1], engine_chooses_depth=True)))
DRAFTED = dataclasses.replace(SPECULATED, draft_tokens=5.0)
TRIVIAL = dataclasses.replace(SPECULATED, accept_length=1.0, verify_calls=612, draft_tokens=0.0)
"""SGLang 0.5.23 at depth 0 verifies the root alone, and counts that as a call."""
SILENT = dataclasses.replace(SPECULATED, accept_length=None, verify_calls=0, draft_tokens=None)
"""vLLM 0.33.0 at K = 0 counts nothing."""
REFUSED = dataclasses.replace(TRIVIAL, draft_tokens=5.0)
"""The head proposes, and the target accepts nothing."""
UNKNOWN = dataclasses.replace(SILENT, verify_calls=None)


def judged(code: Point, chat: Point, plan: RoundPlan = CHOOSES) -> tuple[tuple[Judged, Judged], RoundResult]:
    """Of the candidate, on code@1 and chat@1."""
    points = (code, dataclasses.replace(chat, workload="chat@1"))
    result = RoundResult(round=0, try_=0, replicates=(BASELINE, dataclasses.replace(WIDE, points=points)))
    _, _, first, second = judge_points(plan, result)
    return (first, second), result


@pytest.mark.parametrize(
    ("code", "chat", "valid", "at_rest", "nothing_accepted"),
    [
        (DRAFTED, DRAFTED, (True, True), (False, False), (False, False)),
        (DRAFTED, TRIVIAL, (True, True), (False, True), (False, False)),
        (TRIVIAL, DRAFTED, (True, True), (True, False), (False, False)),
        (DRAFTED, SILENT, (True, True), (False, True), (False, False)),
        (TRIVIAL, TRIVIAL, (True, True), (False, False), (True, True)),  # it never speculates: the draft is no use
        (REFUSED, SILENT, (True, True), (False, False), (True, False)),  # nor is a head that is refused where it drafts
        (SILENT, SILENT, (False, False), (False, False), (False, False)),  # nothing says that it ran at all
        (DRAFTED, UNKNOWN, (True, False), (False, True), (False, False)),  # no counter is no rest
    ],
)
def test_rest(
    code: Point, chat: Point, valid: tuple[bool, bool], at_rest: tuple[bool, bool], nothing_accepted: tuple[bool, bool]
) -> None:
    points, _ = judged(code, chat)
    assert tuple(one.valid for one in points) == valid
    assert tuple(one.at_rest for one in points) == at_rest
    assert tuple(one.nothing_accepted for one in points) == nothing_accepted


def test_an_arm_that_rests_everywhere_is_told_so(says: Says) -> None:
    (first, _), _ = judged(SILENT, SILENT)
    says(first.why)


@pytest.mark.parametrize("resting", [TRIVIAL, SILENT])
def test_of_an_arm_of_fixed_depth_no_rest_is_believed(resting: Point) -> None:
    points, _ = judged(DRAFTED, resting, PLAN)
    assert [(one.valid, one.at_rest) for one in points] == [(True, False), (resting is TRIVIAL, False)]
    assert points[1].nothing_accepted is (resting is TRIVIAL)


def status(code: Point, chat: Point) -> dict[str, object]:
    _, result = judged(code, chat)
    return round_status(CHOOSES, result, judge_points(CHOOSES, result), "job", "node")


@pytest.mark.parametrize("chat", [DRAFTED, TRIVIAL, SILENT])
def test_the_gate_decides_on_speed_where_an_arm_rests(chat: Point) -> None:
    """What status keeps is enough for that, whenever it is read again."""
    rounds = [{**status(DRAFTED, chat), "round": number} for number in range(10)]
    kept = json.loads(json.dumps(rounds))
    found = decide(Gate(), ("baseline", "wide"), {"code@1": 1.0, "chat@1": 1.0}, measurements(kept))
    assert found.arms["wide"].outcome is ArmOutcome.PROMOTABLE


def test_an_arm_that_nothing_is_accepted_of_anywhere_is_rejected_after_a_round() -> None:
    found = decide(
        Gate(), ("baseline", "wide"), {"code@1": 1.0, "chat@1": 1.0}, measurements([status(TRIVIAL, TRIVIAL)])
    )
    assert (found.arms["wide"].outcome, found.arms["wide"].reason) == (ArmOutcome.REJECTED, "NothingAccepted")


def test_what_the_engine_chose_is_kept(says: Says) -> None:
    _, _, code, chat = status(DRAFTED, TRIVIAL)["points"]  # type: ignore[misc]
    assert (code["draftTokens"], code["acceptRate"], code.get("atRest")) == ("5", "0.362", None)
    says(*status(DRAFTED, TRIVIAL)["notes"])
    assert (chat["draftTokens"], chat.get("acceptRate"), chat["atRest"]) == ("0", None, True)


def test_the_plan_says_which_arms_those_are() -> None:
    assert RoundPlan.from_json(CHOOSES.to_json()) == CHOOSES
    assert "engine_chooses_depth" not in PLAN.to_json()
