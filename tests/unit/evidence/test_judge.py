"""One test a rule: what makes a point of a round unfit to be believed."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.messages import Says
from tests.support.rounds import BASELINE, GOOD, PLAN, SPECULATED, WIDE, both, with_arms

from paceline.core import Parity
from paceline.evidence import Failure, Judged, Outputs, Replicate, RoundPlan, RoundResult, judge_points
from paceline.evidence.arguments import Difference
from paceline.evidence.judge import largest_difference

NO_CALLS: Mapping[str, Any] = {"verify_calls": 0, "accept_length": None}


def verdict(
    *, baseline: Replicate | None = BASELINE, wide: Replicate | None = WIDE, plan: RoundPlan = PLAN
) -> dict[tuple[str, str], Judged]:
    result = RoundResult(round=0, try_=0, replicates=tuple(filter(None, (baseline, wide))))
    return {(one.arm, one.workload): one for one in judge_points(plan, result)}


def wide(replicate: Replicate = WIDE, /, unseen: tuple[str, ...] = (), **numbers: Any) -> Judged:
    """A point of `wide` that is like a good one but for `numbers`."""
    points = tuple(dataclasses.replace(point, **numbers) for point in replicate.points)
    changed, plan = dataclasses.replace(replicate, points=points), with_arms(PLAN, unseen=unseen)
    return verdict(wide=changed, plan=plan)["wide", "code@1"]


def failures(judged: Judged) -> list[Failure]:
    return [objection.failure for objection in judged.objections]


def words(judged: Judged) -> list[str]:
    return [objection.message for objection in judged.objections]


def test_a_good_round_is_valid_in_every_point() -> None:
    judged = verdict()
    assert list(judged) == [("baseline", "code@1"), ("baseline", "chat@1"), ("wide", "code@1"), ("wide", "chat@1")]
    assert all(one.valid and not one.why and not one.nothing_accepted for one in judged.values())


def test_a_server_that_exited_spoils_even_the_points_it_had_finished(says: Says) -> None:
    died = dataclasses.replace(WIDE, exit_code=137, error="CUDA out of memory", points=WIDE.points[:1])
    judged = verdict(wide=died)
    for workload in ("code@1", "chat@1"):
        assert failures(judged["wide", workload])[0] is Failure.OutOfMemory
        says(judged["wide", workload].why)
    assert judged["baseline", "code@1"].valid


class TestWhereWorkloadsStandAlone:
    """A Sweep: what ends under eight requests has answered one."""

    plan = dataclasses.replace(PLAN, apart=True)

    def judged(self, wide: Replicate = WIDE, baseline: Replicate = BASELINE) -> dict[tuple[str, str], str]:
        return {at: one.why for at, one in verdict(wide=wide, baseline=baseline, plan=self.plan).items()}

    @pytest.mark.parametrize(
        "ended",
        [
            {"exit_code": 1, "error": "CUDA out of memory"},
            {"exit_code": 0},
            {"error": "chat@1: timed out after 1800 s", "failure": Failure.TimedOut},
            {"error": "chat@1: HTTP 500: CUDA out of memory"},
        ],
    )
    def test_its_end_spoils_what_it_did_not_live_through(self, ended: Mapping[str, Any]) -> None:
        said = self.judged(dataclasses.replace(WIDE, points=WIDE.points[:1], **ended))
        assert [at for at, why in said.items() if why] == [("wide", "chat@1")]
        assert said["wide", "chat@1"].endswith(ended.get("error", "the server exited with 0"))

    @pytest.mark.parametrize(
        "error",
        ["chat@1: 6 requests were answered, but the server counted 7: it received other requests", "GET /metrics: no"],
    )
    def test_what_nobody_knows_the_beginning_of_spoils_all(self, error: str) -> None:
        said = self.judged(dataclasses.replace(WIDE, points=WIDE.points[:1], error=error))
        assert [why for (arm, _), why in said.items() if arm == "wide"] == [error, error]

    def test_a_candidate_is_known_where_the_baseline_was_measured(self, says: Says) -> None:
        died = dataclasses.replace(BASELINE, exit_code=1, points=BASELINE.points[:1])
        said = self.judged(baseline=died)
        assert said["wide", "code@1"] == ""
        says(said["wide", "chat@1"])

    def test_its_arguments_are_compared_with_those_of_a_baseline_that_ended_later(self) -> None:
        died = dataclasses.replace(BASELINE, exit_code=1, points=BASELINE.points[:1])
        other = dataclasses.replace(WIDE, resolved={"attention_backend": "flashinfer", "speculative_num_steps": 3})
        assert "attention_backend" in self.judged(wide=other, baseline=died)["wide", "code@1"]


SHALLOW = {"attention_backend": "triton", "speculative_num_steps": 1}
OTHER = {"attention_backend": "flashinfer", "speculative_num_steps": 3}
INTERVAL = Difference("stream_interval", "8", "1")
TWO = (INTERVAL, Difference("tokenizer_mode", "slow", "auto"))


@pytest.mark.parametrize(
    ("ended", "named", "failure"),
    [
        ({"error": "not ready after 1800 s", "failure": Failure.StartTimeout}, "1800 s", Failure.StartTimeout),
        ({"exit_code": 0}, "0", Failure.ServerCrashed),  # SGLang as process 1, when its scheduler dies
        ({"resolved": SHALLOW}, "speculative_num_steps", Failure.NotMeasured),
        ({"resolved": {"attention_backend": "triton"}}, "speculative_num_steps", Failure.NotMeasured),
        ({"resolved": OTHER}, "attention_backend", Failure.NotMeasured),
        ({"resolved": {"speculative_num_steps": 3}}, "attention_backend", Failure.NotMeasured),
        ({"differs": (INTERVAL,)}, "stream_interval", Failure.NotMeasured),
        ({"differs": TWO, "differing": 2}, "stream_interval", Failure.NotMeasured),
    ],
)
def test_a_server_that_is_not_as_asked(ended: Mapping[str, Any], named: str, failure: Failure, says: Says) -> None:
    """The client has compared all arguments: what is left out is what speculation moves (tests/contract)."""
    judged = wide(dataclasses.replace(WIDE, **ended))
    assert failures(judged) == [failure]
    assert named in judged.why
    says(*words(judged))


@pytest.mark.parametrize(("held", "valid"), [((), True), (("dtype",), True), (("stream_interval",), False)])
def test_an_engine_of_its_own_may_resolve_other_arguments_but_the_held_ones(held: tuple[str, ...], valid: bool) -> None:
    other = dataclasses.replace(WIDE, rest_sha256="bb", resolved=OTHER, differs=TWO, differing=2)
    baseline, arm = PLAN.arms
    plan = dataclasses.replace(PLAN, arms=(baseline, dataclasses.replace(arm, held=held)))
    assert verdict(wide=other, plan=plan)["wide", "code@1"].valid is valid


@pytest.mark.parametrize(("said", "held", "valid"), [
    ("0.5.24+cu129", (), True), ("0.5.23", (), False), ("0.5.23", None, True), ("", (), True),
])  # fmt: skip
def test_an_arm_is_measured_for_its_release(said: str, held: tuple[str, ...] | None, valid: bool) -> None:
    """One virtual environment for all arms would else promote a release that never ran."""
    baseline, arm = PLAN.arms
    arms = (baseline, dataclasses.replace(arm, held=held, engine_version="0.5.24"))
    found = verdict(wide=dataclasses.replace(WIDE, version=said), plan=dataclasses.replace(PLAN, arms=arms))
    assert found["wide", "code@1"].valid is valid


def test_a_held_flag_covers_what_is_below_it() -> None:
    below = (Difference("compilation_config.mode", "0", "3"),)
    baseline, arm = PLAN.arms
    for held, valid in ((("compilation_config",), False), (("compilation",), True)):
        plan = dataclasses.replace(PLAN, arms=(baseline, dataclasses.replace(arm, held=held)))
        other = dataclasses.replace(WIDE, differs=below, differing=1)
        assert verdict(wide=other, plan=plan)["wide", "code@1"].valid is valid


def test_a_candidate_without_a_draft_does_not_speculate(says: Says) -> None:
    baseline, arm = PLAN.arms
    plan = dataclasses.replace(PLAN, arms=(baseline, dataclasses.replace(arm, plain=True, expected={})))
    assert verdict(wide=dataclasses.replace(WIDE, points=both(GOOD)), plan=plan)["wide", "code@1"].valid
    judged = verdict(plan=plan)["wide", "code@1"]
    assert failures(judged) == [Failure.NotMeasured]
    says(judged.why)


@pytest.mark.parametrize(("differs", "valid"), [((), False), (None, True)])
def test_a_digest_of_its_arguments_that_is_not_the_baselines(differs: tuple[()] | None, valid: bool) -> None:
    """Whatever the client says differs; one of an older release took the digest of other arguments and says None."""
    base, other = (dataclasses.replace(one, rest_sha256=sha) for one, sha in ((BASELINE, "aa"), (WIDE, "bb")))
    judged = verdict(baseline=base, wide=dataclasses.replace(other, differs=differs))["wide", "code@1"]
    assert failures(judged) == ([] if valid else [Failure.NotMeasured])
    assert wide(dataclasses.replace(WIDE, differs=differs)).valid


def test_what_was_not_measured(says: Says) -> None:
    absent = verdict(wide=None)["wide", "code@1"]
    assert failures(absent)[0] is Failure.NotMeasured
    judged = verdict(wide=dataclasses.replace(WIDE, points=WIDE.points[:1]))
    assert [at for at, one in judged.items() if not one.valid] == [("wide", "chat@1")]
    says(absent.why, judged["wide", "chat@1"].why)


@pytest.mark.parametrize("time", [0.0, None, math.nan, math.inf, -0.1])
def test_a_first_token_that_took_no_time(time: float | None) -> None:
    assert failures(wide(mean_ttft=time)) == failures(wide(p95_ttft=time)) == [Failure.NotMeasured]


@pytest.mark.parametrize("throughput", [0.0, math.nan, math.inf, -1.0])
def test_a_throughput_that_is_none(throughput: float) -> None:
    judged = wide(steady_throughput=throughput)
    assert failures(judged) == [Failure.NotMeasured]
    assert str(throughput) in judged.why


def test_without_a_steady_window_nothing_stands_in_for_it(says: Says) -> None:
    """Tokens over the whole time are there, ramp and tail included: up to 5 % off, and another question."""
    assert GOOD.output_throughput
    judged = wide(steady_throughput=None)
    assert failures(judged) == [Failure.NotMeasured]
    says(*words(judged))


@pytest.mark.parametrize(
    ("tokens", "valid"), [(387, True), (858, True), (386, False), (859, False), (None, False), (0, False)]
)
def test_output_tokens_are_absurd_where_one_arm_writes_far_more(tokens: int | None, valid: bool, says: Says) -> None:
    """What is less than that is the gate's affair, over all rounds."""
    judged = wide(output_tokens=tokens)
    assert judged.valid is valid
    says(*words(judged))


@pytest.mark.parametrize(("answers", "most"), [(1, 1.2), (6, 0.49), (24, 0.25), (64, 0.25), (0, 1.2)])
def test_of_few_answers_more_may_differ(answers: int, most: float) -> None:
    assert largest_difference(answers) == pytest.approx(most, abs=0.005)


def test_without_a_baseline_nothing_can_be_compared(says: Says) -> None:
    judged = verdict(baseline=Replicate(arm="baseline", exit_code=1))["wide", "code@1"]
    assert failures(judged) == [Failure.NotMeasured]
    says(*words(judged))


@pytest.mark.parametrize(
    ("drafts", "length", "valid"),
    [
        (7, 8.0, True),
        (7, 1.0, True),
        (7, 0.3, False),
        (7, 0.99, False),
        (7, 97.0, False),
        (None, 97.0, True),
        (None, 1e-9, False),
    ],
)
def test_an_acceptance_length_that_cannot_be(drafts: int | None, length: float, valid: bool, says: Says) -> None:
    """Of an adaptive arm nobody knows how many drafts a verify call checks."""
    baseline, wide = PLAN.arms
    plan = dataclasses.replace(PLAN, arms=(baseline, dataclasses.replace(wide, drafts=drafts)))
    points = both(dataclasses.replace(SPECULATED, accept_length=length))
    judged = verdict(wide=dataclasses.replace(WIDE, points=points), plan=plan)["wide", "code@1"]
    assert (judged.valid, judged.nothing_accepted) == (valid, length == 1.0)
    says(*words(judged))


@pytest.mark.parametrize("numbers", [{"verify_calls": 205}, {"accept_length": 2.8}, {"accept_length": math.nan}])
def test_a_baseline_that_speculates_is_nothing_to_compare_with(numbers: Mapping[str, Any], says: Says) -> None:
    points = tuple(dataclasses.replace(point, **numbers) for point in BASELINE.points)
    found = verdict(baseline=dataclasses.replace(BASELINE, points=points))
    assert all(failures(one)[0] is Failure.NotMeasured for one in found.values())
    says(*words(found["wide", "code@1"]))


def test_the_baseline_needs_no_speculation() -> None:
    assert BASELINE.points[0].verify_calls is None
    assert verdict()["baseline", "code@1"].valid


@pytest.mark.parametrize(
    ("numbers", "failure"),
    [
        ({"completed": 3}, Failure.RequestsFailed),
        ({"asked": 0, "completed": 0}, Failure.NotMeasured),
        ({"errors": 2}, Failure.RequestsFailed),
        ({"retractions": 1}, Failure.Retracted),
        ({"retractions": None}, Failure.NotMeasured),
        ({"verify_calls": 0}, Failure.NotMeasured),
        ({"verify_calls": None}, Failure.NotMeasured),
        ({"accept_length": None}, Failure.NotMeasured),
        ({"accept_length": math.nan}, Failure.NotMeasured),
        ({"malformed": 1}, None),
        ({"malformed": 2}, Failure.Malformed),
        ({"asked": 96, "completed": 96, "malformed": 4}, None),
        ({"asked": 96, "completed": 96, "malformed": 5}, Failure.Malformed),
        ({"client_cpu": 0.8}, None),
        ({"client_cpu": 0.81}, Failure.ClientBusy),
        ({"client_lag": 0.02}, None),
        ({"client_lag": 0.021}, Failure.ClientBusy),
        ({"client_lag": 0.06, "mean_e2e": 3.0}, None),
        ({"client_lag": 0.061, "mean_e2e": 3.0}, Failure.ClientBusy),
        ({"client_cpu": None}, Failure.NotMeasured),
        ({"client_lag": None}, Failure.NotMeasured),
    ],
    ids=str,
)
def test_numbers_that_are_no_evidence(numbers: Mapping[str, Any], failure: Failure | None, says: Says) -> None:
    judged = wide(**numbers)
    assert failures(judged)[:1] == ([failure] if failure else [])
    says(*words(judged))


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"retractions": None}, []),
        ({"retractions": 1}, [Failure.Retracted]),
        ({"verify_calls": None}, []),
        ({"verify_calls": None, "accept_length": None}, [Failure.NotMeasured]),
    ],
)
def test_what_an_engine_cannot_show_is_not_asked_of_it(numbers: Mapping[str, Any], expected: list[Failure]) -> None:
    assert failures(wide(unseen=("retractions", "verify_calls"), **numbers)) == expected


@pytest.mark.parametrize(
    ("outputs", "valid"),
    [
        (Outputs(samples=4), True),
        (Outputs(samples=4, diverged=(1, 3)), True),
        (Outputs(unknown="HTTP 400"), False),
        (None, False),
    ],
)
def test_where_outputs_were_asked_for_a_round_without_them_is_no_evidence(
    outputs: Outputs | None, valid: bool, says: Says
) -> None:
    """That they differ is for the gate to judge. Where nobody asked nothing is missing."""
    wide = dataclasses.replace(WIDE, outputs=outputs)
    result = RoundResult(round=0, try_=0, replicates=(BASELINE, wide))
    unasked = dataclasses.replace(PLAN, parity=Parity(samples=4))
    required = dataclasses.replace(unasked, parity_required=True)
    asked = {one.arm: one for one in judge_points(required, result)}
    assert {arm: one.valid for arm, one in asked.items()} == {"baseline": True, "wide": valid}
    assert all(one.valid for one in judge_points(PLAN, result))
    assert all(one.valid for one in judge_points(unasked, result))
    says(*words(asked["wide"]))


@pytest.mark.parametrize(
    ("length", "calls", "nothing"),
    [(1.0, 100, True), (1.005, 500, True), (1.006, 500, False), (1.0, 99, False)],
)
def test_a_head_that_accepts_nothing_is_a_measurement(length: float, calls: int, nothing: bool) -> None:
    point = dataclasses.replace(SPECULATED, accept_length=length, verify_calls=calls)
    judged = verdict(wide=dataclasses.replace(WIDE, points=both(point)))["wide", "code@1"]
    assert (judged.valid, judged.nothing_accepted) == (True, nothing)


@pytest.mark.parametrize(
    ("wide", "expected"),
    [
        ({}, []),
        ({"exit_code": -9, "error": "CUDA error"}, [Failure.ServerCrashed]),
        ({"error": "not ready after 1800 s", "failure": Failure.StartTimeout}, [Failure.StartTimeout]),
        ({"points": both(dataclasses.replace(SPECULATED, errors=1))}, [Failure.RequestsFailed]),
        ({"points": both(dataclasses.replace(SPECULATED, retractions=1))}, [Failure.Retracted]),
        ({"points": both(dataclasses.replace(SPECULATED, verify_calls=0))}, [Failure.NotMeasured]),
        (
            {"points": both(dataclasses.replace(SPECULATED, errors=1, retractions=1))},
            [Failure.RequestsFailed, Failure.Retracted],
        ),
    ],
)
def test_every_objection_has_a_code(wide: Mapping[str, Any], expected: list[Failure]) -> None:
    judged = verdict(wide=dataclasses.replace(WIDE, **wide))["wide", "code@1"]
    assert failures(judged) == expected
    assert judged.why == (judged.objections[0].message if expected else "")


@pytest.mark.parametrize(
    ("cuts", "code", "chat", "valid"),
    [
        (True, {}, NO_CALLS, True),
        (True, NO_CALLS, NO_CALLS, False),
        (False, {}, NO_CALLS, False),
    ],
)
def test_where_a_grammar_cuts_drafts_a_load_may_have_no_verify_call(
    cuts: bool, code: Mapping[str, Any], chat: Mapping[str, Any], valid: bool, says: Says
) -> None:
    """Seen of the real vLLM 0.33.0: a head of noise proposes nothing that a schema allows. That speculation runs, a
    load of free text shows."""
    free, form = PLAN.workloads
    bugs = dataclasses.replace(form, dataset=dataclasses.replace(form.dataset, response_format="{}"))
    plan = with_arms(dataclasses.replace(PLAN, workloads=(free, bugs)), cuts_drafts=cuts)
    points = (dataclasses.replace(WIDE.points[0], **code), dataclasses.replace(WIDE.points[1], **chat))
    found = verdict(wide=dataclasses.replace(WIDE, points=points), plan=plan)["wide", "chat@1"]
    assert found.valid is valid
    says(*words(found))
    assert RoundPlan.from_json(plan.to_json()) == plan
