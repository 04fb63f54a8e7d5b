"""One test a rule: what makes a point of a round unfit to be believed."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.rounds import BASELINE, GOOD, PLAN, SPECULATED, WIDE, both

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


def why(replicate: Replicate = WIDE, /, unseen: tuple[str, ...] = (), **numbers: Any) -> str:
    """The reason given for a point of `wide` that is like a good one but for `numbers`."""
    points = tuple(dataclasses.replace(point, **numbers) for point in replicate.points)
    wide, plan = dataclasses.replace(replicate, points=points), dataclasses.replace(PLAN, unseen=unseen)
    judged = verdict(wide=wide, plan=plan)["wide", "code@1"]
    assert judged.valid is (not judged.why)
    return judged.why


def test_a_good_round_is_valid_in_every_point() -> None:
    judged = verdict()
    assert list(judged) == [("baseline", "code@1"), ("baseline", "chat@1"), ("wide", "code@1"), ("wide", "chat@1")]
    assert all(one.valid and not one.why and not one.nothing_accepted for one in judged.values())


def test_an_arm_that_was_not_run() -> None:
    assert verdict(wide=None)["wide", "code@1"].why == "the arm was not run"


def test_a_server_that_exited_spoils_even_the_points_it_had_finished() -> None:
    died = dataclasses.replace(WIDE, exit_code=137, error="CUDA out of memory", points=WIDE.points[:1])
    judged = verdict(wide=died)
    for workload in ("code@1", "chat@1"):
        assert judged["wide", workload].why == "the server exited with 137: CUDA out of memory"
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

    def test_a_candidate_is_known_where_the_baseline_was_measured(self) -> None:
        died = dataclasses.replace(BASELINE, exit_code=1, points=BASELINE.points[:1])
        said = self.judged(baseline=died)
        assert said["wide", "code@1"] == ""
        assert said["wide", "chat@1"] == "the output tokens cannot be compared with the baseline's"

    def test_its_arguments_are_compared_with_those_of_a_baseline_that_ended_later(self) -> None:
        died = dataclasses.replace(BASELINE, exit_code=1, points=BASELINE.points[:1])
        other = dataclasses.replace(WIDE, resolved={"attention_backend": "flashinfer", "speculative_num_steps": 3})
        said = self.judged(wide=other, baseline=died)
        assert said["wide", "code@1"] == "attention_backend is flashinfer, but triton on the baseline"


def test_a_server_that_never_got_ready() -> None:
    slow = Replicate(arm="wide", error="not ready after 1800 s", failure=Failure.StartTimeout)
    assert verdict(wide=slow)["wide", "code@1"].why == "not ready after 1800 s"


def test_an_exit_code_of_zero_is_no_excuse() -> None:
    """SGLang as process 1 ends with 0 when its scheduler dies."""
    assert why(dataclasses.replace(WIDE, exit_code=0)) == "the server exited with 0"


def test_arguments_other_than_asked() -> None:
    shallow = dataclasses.replace(WIDE, resolved={"attention_backend": "triton", "speculative_num_steps": 1})
    assert why(shallow) == "the server runs with speculative_num_steps=1, not 3"
    silent = dataclasses.replace(WIDE, resolved={"attention_backend": "triton"})
    assert why(silent) == "the server does not report its speculative_num_steps"


def test_arguments_that_differ_between_arms() -> None:
    other = dataclasses.replace(WIDE, resolved={"attention_backend": "flashinfer", "speculative_num_steps": 3})
    assert why(other) == "attention_backend is flashinfer, but triton on the baseline"
    silent = dataclasses.replace(WIDE, resolved={"speculative_num_steps": 3})
    assert why(silent) == "the server does not report its attention_backend"


def test_any_other_argument_that_is_not_as_on_the_baseline() -> None:
    """The client has compared them all: what is left out is what speculation moves (tests/contract)."""
    first = Difference("stream_interval", "8", "1")
    assert why(dataclasses.replace(WIDE, differs=(first,))) == "stream_interval is 8, but 1 on the baseline"
    two = dataclasses.replace(WIDE, differs=(first, Difference("tokenizer_mode", "slow", "auto")))
    assert why(two) == "stream_interval is 8, but 1 on the baseline (the first of 2 that differ)"
    assert why(dataclasses.replace(WIDE, differs=())) == ""


def test_a_digest_of_its_arguments_that_is_not_the_baselines() -> None:
    """Whatever the client says differs; one of an older release took the digest of other arguments and says None."""
    base, other = (dataclasses.replace(one, rest_sha256=sha) for one, sha in ((BASELINE, "aa"), (WIDE, "bb")))
    for differs, said in (((), "an argument differs from the baseline's"), (None, "")):
        judged = verdict(baseline=base, wide=dataclasses.replace(other, differs=differs))["wide", "code@1"]
        assert judged.why.startswith(said)
        assert judged.valid is (not said)


def test_a_workload_that_was_not_measured() -> None:
    judged = verdict(wide=dataclasses.replace(WIDE, points=WIDE.points[:1]))
    assert judged["wide", "chat@1"].why == "nothing was measured"
    assert judged["wide", "code@1"].valid


def test_requests_that_did_not_complete() -> None:
    assert why(completed=3) == "3 of 6 requests completed"
    assert why(asked=0, completed=0) == "0 of 0 requests completed"


def test_requests_that_failed() -> None:
    assert why(errors=2) == "2 requests failed"


@pytest.mark.parametrize("time", [0.0, None, math.nan, math.inf, -0.1])
def test_a_first_token_that_took_no_time(time: float | None) -> None:
    assert why(mean_ttft=time) == "no time to first token"
    assert why(p95_ttft=time) == "no time to first token"


@pytest.mark.parametrize("throughput", [0.0, math.nan, math.inf, -1.0])
def test_a_throughput_that_is_none(throughput: float) -> None:
    assert why(steady_throughput=throughput) == f"the throughput is {throughput}"


def test_without_a_steady_window_nothing_stands_in_for_it() -> None:
    """Tokens over the whole time are there, ramp and tail included: up to 5 % off, and another question."""
    assert GOOD.output_throughput
    assert why(steady_throughput=None) == ("its requests were never steadily under way: no throughput")


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        (387, ""),
        (858, ""),
        (386, "386 output tokens, but 576 on the baseline: in 6 answers they may differ by 49%"),
        (859, "859 output tokens, but 576 on the baseline: in 6 answers they may differ by 49%"),
        (None, "the output tokens cannot be compared with the baseline's"),
        (0, "the output tokens cannot be compared with the baseline's"),
    ],
)
def test_output_tokens_are_absurd_where_one_arm_writes_far_more(tokens: int | None, reason: str) -> None:
    """What is less than that is the gate's affair, over all rounds."""
    assert why(output_tokens=tokens) == reason


@pytest.mark.parametrize(("answers", "most"), [(1, 1.2), (6, 0.49), (24, 0.25), (64, 0.25), (0, 1.2)])
def test_of_few_answers_more_may_differ(answers: int, most: float) -> None:
    assert largest_difference(answers) == pytest.approx(most, abs=0.005)


def test_without_a_baseline_nothing_can_be_compared() -> None:
    died = Replicate(arm="baseline", exit_code=1)
    assert verdict(baseline=died)["wide", "code@1"].why == "the output tokens cannot be compared with the baseline's"


def test_a_candidate_that_does_not_speculate() -> None:
    assert why(verify_calls=0) == "no speculation was running: no verify calls"
    assert why(verify_calls=None) == "no speculation was running: no verify calls"
    assert why(accept_length=None) == "no speculation was running: no acceptance length"
    assert why(accept_length=math.nan) == "no speculation was running: no acceptance length"


@pytest.mark.parametrize(
    ("drafts", "length", "reason"),
    [
        (7, 8.0, ""),
        (7, 1.0, ""),
        (7, 0.3, "the acceptance length is 0.3 (minimum 1)"),
        (7, 0.99, "the acceptance length is 0.99 (minimum 1)"),
        (7, 97.0, "the acceptance length is 97 (maximum 8)"),
        (None, 97.0, ""),
        (None, 1e-9, "the acceptance length is 1e-09 (minimum 1)"),
    ],
)
def test_an_acceptance_length_that_cannot_be(drafts: int | None, length: float, reason: str) -> None:
    """Of an adaptive arm nobody knows how many drafts a verify call checks."""
    baseline, wide = PLAN.arms
    plan = dataclasses.replace(PLAN, arms=(baseline, dataclasses.replace(wide, drafts=drafts)))
    points = both(dataclasses.replace(SPECULATED, accept_length=length))
    judged = verdict(wide=dataclasses.replace(WIDE, points=points), plan=plan)["wide", "code@1"]
    assert (judged.why, judged.valid, judged.nothing_accepted) == (reason, not reason, length == 1.0)


@pytest.mark.parametrize("numbers", [{"verify_calls": 205}, {"accept_length": 2.8}, {"accept_length": math.nan}])
def test_a_baseline_that_speculates_is_nothing_to_compare_with(numbers: Mapping[str, Any]) -> None:
    points = tuple(dataclasses.replace(point, **numbers) for point in BASELINE.points)
    for judged in verdict(baseline=dataclasses.replace(BASELINE, points=points)).values():
        assert judged.why.startswith("speculation was running on the baseline")


def test_the_baseline_needs_no_speculation() -> None:
    assert BASELINE.points[0].verify_calls is None
    assert verdict()["baseline", "code@1"].valid


@pytest.mark.parametrize(("retractions", "reason"), [(1, "1 requests were retracted"), (None, "retractions unknown")])
def test_retractions(retractions: int | None, reason: str) -> None:
    assert why(retractions=retractions) == reason


MALFORMED = (
    "%s of %s answers do not have the form of responseFormat; at most %s may: raise maxTokens if they are cut off"
)


@pytest.mark.parametrize(
    ("answers", "malformed", "reason"),
    [(6, 0, ""), (6, 1, ""), (6, 2, MALFORMED % (2, 6, 1)), (96, 4, ""), (96, 5, MALFORMED % (5, 96, 4))],
)
def test_answers_without_the_form_that_was_asked_for(answers: int, malformed: int, reason: str) -> None:
    assert why(malformed=malformed, asked=answers, completed=answers) == reason


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ({"retractions": None}, ""),
        ({"retractions": 1}, "1 requests were retracted"),
        ({"verify_calls": None}, ""),
        ({"verify_calls": None, "accept_length": None}, "no speculation was running: no acceptance length"),
    ],
)
def test_what_an_engine_cannot_show_is_not_asked_of_it(numbers: Mapping[str, Any], reason: str) -> None:
    assert why(WIDE, unseen=("retractions", "verify_calls"), **numbers) == reason


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        (Outputs(samples=4), ""),
        (Outputs(samples=4, diverged=(1, 3)), ""),
        (Outputs(unknown="HTTP 400"), "the outputs were not compared: HTTP 400"),
        (None, "the outputs were not compared: the client did not ask for them"),
    ],
)
def test_where_outputs_were_asked_for_a_round_without_them_is_no_evidence(outputs: Outputs | None, reason: str) -> None:
    """That they differ is for the gate to judge. Where nobody asked nothing is missing."""
    wide = dataclasses.replace(WIDE, outputs=outputs)
    result = RoundResult(round=0, try_=0, replicates=(BASELINE, wide))
    asked = {one.arm: one.why for one in judge_points(dataclasses.replace(PLAN, parity=Parity(samples=4)), result)}
    assert asked == {"baseline": "", "wide": reason}
    assert {one.why for one in judge_points(PLAN, result)} == {""}


@pytest.mark.parametrize(
    ("length", "calls", "nothing"),
    [(1.0, 100, True), (1.005, 500, True), (1.006, 500, False), (1.0, 99, False)],
)
def test_a_head_that_accepts_nothing_is_a_measurement(length: float, calls: int, nothing: bool) -> None:
    point = dataclasses.replace(SPECULATED, accept_length=length, verify_calls=calls)
    judged = verdict(wide=dataclasses.replace(WIDE, points=both(point)))["wide", "code@1"]
    assert (judged.valid, judged.nothing_accepted) == (True, nothing)


@pytest.mark.parametrize(
    ("wide", "failures"),
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
def test_every_objection_has_a_code(wide: Mapping[str, Any], failures: list[Failure]) -> None:
    judged = verdict(wide=dataclasses.replace(WIDE, **wide))["wide", "code@1"]
    assert [objection.failure for objection in judged.objections] == failures
    assert judged.why == (judged.objections[0].message if failures else "")


@pytest.mark.parametrize(
    ("cuts", "code", "chat", "valid"),
    [
        (True, {}, NO_CALLS, True),
        (True, NO_CALLS, NO_CALLS, False),
        (False, {}, NO_CALLS, False),
    ],
)
def test_where_a_grammar_cuts_drafts_a_load_may_have_no_verify_call(
    cuts: bool, code: Mapping[str, Any], chat: Mapping[str, Any], valid: bool
) -> None:
    """Seen of the real vLLM 0.33.0: a head of noise proposes nothing that a schema allows. That speculation runs, a
    load of free text shows."""
    free, form = PLAN.workloads
    bugs = dataclasses.replace(form, dataset=dataclasses.replace(form.dataset, response_format="{}"))
    plan = dataclasses.replace(PLAN, cuts_drafts=cuts, workloads=(free, bugs))
    points = (dataclasses.replace(WIDE.points[0], **code), dataclasses.replace(WIDE.points[1], **chat))
    found = verdict(wide=dataclasses.replace(WIDE, points=points), plan=plan)["wide", "chat@1"]
    assert found.valid is valid
    assert valid or found.why.startswith("no speculation was running")
    assert RoundPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        ({"client_cpu": 0.8}, ""),
        ({"client_cpu": 0.81}, "the client took 81% of a CPU (maximum 80%)"),
        ({"client_lag": 0.02}, ""),
        ({"client_lag": 0.021}, "an event waited 21.0 ms for it (maximum 20.0 ms)"),
        ({"client_lag": 0.06, "mean_e2e": 3.0}, ""),
        ({"client_lag": 0.061, "mean_e2e": 3.0}, "an event waited 61.0 ms for it (maximum 60.0 ms)"),
        ({"client_cpu": None}, "it is unknown how busy the client was"),
        ({"client_lag": None}, "it is unknown how busy the client was"),
    ],
)
def test_a_client_that_did_not_keep_up_measures_nothing(busy: dict[str, float | None], said: str) -> None:
    assert said in why(**busy)
    assert bool(why(**busy)) == bool(said)
