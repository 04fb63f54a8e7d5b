"""The message of a round that a client of another release has written."""

import dataclasses
import json

import pytest
from tests.unit.evidence.results import packed, result_of, unpacked, with_requests

from paceline.evidence import Failure, Replicate, decode, encode
from paceline.evidence.message import EVERY, MORE


def test_a_client_of_an_older_release_compares_nothing() -> None:
    result = result_of(2, 1)
    without = tuple(dataclasses.replace(one, differs=None) for one in result.replicates)
    assert [one.differs for one in decode(encode(dataclasses.replace(result, replicates=without))).replicates] == [
        None,
        None,
    ]


def test_a_message_of_a_release_without_positions_and_without_its_own_name_is_read() -> None:
    raw = unpacked(result_of(2, 4))
    del raw["at"], raw["paceline"], raw["clocks"]
    older = packed(json.dumps(raw))
    assert decode(older) == dataclasses.replace(decode(encode(result_of(2, 4))), paceline="")


def test_a_client_from_before_the_latest_metric_is_read() -> None:
    """Its columns are the first ones: what came later stands last."""
    raw = unpacked(result_of(2, 4))
    raw["points"].pop()
    older = decode(packed(json.dumps(raw)))
    (point, *_), (now, *_) = older.replicates[1].points, decode(encode(result_of(2, 4))).replicates[1].points
    assert point == dataclasses.replace(now, p90_ttft=None)
    assert now.p90_ttft is not None


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
    raw = unpacked(result)
    del raw["failures"]
    former = packed(json.dumps(raw))
    assert [one.failure for one in decode(former).replicates] == [failure]


def test_a_release_that_knows_nothing_of_it_reads_the_rest() -> None:
    """Its numbers stand where they stood: by place, without the new ones, which have names."""
    assert not {*MORE} & {*EVERY}
    raw = unpacked(with_requests(result_of(2, 4)))
    raw["more"] |= {"of_a_later_release": [1.0] * 8}
    later = packed(json.dumps(raw))
    assert decode(later) == decode(encode(with_requests(result_of(2, 4))))
    del raw["more"]
    older = packed(json.dumps(raw))
    assert decode(older) == decode(encode(result_of(2, 4)))


def test_a_code_of_a_later_release_is_none() -> None:
    result = dataclasses.replace(result_of(1, 1), replicates=(Replicate(arm="wide", error="it burnt"),))
    raw = unpacked(result)
    raw["failures"] = ["OnFire"]
    later = packed(json.dumps(raw))
    assert [one.failure for one in decode(later).replicates] == [None]
