"""What status keeps of a round, and what the gate reads of it again."""

import copy
import dataclasses
import json
import math
from typing import Any

import pytest
from tests.support.in_status import failed_round, measurements, point_noise
from tests.support.in_status import round_status as keep
from tests.support.messages import Says
from tests.support.rounds import BASELINE, CHAT, CODE, PLAN, WIDE, with_arms

from paceline.core import Slo, Workload
from paceline.core.record import decimal
from paceline.engines import Speculation
from paceline.evidence import Failure, RoundPlan, RoundResult, judge_points
from paceline.evidence.clocks import Clocks, Throttled
from paceline.evidence.round_status import UNSEEN

RESULT = RoundResult(
    round=0,
    try_=0,
    replicates=(BASELINE, WIDE),
    gpus=("GPU-0", "GPU-1"),
    driver="550.127.08",
    engine_version="0.5.23",
    emulated=True,
    started=1_795_245_504.6,
    finished=1_795_245_604.0,
)
KEPT = keep(PLAN, RESULT, judge_points(PLAN, RESULT), "pair-latency-0123456789-1-0-0", "gpu-0")


def test_what_an_engine_cannot_show_is_said(says: Says) -> None:
    plan = with_arms(PLAN, unseen=("retractions", "accept_length"))
    result = dataclasses.replace(RESULT, notes=("results not kept: no space left",))
    notes = keep(plan, result, judge_points(plan, result), "job", "gpu-0")["notes"]
    assert notes[2] == result.notes[0]
    says(*notes)
    assert "notes" not in KEPT


def test_the_accepted_fraction_follows_from_the_width() -> None:
    """2.81 tokens a verify call: 1.81 of the 7 proposed."""
    arms = tuple(dataclasses.replace(arm, drafts=7 if arm.candidate else None) for arm in PLAN.arms)
    points = keep(dataclasses.replace(PLAN, arms=arms), RESULT, judge_points(PLAN, RESULT), "job", "gpu-0")["points"]
    assert [point.get("acceptRate") for point in points] == [None, None, "0.258571", "0.258571"]


def test_acceptance_by_position_is_kept_where_it_was_told() -> None:
    wide = dataclasses.replace(WIDE, points=tuple(dataclasses.replace(p, accepted_at=(0.75, 0.4)) for p in WIDE.points))
    result = dataclasses.replace(RESULT, replicates=(BASELINE, wide))
    points = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")["points"]
    assert [point.get("acceptedAt") for point in points] == [None, None, ["0.75", "0.4"], ["0.75", "0.4"]]


def test_goodput_and_lengths_are_kept_where_they_were_told() -> None:
    """576 tokens at 241.2 a second: 2.388 seconds. Of six requests three met the slo, with 200 tokens."""
    told = {"good_requests": 3, "good_tokens": 200, "p50_output": 96, "p99_output": 128, "worst_decile": 0.8125}
    prompts = {"mean_input": 171.5, "p50_input": 160, "p99_input": 350}
    wide = dataclasses.replace(WIDE, points=tuple(dataclasses.replace(p, **told, **prompts) for p in WIDE.points))
    result = dataclasses.replace(RESULT, replicates=(BASELINE, wide))
    kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
    point = kept["points"][2]
    assert (point["goodRequests"], point["goodput"], point["goodThroughput"]) == (3, "1.25625", "83.75")
    assert (point["p50Output"], point["p99Output"], point["worstDecile"]) == (96, 128, "0.8125")
    client = {"clientCPU": "0.10", "clientLag": "0.0002"}
    assert kept["inputs"] == [
        {"workload": name, "mean": "171.5", "p50": 160, "p99": 350, **client} for name in ("code@1", "chat@1")
    ]
    assert "goodput" not in kept["points"][0]
    assert "inputs" not in KEPT


def test_no_good_request_is_a_goodput_of_none_and_no_slo_is_none() -> None:
    wide = dataclasses.replace(
        WIDE, points=tuple(dataclasses.replace(p, good_requests=0, good_tokens=0) for p in WIDE.points)
    )
    result = dataclasses.replace(RESULT, replicates=(BASELINE, wide))
    points = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")["points"]
    assert [point.get("goodRequests") for point in points] == [None, None, 0, 0]
    assert [point.get("goodput") for point in points] == [None, None, "0", "0"]


def test_where_requests_arrive_at_a_rate_the_gate_reads_their_speed() -> None:
    """Eight a second: both arms send out the same tokens per second, one answers each request in half the time."""
    chat = Workload(dataset=dataclasses.replace(CHAT.dataset, rate=8.0), concurrency=1)
    plan = dataclasses.replace(PLAN, workloads=(CODE, chat))
    replicates = tuple(
        dataclasses.replace(one, points=tuple(
            dataclasses.replace(point, workload=workload.name, steady_throughput=250.0, mean_e2e=e2e)
            for point, workload in zip(one.points, plan.workloads, strict=True)
        ))
        for one, e2e in ((BASELINE, 2.0), (WIDE, 1.0))
    )  # fmt: skip
    result = dataclasses.replace(RESULT, replicates=replicates)
    found = measurements([keep(plan, result, judge_points(plan, result), "job", "gpu-0")])
    assert {(one.arm, one.workload): one.output_throughput for one in found} == {
        ("baseline", "code@1"): 250,
        ("wide", "code@1"): 250,
        ("baseline", "chat@8/s"): 48,  # 576 tokens in six requests of two seconds
        ("wide", "chat@8/s"): 96,
    }


def held(plan: RoundPlan, **changes: Any) -> dict[str, Any]:
    """The round with all of its points changed."""
    replicates = tuple(
        dataclasses.replace(one, points=tuple(
            dataclasses.replace(point, workload=workload.name, **changes)
            for point, workload in zip(one.points, plan.workloads, strict=True)
        ))
        for one in (BASELINE, WIDE)
    )  # fmt: skip
    result = dataclasses.replace(RESULT, replicates=replicates)
    return keep(plan, result, judge_points(plan, result), "job", "gpu-0")


def test_how_full_the_places_were_is_kept_and_told_where_they_were_not(says: Says) -> None:
    eight = tuple(dataclasses.replace(one, concurrency=8) for one in (CODE, CHAT))
    plan = dataclasses.replace(PLAN, workloads=eight)
    assert {point["meanConcurrency"] for point in held(plan, fullness=0.97)["points"]} == {"7.76"}
    assert "notes" not in held(plan, fullness=0.9)
    entry = held(plan, fullness=0.85)
    assert [point["valid"] for point in entry["points"]] == [True] * 4
    says(*entry["notes"])


def test_a_rate_that_is_not_kept_is_saturation_and_told(says: Says) -> None:
    chat = Workload(dataset=dataclasses.replace(CHAT.dataset, rate=8.0), concurrency=1)
    plan = dataclasses.replace(PLAN, workloads=(CODE, chat))
    kept = held(plan, mean_e2e=2.0, kept_rate=7.6)
    assert [point.get("offeredRate") for point in kept["points"]] == [None, "8", None, "8"]
    assert [point.get("keptRate") for point in kept["points"]][1] == "7.6"
    assert [point.get("saturated") for point in kept["points"]] == [None] * 4
    assert "notes" not in kept

    slow = held(plan, mean_e2e=2.0, kept_rate=7.59)
    assert [point.get("saturated") for point in slow["points"]] == [None, True, None, True]
    assert [point["valid"] for point in slow["points"]] == [True] * 4
    says(*slow["notes"])


def test_a_candidate_whose_own_server_ended_is_told_from_one_that_was_no_evidence() -> None:
    """Of the baseline whatever happened to it counts: next to one that was late no other server is blamed."""
    ends = {
        "ServerCrashed": {"exit_code": -9, "error": "CUDA error: an illegal memory access"},
        "OutOfMemory": {"exit_code": 1, "error": "torch.OutOfMemoryError: CUDA out of memory."},
        "StartTimeout": {"error": "not ready after 1800 s", "failure": Failure.StartTimeout},
        "ServerArguments": {"exit_code": 2, "error": "unrecognized arguments: --fast-please"},
        "NotMeasured": {"error": "the server serves other, not pair"},
    }
    blamed = ("ServerCrashed", "OutOfMemory", "StartTimeout")
    for reason, fields in ends.items():
        for arm in (BASELINE, WIDE):
            ended = dataclasses.replace(arm, **fields)
            result = dataclasses.replace(RESULT, replicates=(ended, WIDE) if arm is BASELINE else (BASELINE, ended))
            kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
            told = {one.ended for one in measurements([kept]) if one.arm == arm.arm}
            assert told == ({reason} if arm is BASELINE or reason in blamed else {""})


def test_requests_that_were_taken_back_end_a_server_unless_as_many_are_allowed() -> None:
    wide = dataclasses.replace(WIDE, points=tuple(dataclasses.replace(p, retractions=3) for p in WIDE.points))
    result = dataclasses.replace(RESULT, replicates=(BASELINE, wide))
    for allowed, ended in ((0, "Retracted"), (2, "Retracted"), (3, "")):
        plan = dataclasses.replace(PLAN, retractions=allowed)
        kept = keep(plan, result, judge_points(plan, result), "job", "gpu-0")
        found = [one for one in measurements([kept]) if one.arm == "wide"]
        assert {(one.ended, one.valid) for one in found} == {(ended, not ended)}
        assert found[0].metrics["retractions"] == 3


def test_that_it_took_requests_back_is_worse_than_that_some_failed() -> None:
    """As the gate has it of a file (`gate/server_failures.py`): no client makes a server do that."""
    points = tuple(dataclasses.replace(p, retractions=3, errors=1) for p in WIDE.points)
    result = dataclasses.replace(RESULT, replicates=(BASELINE, dataclasses.replace(WIDE, points=points)))
    kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
    assert {one.ended for one in measurements([kept]) if one.arm == "wide"} == {"Retracted"}


@pytest.mark.parametrize("lost", [{"errors": 1}, {"completed": 0}])
def test_requests_that_failed_are_held_against_a_server_that_lived(lost: dict[str, int]) -> None:
    for arm in (BASELINE, WIDE):
        broken = dataclasses.replace(arm, points=(dataclasses.replace(arm.points[0], **lost), *arm.points[1:]))
        result = dataclasses.replace(RESULT, replicates=(broken, WIDE) if arm is BASELINE else (BASELINE, broken))
        kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
        assert {(one.arm, one.ended) for one in measurements([kept]) if one.ended} == {(arm.arm, "RequestsFailed")}
        crashed = dataclasses.replace(broken, exit_code=-9, error="CUDA error")
        result = dataclasses.replace(RESULT, replicates=(crashed, WIDE) if arm is BASELINE else (BASELINE, crashed))
        kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
        assert {one.ended for one in measurements([kept]) if one.ended} == {"ServerCrashed"}


def test_the_gate_reads_which_rates_were_not_kept() -> None:
    kept = copy.deepcopy(KEPT)
    kept["points"][0]["saturated"] = True
    assert [one.saturated for one in measurements([kept])] == [True, False, False, False]


def test_a_measurement_has_what_answers_are_compared_by_and_what_its_server_holds() -> None:
    result = dataclasses.replace(RESULT, replicates=(BASELINE, dataclasses.replace(WIDE, kv_tokens=970_000)))
    kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
    found = next(one for one in measurements([kept]) if one.arm == "wide")
    assert found.metrics["outputTokens"] == WIDE.points[0].output_tokens
    assert found.metrics["kvTokens"] == 970_000


def test_provenance_of_a_round() -> None:
    replicates = (dataclasses.replace(BASELINE, kv_tokens=880_000), WIDE)
    result = dataclasses.replace(
        RESULT, replicates=replicates, gpu_model="NVIDIA H200", datasets={"code": "0123456789ab"}, paceline="0.1.0"
    )
    images = {"image": "lmsysorg/sglang@sha256:1234", "client_image": "paceline@sha256:5678"}
    kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0", **images)
    assert (kept["gpuModel"], kept["image"]) == ("NVIDIA H200", "lmsysorg/sglang@sha256:1234")
    assert (kept["paceline"], kept["clientImage"]) == ("0.1.0", "paceline@sha256:5678")
    assert kept["datasets"] == {"code": "0123456789ab"}
    assert [one.get("kvTokens") for one in kept["replicates"]] == [880_000, None]


def test_a_throttled_round_is_believed_and_says_so(says: Says) -> None:
    held = (Throttled(workload="code@1", reasons=0x4, percent=43),)
    hot = dataclasses.replace(WIDE, clocks=Clocks(sm_mhz=1755, most_sm_mhz=1980, celsius=71, throttled=held))
    result = dataclasses.replace(RESULT, replicates=(BASELINE, hot))
    kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
    says(*kept["notes"])
    assert [one.get("clocks", {}).get("celsius") for one in kept["replicates"]] == [None, 71]
    assert [point["valid"] for point in kept["points"]] == [point["valid"] for point in KEPT["points"]]


def test_where_all_that_was_seen_of_a_round_is_kept() -> None:
    result = dataclasses.replace(RESULT, lines_sha256="ab" * 32, lines_bytes=123_456)
    kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0")
    assert kept["raw"] == {"path": "/models/results/0-0.jsonl.gz", "sha256": "ab" * 32, "bytes": 123_456}
    assert "raw" not in KEPT


def test_what_a_round_held_accelerators_for() -> None:
    """Twenty minutes by the kubelet, of which the client saw nineteen: one of them between servers."""
    result = dataclasses.replace(RESULT, started=0.0, finished=1140.0, overhead_seconds=60.0)
    kept = keep(PLAN, result, judge_points(PLAN, result), "job", "gpu-0", held_seconds=1200)
    assert (kept["heldSeconds"], kept["idleSeconds"]) == (1200, 120)


def test_there_is_a_sentence_for_whatever_may_be_unseen() -> None:
    assert set(UNSEEN) == {field.name for field in dataclasses.fields(Speculation)}


def test_a_round_in_status() -> None:
    assert KEPT | {"points": KEPT["points"][2:3], "replicates": KEPT["replicates"][1:]} == {
        "fingerprint": "",
        "round": 0,
        "try": 0,
        "job": "pair-latency-0123456789-1-0-0",
        "node": "gpu-0",
        "startTime": "2026-11-21T07:18:24Z",
        "completionTime": "2026-11-21T07:20:04Z",
        "heldSeconds": 99,
        "idleSeconds": 0,
        "gpus": ["GPU-0", "GPU-1"],
        "driver": "550.127.08",
        "engineVersion": "0.5.23",
        "emulated": True,
        "replicates": [
            {
                "arm": "wide",
                "startSeconds": "15",
                "resolved": {"attention_backend": "triton", "speculative_num_steps": "3"},
                "restSHA256": "",
            }
        ],
        "points": [
            {
                "arm": "wide",
                "workload": "code@1",
                "valid": True,
                "why": "",
                "asked": 6,
                "completed": 6,
                "outputTokens": 576,
                "errors": 0,
                "outputThroughput": "241.2",
                "steadyThroughput": "379.5",
                "meanTTFT": "0.04",
                "p95TTFT": "0.05",
                "acceptLength": "2.81",
                "verifyCalls": 205,
                "retractions": 0,
                "meanConcurrency": "1",
            }
        ],
        "error": "",
    }


def test_status_has_no_floats() -> None:
    def floats(value: Any) -> bool:
        if isinstance(value, dict | list):
            return any(map(floats, value.values() if isinstance(value, dict) else value))
        return isinstance(value, float)

    assert not floats(KEPT)


def test_the_gate_reads_what_status_kept() -> None:
    read = {(one.arm, one.workload): one for one in measurements([json.loads(json.dumps(KEPT))])}
    wide = read["wide", "code@1"]
    assert (wide.round, wide.output_throughput, wide.valid, wide.nothing_accepted) == (0, 379.5, True, False)
    assert wide.metrics["p95TTFT"] == 0.05
    assert read["baseline", "chat@1"].output_throughput == 249.7


def edited(**changes: Any) -> dict[str, Any]:
    """The round with the point of `wide` on code@1 changed."""
    entry = copy.deepcopy(KEPT)
    entry["points"][2].update(changes)
    return entry


@pytest.mark.parametrize("garbage", ["", "fast", "nan", "inf", "-1", "0", None, True, [1]])
def test_a_throughput_that_is_garbage_is_invalid(garbage: Any) -> None:
    assert not measurements([edited(steadyThroughput=garbage)])[2].valid
    assert not measurements([edited(p95TTFT="nan")])[2].valid


def test_invalid_stays_invalid() -> None:
    assert not measurements([edited(valid=False, why="2 requests failed")])[2].valid


def test_nothing_accepted_is_of_candidates() -> None:
    assert measurements([edited(acceptLength="1.0", verifyCalls=400)])[2].nothing_accepted
    entry = copy.deepcopy(KEPT)
    entry["points"][0] |= {"acceptLength": "1.0", "verifyCalls": 400}
    assert not measurements([entry])[0].nothing_accepted


def test_of_two_tries_the_last_one_with_a_result_counts() -> None:
    again = edited(steadyThroughput="400") | {"try": 1}
    lost = failed_round(round=0, try_=2, job="j", node="gpu-0", error="the message is empty", reason=Failure.Unreadable)
    read = measurements([again, lost, KEPT])
    assert [one.output_throughput for one in read if (one.arm, one.workload) == ("wide", "code@1")] == [400.0]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (249.71234, "249.712"),
        (0.0039, "0.0039"),
        (12.0, "12"),
        (1234567.8, "1234570"),
        (0.0000123456789, "0.0000123457"),
        (0.0, "0"),
    ],
)
def test_decimal(value: float, text: str) -> None:
    assert decimal(value) == text


def rounds_of(**throughputs: list[float]) -> list[dict[str, Any]]:
    return [
        {
            "round": number,
            "try": 0,
            "points": [
                {"arm": arm, "workload": "code@1", "valid": True, "steadyThroughput": str(values[number])}
                for arm, values in throughputs.items()
            ],
        }
        for number in range(len(next(iter(throughputs.values()))))
    ]


def test_the_noise_of_a_point_is_pooled_over_arms() -> None:
    """Arms differ, rounds of an arm should not: ±1 % around two very different means is 1 %."""
    up, down = math.exp(0.01), math.exp(-0.01)
    noise = point_noise(rounds_of(baseline=[100 * up, 100 * down], wide=[152 * down, 152 * up]))
    assert noise == pytest.approx(0.01 * math.sqrt(2), rel=1e-3)


def test_one_round_has_no_noise() -> None:
    assert point_noise([KEPT]) is None
    assert point_noise([]) is None


def test_a_number_that_only_one_engine_cannot_show_is_told_of_its_arms(says: Says) -> None:
    baseline, arm = PLAN.arms
    plan = dataclasses.replace(PLAN, arms=(baseline, dataclasses.replace(arm, unseen=("retractions",))))
    says(*keep(plan, RESULT, judge_points(plan, RESULT), "job", "gpu-0")["notes"])


def test_a_plan_of_two_engines_survives_its_environment_variable() -> None:
    baseline, arm = PLAN.arms
    other = dataclasses.replace(arm, name="other", engine="vLLM", port=8000, held=(), plain=True, compared=())
    asked = dataclasses.replace(PLAN, arms=(baseline, arm, other))
    assert RoundPlan.from_json(asked.to_json()) == asked
    assert asked.to_json().count('"port"') == 2, "only where it is another than the first arm's"


def test_a_plan_survives_its_environment_variable() -> None:
    code = Workload(dataset=dataclasses.replace(CODE.dataset, slo=Slo(ttft=0.5, itl=0.05)), concurrency=1)
    asked = dataclasses.replace(PLAN, workloads=(code, CHAT))
    assert RoundPlan.from_json(asked.to_json()) == asked
    assert "slo" not in PLAN.to_json()
    assert RoundPlan.from_json(PLAN.to_json()) == PLAN
    assert PLAN.watched(PLAN.arms[0]) == ("attention_backend", "speculative_algorithm", "speculative_num_steps")
