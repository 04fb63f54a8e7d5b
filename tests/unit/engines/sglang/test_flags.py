"""Argument lists as argparse reads them."""

import pytest

from paceline.engines.sglang.flags import Given, first_with, flag_value, flags, given, listed


def one(index: int, name: str, *values: str, glued: bool = False) -> Given:
    return Given(index=index, name=name, values=values, glued=glued)


@pytest.mark.parametrize(
    ("args", "found"),
    [
        ((), []),
        (("--a=1",), [one(0, "--a", "1", glued=True)]),
        (("--a", "1", "--b"), [one(0, "--a", "1"), one(2, "--b")]),
        (("--a=x=y",), [one(0, "--a", "x=y", glued=True)]),
        (("--a=", "--b"), [one(0, "--a", "", glued=True), one(1, "--b")]),
        (("--sizes", "1", "2", "--b"), [one(0, "--sizes", "1", "2"), one(3, "--b")]),
        (("--chunk", "-1", "--x", "-0.5"), [one(0, "--chunk", "-1"), one(2, "--x", "-0.5")]),
        (("-h",), [one(0, "-h")]),
        (("model", "--a"), [one(0, "", "model"), one(1, "--a")]),
        (("model",), [one(0, "", "model")]),
    ],
)
def test_an_argument_list(args: tuple[str, ...], found: list[Given]) -> None:
    assert list(given(args)) == found


def test_the_value_of_a_flag() -> None:
    assert flag_value(("--a", "1", "--b=2", "--c"), "--a") == "1"
    assert flag_value(("--a", "1", "--b=2", "--c"), "--b") == "2"
    assert flag_value(("--a", "1", "--b=2", "--c"), "--c") is None
    assert flag_value(("--a", "1", "--b=2", "--c"), "--d") is None


def test_what_is_known_of_a_flag() -> None:
    newest = listed("0.5.23")
    assert newest["--ep"] == newest["--expert-parallel-size"]
    assert newest["--ep"].name == "--ep-size"
    assert newest["--enable-mixed-chunk"].kind == "switch"
    assert newest["--no-lora-strict-loading"].name == "--lora-strict-loading"
    assert (newest["--context-length"].kind, newest["--cuda-graph-bs-decode"].many) == ("size", "+")
    assert "qwen3_coder" in newest["--tool-call-parser"].choices
    assert newest["--enable-dp-attention"].instead == "--attn-dp-size <dp-size>"


def test_between_two_releases_both_lists_count() -> None:
    between = flags("0.5.10")
    assert {"--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"} <= set(between)
    assert first_with("--cuda-graph-max-bs-decode") == "0.5.23"
    assert first_with("--bogus") is None
