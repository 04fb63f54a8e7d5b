"""Candidates that are the same however they are written, and those that only look it."""

import json

import pytest

from paceline.api.pool import CandidateSpec, canonical
from paceline.core import Engine

Written = tuple[list[str], list[str]]
"""The algorithm's own flags, and the candidate's."""


def what(written: Written, engine: str = "SGLang") -> object:
    own, args = written
    said = {
        "name": "a",
        "draft": {"algorithm": "Custom", "name": "UNO"},
        "custom": {"args": tuple(own)},
        "args": tuple(args),
    }
    shared = Engine(type=engine, version="1.0", image="engine")
    return canonical(CandidateSpec.model_validate_json(json.dumps(said)), None, shared)


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
        ((['--x={"a": 1, "b": [2]}'], []), (["--x", '{"b":[2],"a":1}'], []), True),
        ((["--x", "[1, 2]"], []), (["--x=[1,2]"], []), True),
        ((['--x={"a": 1}'], []), (['--x={"a": "1"}'], []), False),
        ((["--x=[1, 2]"], []), (["--x=[2, 1]"], []), False),
        ((["--x={a b}"], []), (["--x={ab}"], []), False),
        ((["--x=1 "], []), (["--x=1"], []), False),
    ],
)
def test_a_flag_keeps_its_values_and_one_that_comes_again_its_order(one: Written, other: Written, twins: bool) -> None:
    assert (what(one) == what(other)) is twins


@pytest.mark.parametrize(("engine", "twins"), [("vLLM", True), ("SGLang", False), ("SGLangJAX", False)])
def test_a_flag_with_underscores_is_the_one_with_dashes_where_the_engine_takes_both(engine: str, twins: bool) -> None:
    """Its value keeps them, and so does the key of a JSON option that comes after a point."""
    assert (what((["--a_b.c=x_y"], []), engine) == what((["--a-b.c", "x_y"], []), engine)) is twins
    assert what((["--a=x_y"], []), engine) != what((["--a=x-y"], []), engine)
    assert what((["--a.b_c=1"], []), engine) != what((["--a.b-c=1"], []), engine)
