"""Candidates that are the same however they are written, and those that only look it."""

import pytest

from paceline.api.pool import CandidateSpec, canonical

Written = tuple[list[str], list[str]]
"""The algorithm's own flags, and the candidate's."""


def what(written: Written) -> object:
    own, args = written
    said = {
        "name": "a",
        "draft": {"algorithm": "Custom", "name": "UNO"},
        "custom": {"args": tuple(own)},
        "args": tuple(args),
    }
    return canonical(CandidateSpec.model_validate(said), None)


@pytest.mark.parametrize(
    ("one", "other", "twins"),
    [
        ((["--x", "1", "--y=2"], []), (["--y", "2", "--x=1"], []), True),
        ((["--x=1"], ["--y=2"]), (["--y=2"], ["--x=1"]), True),
        ((["--x", "1", "2", "--y"], []), (["--y", "--x", "1", "2"], []), True),
        ((["--x", "1", "--y", "2", "3"], []), (["--x", "1", "3", "--y", "2"], []), False),
        ((["--x", "1", "2"], []), (["--x", "2", "1"], []), False),
        ((["--x", "1", "2"], []), (["--x", "1 2"], []), False),
        ((["--a=1", "--a=2"], []), (["--a=2", "--a=1"], []), False),
        ((["--a=1"], ["--a=2"]), (["--a=2"], ["--a=1"]), False),
        ((["--x", "-1", "--y"], []), (["--y", "-1", "--x"], []), False),
    ],
)
def test_a_flag_keeps_its_values_and_one_that_comes_again_its_order(one: Written, other: Written, twins: bool) -> None:
    assert (what(one) == what(other)) is twins
