"""The message of a round: what goes in comes out, in 4096 bytes, and damage is told."""

import dataclasses
import math
import random
from typing import get_args, get_type_hints

import pytest
from annotated_types import Le
from tests.unit.evidence.results import CUTS, compared, packed, result_of

from paceline.api.gate import MOST_COMPARED
from paceline.core import Limit, Parity
from paceline.evidence import AnswerError, Failure, Outputs, Point, Replicate, decode, encode
from paceline.evidence.arguments import Difference
from paceline.evidence.message import LONGEST, NUMBERS, PREFIX
from paceline.evidence.round_status import METRICS


@pytest.mark.parametrize(("arms", "workloads"), CUTS)
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


@pytest.mark.parametrize(("arms", "workloads"), [(2, 24), (3, 16), (12, 4), (MOST_COMPARED, 48 // MOST_COMPARED)])
def test_what_arms_answered_fits_beside_48_points(arms: int, workloads: int) -> None:
    annotation = get_type_hints(Parity, include_extras=True)["samples"]
    (most,) = (one.le for one in annotation.__metadata__[0].metadata if isinstance(one, Le))
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
    metrics = {*get_args(get_type_hints(Limit)["metric"])} - {"kvTokens"}
    assert {METRICS[metric] for metric in metrics} <= set(NUMBERS)
    assert metrics <= set(METRICS)
    full = result_of(16, 3)
    assert [one.kv_tokens for one in decode(encode(full)).replicates] == [one.kv_tokens for one in full.replicates]
    assert all(one.kv_tokens for one in full.replicates)


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
    with pytest.raises(AnswerError, match="no result of this version"):
        decode(packed(payload))


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


def test_a_round_whose_servers_all_failed_has_no_point() -> None:
    result = result_of(2, 1)
    none = tuple(dataclasses.replace(one, points=(), error="it exited") for one in result.replicates)
    assert [one.points for one in decode(encode(dataclasses.replace(result, replicates=none))).replicates] == [(), ()]
