"""The protocol of a round, driven without a server: what is done, in which order, and what is noted."""

import dataclasses
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.messages import Says
from tests.support.rounds import arm_command

from paceline.core import Dataset, Parity, Workload
from paceline.engines import ENGINES
from paceline.evidence import ArmCommand, Failure, Point, RoundPlan
from paceline.evidence import clocks as evidence_clocks
from paceline.evidence.clocks import Reading, Throttled
from paceline.pods.round.answers import Answered, load_report
from paceline.pods.round.parity import Answer
from paceline.pods.round.steps import (
    ArmResult,
    Ask,
    Flush,
    Get,
    Instruction,
    Loaded,
    ReadClocks,
    SampleAgain,
    SaveLine,
    SendLoad,
    ServerEnd,
    ServerFailed,
    Start,
    StartLog,
    Stop,
    replicate,
)

CODE = Workload(dataset=Dataset(name="code", source="builtin://code", requests=6, max_tokens=96), concurrency=1)
WIDE = arm_command("wide", expected={"speculative_num_steps": 3})
PLAN = RoundPlan(
    run="run",
    round=0,
    try_=0,
    served_name="pair",
    arms=(WIDE,),
    workloads=(CODE,),
    results_dir="/models/results",
)
INFO = {
    "version": "0.5.23",
    "attention_backend": "triton",
    "speculative_num_steps": 3,
    "api_key": "sk-1",
    "internal_states": [{"avg_spec_accept_length": 2.81, "api_key": "sk-1"}],
}
REPORT = {
    **load_report(
        [
            Answered(start=0.384 * n, first=0.04, gaps=(0.0036,) * 95, whole=0.384, prompt_tokens=100, tokens=96)
            for n in range(6)
        ],
        2.3,
    ),
    "client_cpu": 0.1,
    "client_lag": 0.0002,
}


LIVED = ServerEnd(None, "INFO: 200 OK", 5.1)
STARTED = """\
[2026-11-26 22:38:04] Load weight begin. avail mem=139.13 GB
[2026-11-26 22:38:06] Load weight end. elapsed=2.30 s, type=LlamaForCausalLM
[2026-11-26 22:38:09] Capture target decode CUDA graph end. elapsed=2.28 s, mem usage=0.88 GB
[2026-11-26 22:38:10] The server is fired up and ready to roll!
"""


ANSWER = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop", "logprobs": None}]}


def drafted(*counts: int) -> dict[str, Any]:
    """An answer of SGLang of which so many verify calls accepted no draft token, one, two, …"""
    return {**ANSWER, "sglext": {"spec_tokens_details": {"spec_correct_drafts_histogram": list(counts)}}}


class Server:
    """Answers every step as a good server does; its verify calls grow with every measured workload."""

    def __init__(self, ended: ServerEnd = LIVED, gpus: Callable[[int], tuple[Reading, ...]] = lambda look: ()) -> None:
        self.verify_calls = 40.0
        self.ended = ended
        self.gpus, self.looks = gpus, 0

    def __call__(self, step: Instruction) -> Any:
        match step:
            case Start():
                return 13.2
            case StartLog():
                return STARTED
            case Get("/v1/models"):
                return json.dumps({"data": [{"id": "pair"}]})
            case Get("/server_info"):
                return json.dumps(INFO)
            case Get("/metrics"):
                return f'sglang:spec_verify_calls_total{{model_name="pair"}} {self.verify_calls}\n'
            case SendLoad(window=window):
                self.verify_calls += 0 if window else 205
                return Loaded(report=REPORT, shared_prompts=0.1)
            case ReadClocks():
                self.looks += 1
                return self.gpus(self.looks)
            case Ask():
                return ANSWER
            case SampleAgain():
                return [drafted(5, 3, 2), "HTTP 503: full", drafted(5, 4, 0, 1)]
            case Stop():
                return self.ended
        return None


def drive(
    answer: Callable[[Instruction], Any], plan: RoundPlan = PLAN, arm: ArmCommand = WIDE
) -> tuple[list[Instruction], ArmResult]:
    """Every step that was asked for, and the replicate."""
    steps, done = replicate(plan, arm), []
    try:
        step = next(steps)
        while True:
            done.append(step)
            try:
                value = answer(step)
            except ServerFailed as failed:
                step = steps.throw(failed)
            else:
                step = steps.send(value)
    except StopIteration as end:
        return done, end.value


def test_the_steps_of_an_arm() -> None:
    done, _ = drive(Server())
    assert [step for step in done if not isinstance(step, SaveLine)] == [
        ReadClocks(),
        Start(WIDE),
        StartLog(),
        Get("/v1/models"),
        Get("/metrics"),
        Get("/server_info"),
        SendLoad(WIDE, CODE, window=1),
        Flush("/flush_cache?timeout=30"),
        SendLoad(WIDE, CODE, window=2),
        Flush("/flush_cache?timeout=30"),
        Get("/metrics"),
        Get("/server_info"),
        ReadClocks(),
        SendLoad(WIDE, CODE),
        ReadClocks(),
        Get("/metrics"),
        Get("/server_info"),
        SampleAgain(WIDE, CODE),
        Stop(),
    ]


def test_what_is_noted_of_an_arm() -> None:
    _, ran = drive(Server())
    assert ran.replicate.version == "0.5.23"
    assert (ran.replicate.arm, ran.replicate.start_seconds, ran.replicate.error) == ("wide", 13.2, "")
    assert ran.replicate.resolved == {"attention_backend": "triton", "speculative_num_steps": 3}
    (point,) = ran.replicate.points
    assert (point.asked, point.completed, point.output_tokens) == (6, 6, 576)
    assert (point.accept_length, point.verify_calls, point.retractions) == (2.81, 205, 0)
    assert (point.mean_ttft, point.p95_e2e, point.client_cpu) == (0.04, 0.384, 0.1)


@pytest.mark.parametrize(
    ("seconds", "windows", "gain"),
    [
        ((1.0, 0.99), 2, 0.01),
        ((1.0, 1.3), 2, 0.0),  # slower: it was warm
        ((2.0, 1.0, 0.98), 3, 0.0204),
        ((4.0, 3.0, 2.0, 1.0), 4, 1.0),
        ((1.0, None), 2, None),  # no request was answered
        ((None, 1.0, 1.0), 2, None),
    ],
)
def test_a_server_is_warmed_up_until_requests_become_no_faster(
    seconds: tuple[float | None, ...], windows: int, gain: float | None
) -> None:
    server = Server()

    def answer(step: Instruction) -> Any:
        if not (isinstance(step, SendLoad) and step.window):
            return server(step)
        took = seconds[step.window - 1]
        whole = Answered(start=0.0, first=0.1, gaps=(), whole=took or 1.0, prompt_tokens=20, tokens=32)
        slow = replace(whole, whole=9.0)
        failed = replace(whole, error="HTTP 503")
        return Loaded(report=load_report([whole, whole, slow] if took else [failed], 1.0))

    done, ran = drive(answer)
    assert [step.window for step in done if isinstance(step, SendLoad)] == [*range(1, windows + 1), 0]
    (point,) = ran.replicate.points
    assert (point.warm_up_windows, point.warm_up_gain) == (windows, gain and pytest.approx(gain, abs=1e-3))
    (line,) = (step.line for step in done if isinstance(step, SaveLine) and "warm_up_medians" in step.line)
    assert line["warm_up_medians"] == list(seconds[:windows])


def test_acceptance_by_position_is_of_the_answers_that_tell_it() -> None:
    """20 verify calls: ten accepted a first token, three a second one, one a third one."""
    done, ran = drive(Server())
    assert [point.accepted_at for point in ran.replicate.points] == [(0.5, 0.15, 0.05)]
    (line,) = (step.line for step in done if isinstance(step, SaveLine) and "accepted_drafts" in step.line)
    assert line["accepted_drafts"] == [(5, 3, 2), "HTTP 503: full", (5, 4, 0, 1)]


@pytest.mark.parametrize("answers", [["HTTP 400: no"], [ANSWER], [drafted()], [{**ANSWER, "sglext": "none"}], []])
def test_a_server_that_tells_nothing_of_its_drafts_has_not_failed(answers: list[Any]) -> None:
    server = Server()
    _, ran = drive(lambda step: answers if isinstance(step, SampleAgain) else server(step))
    assert (ran.replicate.error, [point.accepted_at for point in ran.replicate.points]) == ("", [()])


def test_the_baseline_and_engines_that_tell_it_of_the_server_are_not_asked_again() -> None:
    base = replace(WIDE, name="baseline", candidate=False)
    done, ran = drive(Server(), replace(PLAN, arms=(base,)), base)
    assert (ran.replicate.error, len(ran.replicate.points)) == ("", 1)
    assert not any(isinstance(step, SampleAgain) for step in done)
    assert {name: bool(engine.probe("").histogram) for name, engine in ENGINES.items()} == {
        "SGLang": True,
        "SGLangJAX": False,
        "vLLM": False,
    }
    assert not ENGINES["SGLang"].probe("0.5.6").histogram


def test_how_fast_each_request_was_goes_along() -> None:
    _, ran = drive(Server())
    assert ran.speeds == {"code@1": pytest.approx((96 / 0.384,) * 6)}


def test_prompts_are_asked_after_all_that_is_measured_of_an_empty_cache() -> None:
    done, ran = drive(Server(), dataclasses.replace(PLAN, parity=Parity(samples=2)))
    after = [step for step in done if not isinstance(step, SaveLine)][-4:]
    assert after == [Flush("/flush_cache?timeout=30"), Ask(WIDE, 0), Ask(WIDE, 1), Stop()]
    assert ran.answers == (Answer(text="Hi", cut=False),) * 2
    assert drive(Server())[1].answers == "wide was not asked"


def test_a_server_that_refuses_a_prompt_is_asked_no_more_and_has_not_failed() -> None:
    server = Server()
    done, ran = drive(
        lambda step: "HTTP 400: no" if isinstance(step, Ask) else server(step),
        dataclasses.replace(PLAN, parity=Parity(samples=2)),
    )
    assert [step.prompt for step in done if isinstance(step, Ask)] == [0]
    assert (ran.answers, ran.replicate.error, len(ran.replicate.points)) == ("wide on prompt 0: HTTP 400: no", "", 1)


def test_what_the_driver_says_around_a_load_is_noted_and_kept() -> None:
    """The power cap held for 1.15 s of a load of 2.3 s."""
    server = Server(gpus=lambda look: (Reading(sm_mhz=1980 - look, celsius=60 + look, held={0x4: look * 1_150_000}),))
    done, ran = drive(server)
    assert ran.replicate.clocks == evidence_clocks.Clocks(
        sm_mhz=1977, celsius=63, throttled=(Throttled(workload="code@1", reasons=0x4, percent=50),)
    )
    (line,) = (step.line for step in done if isinstance(step, SaveLine) and "report" in step.line)
    assert [[one["sm_mhz"] for one in moment] for moment in line["gpus"]] == [[1978], [1977]]


def test_the_energy_of_a_load_is_told_per_token_it_wrote() -> None:
    """Two GPUs of 864 J between the two looks, and 576 tokens."""

    def gpus(look: int) -> tuple[Reading, ...]:
        return tuple(Reading(uuid=name, millijoules=9000 + look * 864_000) for name in ("GPU-a", "GPU-b"))

    _, ran = drive(Server(gpus=gpus), dataclasses.replace(PLAN, own_gpus=2))
    assert (ran.replicate.points[0].energy_per_token, ran.replicate.no_energy) == (3.0, "")
    _, ran = drive(Server(gpus=gpus), dataclasses.replace(PLAN, own_gpus=1))
    assert ran.replicate.points[0].energy_per_token is None
    assert "2 GPUs" in ran.replicate.no_energy


def test_what_used_the_gpu_before_the_server_spoils_its_energy() -> None:
    def gpus(look: int) -> tuple[Reading, ...]:
        return (Reading(uuid="GPU-a", millijoules=look * 1000, shared="memory" if look == 1 else ""),)

    _, ran = drive(Server(gpus=gpus), dataclasses.replace(PLAN, own_gpus=1))
    assert ran.replicate.points[0].energy_per_token is None
    assert ran.replicate.no_energy == "GPU-a was in use before the server"


def test_where_nobody_can_be_asked_nothing_is_said_of_the_gpus() -> None:
    done, ran = drive(Server())
    assert (ran.replicate.clocks, ran.replicate.no_energy) == (None, "")
    assert not any("gpus" in step.line for step in done if isinstance(step, SaveLine))


def test_secrets_do_not_reach_the_results() -> None:
    done, ran = drive(Server())
    assert "sk-1" not in str(done) + str(ran)


def failing_at(kind: type, ended: ServerEnd, failure: Failure | None = None) -> tuple[list[Instruction], ArmResult]:
    server = Server(ended)

    def answer(step: Instruction) -> Any:
        if isinstance(step, kind):
            raise ServerFailed("connection refused", failure)
        return server(step)

    return drive(answer)


def test_a_server_that_dies_is_noted_with_its_last_words() -> None:
    done, ran = failing_at(SendLoad, ServerEnd(1, "CUDA out of memory"))
    assert done[-1] == Stop()
    assert (ran.replicate.exit_code, ran.replicate.error) == (1, "CUDA out of memory")
    assert ran.replicate.start_seconds == 13.2
    assert ran.replicate.points == ()


def test_a_server_that_fails_but_lives_is_noted_with_what_was_seen() -> None:
    for failure in (None, Failure.TimedOut):
        _, ran = failing_at(Flush, LIVED, failure)
        assert (ran.replicate.exit_code, ran.replicate.error) == (None, "connection refused")
        assert ran.replicate.failure is failure


def test_a_server_that_dies_after_its_last_point_has_failed_too() -> None:
    _, ran = drive(Server(ServerEnd(0, "")))
    assert ran.replicate.exit_code == 0


def test_of_a_server_that_is_distrusted_no_point_is_left_whatever_its_last_words() -> None:
    """The second load is answered by it and by somebody's request; then it ends, and says something else."""
    server = Server(ServerEnd(1, "CUDA out of memory"))
    counted = iter([0, 0, 6, 6, 13])

    def answer(step: Instruction) -> Any:
        said = server(step)
        return f"{said}sglang:num_requests_total {next(counted)}\n" if step == Get("/metrics") else said

    _, ran = drive(answer, replace(PLAN, workloads=(CODE, replace(CODE, concurrency=2))))
    assert (ran.replicate.exit_code, ran.replicate.points) == (1, ())


def test_a_server_that_does_not_start_is_asked_nothing() -> None:
    done, ran = failing_at(Start, ServerEnd(2, "error: unrecognized arguments"))
    assert done == [ReadClocks(), Start(WIDE), Stop()]
    assert ran.replicate.start_seconds is None


def answering(**pages: Any) -> tuple[list[Instruction], ArmResult]:
    """A good server but for the pages named, by their last part."""
    server = Server()

    def answer(step: Instruction) -> Any:
        name = step.path.rpartition("/")[2] if isinstance(step, Get) else ""
        return pages[name] if name in pages else server(step)

    return drive(answer)


def test_another_model_is_not_measured(says: Says) -> None:
    done, ran = answering(models='{"data": [{"id": "other"}]}')
    says(ran.replicate.error)
    assert not any(isinstance(step, SendLoad) for step in done)


def test_another_configuration_is_not_measured(says: Says) -> None:
    done, ran = answering(server_info=json.dumps(INFO | {"speculative_num_steps": 1}))
    says(ran.replicate.error)
    assert ran.replicate.resolved["speculative_num_steps"] == 1
    assert not any(isinstance(step, SendLoad) for step in done)


def test_a_page_that_is_no_json(says: Says) -> None:
    _, ran = answering(server_info="<html>")
    says(ran.replicate.error)


def test_a_server_without_speculation_counters() -> None:
    _, ran = answering(metrics='sglang:num_queue_reqs{model_name="pair"} 0.0\n')
    point: Point = ran.replicate.points[0]
    assert (point.verify_calls, point.retractions) == (None, 0)


def test_counters_that_are_none_are_not_believed() -> None:
    _, ran = answering(metrics="sglang:spec_verify_calls_total NaN\nsglang:num_retracted_requests_total NaN\n")
    point: Point = ran.replicate.points[0]
    assert (point.verify_calls, point.retractions) == (None, None)
