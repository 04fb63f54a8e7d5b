"""The result of a round in its client's log: what goes in comes out, and damage is told."""

import dataclasses
import math
from typing import get_args, get_type_hints

import pytest
from tests.unit.evidence.results import compared, result_of, with_clocks, with_positions, with_requests

from paceline.core import Limit
from paceline.evidence import AnswerError, Failure, Outputs, Point, Replicate, decode, encode
from paceline.evidence.arguments import Difference
from paceline.evidence.result_log import NUMBERS, PREFIX
from paceline.evidence.round_status import METRICS

WHOLE = decode(encode(with_clocks(with_positions(with_requests(compared(result_of(3, 16), 20))))))
"""Its numbers have as many digits as are kept."""


def test_what_goes_in_comes_out_whatever_else_is_in_the_log() -> None:
    so_far = dataclasses.replace(WHOLE, replicates=WHOLE.replicates[:1])
    log = f"baseline: ready after 2 s\n{encode(so_far)}\nwide: starting\n{encode(WHOLE)}\nand an end\n"
    assert decode(log) == WHOLE
    assert encode(WHOLE).isascii()


def test_what_an_arm_lacks_is_as_absent_as_before() -> None:
    unlike = Difference("attention_backend", "triton", "None")
    told = (
        Replicate(arm="wide", exit_code=2, error="error: unrecognized arguments: --bogus"),
        Replicate(arm="late", error="it took too long", failure=Failure.StartTimeout),
        Replicate(arm="deep", differs=(unlike,), outputs=Outputs(unknown="baseline on prompt 0: HTTP 400")),
    )
    result = dataclasses.replace(WHOLE, replicates=told)
    assert decode(encode(result)).replicates == told


def test_of_a_pod_that_failed_half_way_what_had_ended_is_there() -> None:
    told = [dataclasses.replace(WHOLE, replicates=WHOLE.replicates[:arms]) for arms in (0, 1, 2)]
    assert decode("\n".join(map(encode, told))) == told[-1]


def test_what_a_limit_may_name_is_always_there() -> None:
    metrics = {*get_args(get_type_hints(Limit)["metric"])} - {"kvTokens"}
    assert {METRICS[metric] for metric in metrics} <= set(NUMBERS)
    assert metrics <= set(METRICS)


@pytest.mark.parametrize("number", [math.nan, math.inf, -5.0, 1e300])
def test_an_impossible_number_becomes_absent(number: float) -> None:
    point = Point(workload="code@1", asked=6, completed=6, errors=0, output_throughput=number, mean_ttft=0.2)
    result = dataclasses.replace(WHOLE, replicates=(Replicate(arm="baseline", points=(point,)),))
    read = decode(encode(result)).replicates[0].points[0]
    assert (read.output_throughput, read.mean_ttft) == (None, 0.2)


@pytest.mark.parametrize("name", ["engine_version", "gpu_model", "driver", "paceline", "lines_sha256"])
def test_a_word_is_cut_where_status_takes_no_longer_one(name: str) -> None:
    """A server may call its version what it likes."""
    sent = dataclasses.replace(WHOLE, **{name: "9" * 5000})
    assert getattr(decode(encode(sent)), name) == "9" * 500


@pytest.mark.parametrize("times", [(1e300, 1e300), (-1.0, 100.0), (0.0, 1e15)])
def test_a_round_of_no_time_that_there_is_has_no_result(times: tuple[float, float]) -> None:
    with pytest.raises(AnswerError, match="it began at"):
        decode(encode(dataclasses.replace(WHOLE, started=times[0], finished=times[1])))


LINE = encode(result_of(2, 4))


@pytest.mark.parametrize(
    "log", ["", "Traceback: no such file", LINE[: len(LINE) // 2], LINE[50:], LINE.replace("terminal-1", "terminal-2")]
)
def test_a_line_that_is_not_whole_is_none(log: str) -> None:
    with pytest.raises(AnswerError, match="the client's log has no result"):
        decode(log)


def test_a_line_of_another_version_is_told() -> None:
    from paceline.evidence.result_log import _digest

    text = '{"replicates":[{"arm":1}]}'
    with pytest.raises(AnswerError, match="no result of this version"):
        decode(f"{PREFIX}{_digest(text)} {text}")
