"""The message of a round: what goes in comes out, in 4096 bytes, and damage is told."""

import base64
import dataclasses
import json
import math
import random
import zlib
from typing import get_args

import pytest
from annotated_types import Le

from paceline.api.gate import MOST_COMPARED, LimitSpec, ParitySpec
from paceline.engines import ENGINES
from paceline.evidence import AnswerError, Failure, Outputs, Point, Replicate, RoundResult, decode, encode
from paceline.evidence.arguments import Difference
from paceline.evidence.clocks import Clocks, Throttled
from paceline.evidence.message import (
    EVERY,
    LONGEST,
    MORE,
    NO_ROOM,
    NO_ROOM_AT,
    NO_ROOM_CLOCKS,
    NO_ROOM_GOOD,
    NO_ROOM_MORE,
    NUMBERS,
    PREFIX,
)
from paceline.evidence.round_status import METRICS

RESOLVED = dict.fromkeys(ENGINES["SGLang"].compared, "triton") | {
    "served_model_name": "qwen3-coder-next",
    "speculative_algorithm": "EAGLE3",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 4,
}


def realistic_point(workload: str, rng: random.Random) -> Point:
    """Every number with all its noise, as a client would measure it."""
    tokens = rng.randint(20_000, 40_000)
    duration = rng.uniform(10, 200)
    return Point(
        workload=workload,
        asked=96,
        completed=96,
        errors=0,
        output_tokens=tokens,
        output_throughput=tokens / duration,
        steady_throughput=tokens / duration * rng.uniform(1, 1.1),
        fullness=rng.uniform(0.9, 1),
        p99_itl=rng.uniform(0.01, 0.1),
        mean_ttft=rng.uniform(0.02, 0.2),
        p95_ttft=rng.uniform(0.05, 0.5),
        mean_tpot=rng.uniform(0.003, 0.03),
        p95_tpot=rng.uniform(0.003, 0.03),
        mean_e2e=rng.uniform(1, 10),
        p95_e2e=rng.uniform(1, 20),
        p50_ttft=rng.uniform(0.02, 0.2),
        p90_ttft=rng.uniform(0.02, 0.2),
        p99_ttft=rng.uniform(0.05, 0.5),
        p50_tpot=rng.uniform(0.003, 0.03),
        p99_tpot=rng.uniform(0.003, 0.03),
        accept_length=rng.uniform(1, 4),
        verify_calls=rng.randint(5_000, 20_000),
        retractions=0,
    )


def result_of(arms: int, workloads: int, seed: int = 1) -> RoundResult:
    rng = random.Random(seed)
    replicates = tuple(
        Replicate(
            arm=f"candidate-{arm}" if arm else "baseline",
            start_seconds=rng.uniform(60, 300),
            resolved=RESOLVED | {"speculative_num_draft_tokens": arm or None},
            rest_sha256="0f1e2d3c",
            differs=(),
            kv_tokens=rng.randint(500_000, 1_000_000),
            points=tuple(realistic_point(f"terminal-{number}@32", rng) for number in range(workloads)),
        )
        for arm in range(arms)
    )
    return RoundResult(
        round=7,
        try_=1,
        replicates=replicates,
        gpus=tuple(f"GPU-{rng.getrandbits(128):032x}" for _ in range(8)),
        gpu_model="NVIDIA H200",
        driver="550.127.08",
        datasets={f"terminal-{number}": f"{rng.getrandbits(48):012x}" for number in range(workloads)},
        engine_version="0.5.23",
        paceline="0.1.0",
        emulated=False,
        started=1_795_245_504.25,
        finished=1_795_249_004.5,
        overhead_seconds=41.7,
        lines_sha256=f"{rng.getrandbits(256):064x}",
        lines_bytes=rng.randint(1_000_000, 9_000_000),
    )


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (3, 16), (12, 4), (24, 2), (48, 1)])
def test_48_points_fit_the_message_however_they_are_cut(arms: int, workloads: int) -> None:
    message = encode(result_of(arms, workloads))
    assert message.isascii()
    assert len(message) <= LONGEST


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (16, 3), (48, 1)])
def test_so_do_those_of_structured_output(arms: int, workloads: int) -> None:
    result, rng = result_of(arms, workloads), random.Random(7)
    replicates = tuple(
        dataclasses.replace(
            one, points=tuple(dataclasses.replace(point, malformed=rng.choice((0, 0, 1, 4))) for point in one.points)
        )
        for one in result.replicates
    )
    back = decode(encode(dataclasses.replace(result, replicates=replicates)))
    assert [[p.malformed for p in one.points] for one in back.replicates] == [
        [p.malformed for p in one.points] for one in replicates
    ]


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (16, 3), (48, 1)])
def test_where_all_candidates_differ_it_is_told_of_each_however_little_room_there_is(arms: int, workloads: int) -> None:
    result, rng = result_of(arms, workloads), random.Random(5)
    unlike = [
        dataclasses.replace(
            one,
            rest_sha256=f"{rng.getrandbits(32):08x}",
            differs=tuple(Difference(f"argument_{n}", f"{rng.random()}" * 4, "None") for n in range(8)),
        )
        for one in result.replicates[1:]
    ]
    message = encode(dataclasses.replace(result, replicates=(result.replicates[0], *unlike)))
    assert len(message) <= LONGEST
    back = decode(message).replicates
    assert back[0].differs == ()
    assert all(one.differs and one.differs[0].name == "argument_0" for one in back[1:])


def test_a_client_of_an_older_release_compares_nothing() -> None:
    result = result_of(2, 1)
    without = tuple(dataclasses.replace(one, differs=None) for one in result.replicates)
    assert [one.differs for one in decode(encode(dataclasses.replace(result, replicates=without))).replicates] == [
        None,
        None,
    ]


def compared(result: RoundResult, samples: int, seed: int = 3) -> RoundResult:
    """Every candidate left the baseline at about half of the prompts, each at others and by another gap."""
    rng = random.Random(seed)
    candidate = [
        Outputs(
            samples=samples,
            near_ties=rng.randint(0, samples // 4),
            diverged=tuple(n for n in range(samples) if rng.random() < 0.5),
            first=rng.randint(0, 4096),
            gap=round(rng.uniform(0, 20), 2),
        )
        for _ in result.replicates[1:]
    ]
    baseline = Outputs(digests=tuple(f"{rng.getrandbits(16):04x}" for _ in range(samples)))
    pairs = zip(result.replicates, (baseline, *candidate), strict=True)
    return dataclasses.replace(result, replicates=tuple(dataclasses.replace(one, outputs=o) for one, o in pairs))


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (3, 16), (12, 4), (MOST_COMPARED, 48 // MOST_COMPARED)])
def test_what_arms_answered_fits_beside_48_points(arms: int, workloads: int) -> None:
    (most,) = (one.le for one in ParitySpec.model_fields["samples"].metadata if isinstance(one, Le))
    result = compared(result_of(arms, workloads), int(str(most)))
    message = encode(result)
    assert len(message) <= LONGEST
    assert [one.outputs for one in decode(message).replicates] == [one.outputs for one in result.replicates]


def test_why_nothing_was_compared_is_told_and_nothing_is_said_of_what_was_not_asked() -> None:
    unknown = Outputs(unknown="baseline on prompt 0: HTTP 400: no logprobs here")
    result = result_of(2, 1)
    told = dataclasses.replace(result.replicates[1], outputs=unknown)
    both = dataclasses.replace(result, replicates=(result.replicates[0], told))
    assert [one.outputs for one in decode(encode(both)).replicates] == [None, unknown]
    assert [one.outputs for one in decode(encode(result)).replicates] == [None, None]


def test_a_point_has_at_most_18_numbers_of_which_17_at_a_time() -> None:
    assert len(NUMBERS) <= 18


def test_what_a_limit_may_name_is_always_there() -> None:
    """The KV capacity with its replicate, whatever there is room for."""
    metrics = {*get_args(LimitSpec.model_fields["metric"].annotation)} - {"kvTokens"}
    assert {METRICS[metric] for metric in metrics} <= set(NUMBERS)
    assert metrics <= set(METRICS)
    full = result_of(16, 3)
    assert [one.kv_tokens for one in decode(encode(full)).replicates] == [one.kv_tokens for one in full.replicates]
    assert all(one.kv_tokens for one in full.replicates)


def test_medians_and_99th_percentiles_go_along_where_there_is_room() -> None:
    result = result_of(2, 16)
    (point, *_), (before, *_) = decode(encode(result)).replicates[1].points, result.replicates[1].points
    assert (point.p50_ttft, point.p99_tpot) == pytest.approx((before.p50_ttft, before.p99_tpot), rel=5e-3)
    assert point.p90_ttft == pytest.approx(before.p90_ttft, rel=5e-3)
    assert point.output_throughput == pytest.approx(before.output_throughput, rel=1e-4)
    assert decode(encode(result)).notes == ()


def test_and_where_there_is_none_the_round_says_so() -> None:
    read = decode(encode(result_of(2, 24)))
    (point, *_) = read.replicates[1].points
    assert (point.p50_ttft, point.p99_ttft, point.p50_tpot, point.p99_tpot) == (None, None, None, None)
    assert point.output_throughput is None
    assert None not in (point.mean_e2e, point.p99_itl, point.steady_throughput, point.fullness)
    assert [note.partition(":")[0] for note in read.notes] == [
        "the round's message had no room for throughput over the whole time, medians, 90th and 99th percentiles "
        "and draft tokens per step"
    ]


def with_positions(result: RoundResult, seed: int = 1) -> RoundResult:
    """As vLLM tells it of eight draft tokens: none at the baseline."""
    rng = random.Random(seed)
    replicates = [
        dataclasses.replace(
            one,
            points=tuple(
                dataclasses.replace(point, accepted_at=tuple(sorted((rng.random() for _ in range(8)), reverse=True)))
                for point in one.points
            ),
        )
        for one in result.replicates[1:]
    ]
    return dataclasses.replace(result, replicates=(result.replicates[0], *replicates))


def test_acceptance_by_position_goes_along_where_there_is_room() -> None:
    result = with_positions(result_of(2, 4))
    read = decode(encode(result))
    assert read.notes == ()
    for before, after in zip(result.replicates[1].points, read.replicates[1].points, strict=True):
        assert after.accepted_at == pytest.approx(before.accepted_at, rel=1e-3)
    assert {point.accepted_at for point in read.replicates[0].points} == {()}


def test_positions_are_the_first_to_go_and_their_absence_is_told() -> None:
    """Eight of them are half as many numbers again: what decides nothing and is least asked for."""
    read = decode(encode(with_positions(result_of(2, 20))))
    assert read.notes == (NO_ROOM_AT,)
    (point, *_) = read.replicates[1].points
    assert point.accepted_at == ()
    assert point.p50_ttft is not None


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (3, 16), (12, 4), (24, 2), (48, 1)])
def test_48_points_with_positions_fit_however_they_are_cut(arms: int, workloads: int) -> None:
    message = encode(with_positions(result_of(arms, workloads)))
    assert len(message) <= LONGEST
    assert {NO_ROOM, NO_ROOM_AT} <= set(decode(message).notes)


def with_requests(result: RoundResult, seed: int = 1) -> RoundResult:
    """What is told of requests one by one; the prompts of a workload are the same on all arms."""
    rng = random.Random(seed)
    inputs = [(rng.uniform(100, 900), rng.randint(100, 900), rng.randint(900, 9000)) for _ in range(48)]

    def told(point: Point, place: int, candidate: bool) -> Point:
        mean, p50, p99 = inputs[place]
        ratios = sorted(rng.uniform(0.5, 2) for _ in range(3))
        more = {"slower_prompts": rng.random(), "worst_decile": ratios[0], "median_prompt": ratios[1]}
        return dataclasses.replace(
            point,
            good_requests=rng.randint(0, 96),
            good_tokens=rng.randint(0, 20_000),
            mean_input=mean,
            p50_input=p50,
            p99_input=p99,
            p50_output=rng.randint(100, 512),
            p99_output=512,
            **(more | {"best_decile": ratios[2]} if candidate else {}),
        )

    replicates = [
        dataclasses.replace(one, points=tuple(told(point, n, place > 0) for n, point in enumerate(one.points)))
        for place, one in enumerate(result.replicates)
    ]
    return dataclasses.replace(result, replicates=tuple(replicates))


@pytest.mark.parametrize(("arms", "workloads"), [(2, 1), (3, 4), (2, 8)])
def test_what_is_told_of_requests_one_by_one_goes_along_where_there_is_room(arms: int, workloads: int) -> None:
    result = with_requests(with_positions(result_of(arms, workloads)))
    read = decode(encode(result))
    assert read.notes == ()
    for before, after in zip(result.replicates[1].points, read.replicates[1].points, strict=True):
        assert [getattr(after, name) for name in MORE] == pytest.approx([getattr(before, name) for name in MORE], 5e-3)
        assert after.goodput == pytest.approx(before.goodput, rel=1e-3)
    assert {point.worst_decile for point in read.replicates[0].points} == {None}


def test_goodput_was_asked_for_and_stays_longer_than_what_was_not() -> None:
    """Of 32 points: lengths and speed-ups by prompt go before medians do, goodput only after them."""
    read = decode(encode(with_requests(result_of(2, 16))))
    (point, *_) = read.replicates[1].points
    assert (point.p50_input, point.worst_decile) == (None, None)
    assert None not in (point.good_requests, point.good_tokens, point.p50_ttft, point.goodput)
    assert read.notes == (NO_ROOM_MORE,)


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (3, 16), (12, 4), (24, 2), (48, 1)])
def test_48_points_with_all_of_it_fit_however_they_are_cut(arms: int, workloads: int) -> None:
    message = encode(with_clocks(with_positions(with_requests(result_of(arms, workloads)))))
    assert len(message) <= LONGEST
    read = decode(message)
    assert {NO_ROOM, NO_ROOM_AT, NO_ROOM_MORE} <= set(read.notes)
    kept = read.replicates[1].points[0].good_requests is not None
    assert kept == (NO_ROOM_GOOD not in read.notes)


def test_a_release_that_knows_nothing_of_it_reads_the_rest() -> None:
    """Its numbers stand where they stood: by place, without the new ones, which have names."""
    assert not {*MORE} & {*EVERY}
    packed = encode(with_requests(result_of(2, 4))).removeprefix(PREFIX)
    raw = json.loads(zlib.decompress(base64.b85decode(packed)))
    raw["more"] |= {"of_a_later_release": [1.0] * 8}
    later = PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode()
    assert decode(later) == decode(encode(with_requests(result_of(2, 4))))
    del raw["more"]
    older = PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode()
    assert decode(older) == decode(encode(result_of(2, 4)))


def with_clocks(result: RoundResult, seed: int = 1) -> RoundResult:
    """Every load of every arm was throttled, each for another share of its time."""
    rng = random.Random(seed)
    replicates = [
        dataclasses.replace(
            one,
            clocks=Clocks(
                sm_mhz=rng.randint(1000, 1980),
                most_sm_mhz=1980,
                limit_watts=700,
                celsius=rng.randint(50, 90),
                throttled=tuple(
                    Throttled(workload=point.workload, reasons=rng.choice((0x4, 0x44)), percent=rng.randint(1, 100))
                    for point in one.points
                ),
            ),
        )
        for one in result.replicates
    ]
    return dataclasses.replace(result, replicates=tuple(replicates))


@pytest.mark.parametrize(("arms", "workloads"), [(2, 1), (3, 4), (2, 16)])
def test_clocks_go_along_where_there_is_room(arms: int, workloads: int) -> None:
    result = with_clocks(result_of(arms, workloads))
    read = decode(encode(result))
    assert [one.clocks for one in read.replicates] == [one.clocks for one in result.replicates]
    assert NO_ROOM_CLOCKS not in read.notes


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (3, 16), (12, 4), (24, 2), (48, 1)])
def test_48_points_with_clocks_fit_however_they_are_cut(arms: int, workloads: int) -> None:
    """They explain; what is judged goes first. That they stay behind is told."""
    result = with_clocks(with_positions(result_of(arms, workloads)))
    message = encode(result)
    assert len(message) <= LONGEST
    read = decode(message)
    assert (NO_ROOM_CLOCKS in read.notes) == ({one.clocks for one in read.replicates} == {None})
    assert (NO_ROOM_CLOCKS in read.notes) == (arms == 48)


def test_a_message_of_a_release_without_positions_and_without_its_own_name_is_read() -> None:
    packed = encode(result_of(2, 4)).removeprefix(PREFIX)
    raw = json.loads(zlib.decompress(base64.b85decode(packed)))
    del raw["at"], raw["paceline"], raw["clocks"]
    older = PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode()
    assert decode(older) == dataclasses.replace(decode(encode(result_of(2, 4))), paceline="")


def test_what_goes_in_comes_out_to_the_digits_that_matter() -> None:
    result = result_of(3, 4)
    again = decode(encode(result))
    assert [r.arm for r in again.replicates] == ["baseline", "candidate-1", "candidate-2"]
    assert (again.gpus, again.paceline) == (result.gpus, "0.1.0")
    assert again.replicates[2].resolved == result.replicates[2].resolved
    for before, after in zip(result.replicates, again.replicates, strict=True):
        for one, other in zip(before.points, after.points, strict=True):
            assert other.steady_throughput == pytest.approx(one.steady_throughput, rel=1e-4)
            assert other.mean_tpot == pytest.approx(one.mean_tpot, rel=1e-3)
            assert other.p95_tpot == pytest.approx(one.p95_tpot, rel=5e-3)
            assert other.output_tokens == one.output_tokens
    assert decode(encode(again)) == again


def test_an_arm_that_did_not_start_keeps_its_last_words() -> None:
    died = Replicate(arm="wide", exit_code=2, error="error: unrecognized arguments: --bogus")
    result = dataclasses.replace(result_of(1, 2), replicates=(died,))
    assert decode(encode(result)).replicates == (died,)


def test_48_arms_that_failed_each_in_its_own_words_still_fit() -> None:
    rng = random.Random(2)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz ", k=300)) for _ in range(48)]
    result = dataclasses.replace(
        result_of(1, 1), replicates=tuple(Replicate(arm=f"arm-{n}", exit_code=1, error=w) for n, w in enumerate(words))
    )
    assert [one.error for one in decode(encode(result)).replicates] == [w[:60] for w in words]


def test_what_is_not_finite_becomes_absent() -> None:
    point = Point(workload="code@1", asked=6, completed=6, errors=0, output_throughput=math.nan, mean_ttft=math.inf)
    result = dataclasses.replace(result_of(1, 1), replicates=(Replicate(arm="baseline", points=(point,)),))
    read = decode(encode(result)).replicates[0].points[0]
    assert (read.output_throughput, read.mean_ttft) == (None, None)


@pytest.mark.parametrize("name", ["engine_version", "gpu_model", "driver", "paceline", "lines_sha256"])
def test_a_word_is_cut_where_status_takes_no_longer_one(name: str) -> None:
    """A server may call its version what it likes."""
    sent = dataclasses.replace(result_of(2, 2), **{name: "9" * 5000})
    assert getattr(decode(encode(sent)), name) == "9" * 500


@pytest.mark.parametrize("times", [(1e300, 1e300), (-1.0, 100.0), (0.0, 1e15)])
def test_a_round_of_no_time_that_there_is_has_no_result(times: tuple[float, float]) -> None:
    sent = dataclasses.replace(result_of(2, 2), started=times[0], finished=times[1])
    with pytest.raises(AnswerError, match="it began at"):
        decode(encode(sent))


def test_a_result_that_cannot_fit_is_refused() -> None:
    with pytest.raises(AnswerError, match="400 points takes"):
        encode(result_of(20, 20))


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda text: "", "empty"),
        (lambda text: "Traceback: no such file", "does not begin with paceline1:"),
        (lambda text: text[50:], "does not begin with paceline1:"),
        (lambda text: text[: len(text) // 2], "cut off|damaged"),
        (lambda text: PREFIX + "not base85: ~~~ \\", "damaged"),
        (lambda text: text[:60] + "zzzz" + text[64:], "damaged|cut off|no result"),
    ],
)
def test_damage_is_told(damage, why: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(AnswerError, match=why):
        decode(damage(encode(result_of(2, 4))))


@pytest.mark.parametrize("payload", ["[]", "{}", "null", '{"points": [], "arms": []}', "{", '"text"'])
def test_a_well_packed_message_that_is_no_result_is_told(payload: str) -> None:
    message = PREFIX + base64.b85encode(zlib.compress(payload.encode())).decode()
    with pytest.raises(AnswerError, match="no result of this version"):
        decode(message)


def test_a_client_from_before_the_latest_metric_is_read() -> None:
    """Its columns are the first ones: what came later stands last."""
    packed = encode(result_of(2, 4)).removeprefix(PREFIX)
    raw = json.loads(zlib.decompress(base64.b85decode(packed)))
    raw["points"].pop()
    older = decode(PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode())
    (point, *_), (now, *_) = older.replicates[1].points, decode(encode(result_of(2, 4))).replicates[1].points
    assert point == dataclasses.replace(now, p90_ttft=None)
    assert now.p90_ttft is not None


def test_a_failure_that_the_client_saw_is_a_code_beside_its_words() -> None:
    late = Replicate(arm="wide", error="it took too long", failure=Failure.StartTimeout)
    hung = Replicate(arm="deep", error="code@1: no end in sight", failure=Failure.TimedOut)
    result = dataclasses.replace(result_of(1, 2), replicates=(late, hung))
    assert decode(encode(result)).replicates == (late, hung)


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (12, 4), (48, 1)])
def test_codes_fit_beside_48_points(arms: int, workloads: int) -> None:
    rng = random.Random(4)
    codes = (Failure.StartTimeout, Failure.TimedOut, None)
    result = result_of(arms, workloads)
    failed = tuple(
        dataclasses.replace(one, error="not the words that matter", failure=rng.choice(codes))
        for one in result.replicates
    )
    message = encode(dataclasses.replace(result, replicates=failed))
    assert len(message) <= LONGEST
    assert [one.failure for one in decode(message).replicates] == [one.failure for one in failed]


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ("not ready after 1800 s", Failure.StartTimeout),
        ("code@1: timed out after 1800 s", Failure.TimedOut),
        ("the server serves other, not pair", None),
    ],
)
def test_a_client_of_the_former_release_had_only_words(error: str, failure: Failure | None) -> None:
    """Its round may end after the operator's upgrade."""
    result = dataclasses.replace(result_of(1, 1), replicates=(Replicate(arm="wide", error=error),))
    raw = json.loads(zlib.decompress(base64.b85decode(encode(result).removeprefix(PREFIX))))
    del raw["failures"]
    former = PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode()
    assert [one.failure for one in decode(former).replicates] == [failure]


def test_a_code_of_a_later_release_is_none() -> None:
    result = dataclasses.replace(result_of(1, 1), replicates=(Replicate(arm="wide", error="it burnt"),))
    raw = json.loads(zlib.decompress(base64.b85decode(encode(result).removeprefix(PREFIX))))
    raw["failures"] = ["OnFire"]
    later = PREFIX + base64.b85encode(zlib.compress(json.dumps(raw).encode())).decode()
    assert [one.failure for one in decode(later).replicates] == [None]


def test_a_round_whose_servers_all_failed_has_no_point() -> None:
    result = result_of(2, 1)
    none = tuple(dataclasses.replace(one, points=(), error="it exited") for one in result.replicates)
    assert [one.points for one in decode(encode(dataclasses.replace(result, replicates=none))).replicates] == [(), ()]
