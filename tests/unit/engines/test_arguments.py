"""Argument lists as argparse reads them, by the flag lists of the engines."""

import pytest
from tests.support.messages import Says

from paceline.engines.arguments import UNLISTED, FlagList, flag_value
from paceline.engines.sglang.flags_by_release import elsewhere, first_with, flags, judged_by, releases
from paceline.engines.sglang_jax.rules import flag_list as jax
from paceline.engines.vllm.arguments import FLAGS as VLLM

Parsed = tuple[int, str, *tuple[str, ...]]
"""Place, name as written, values."""


@pytest.mark.parametrize(
    ("args", "parsed"),
    [
        ((), []),
        (("--a=1",), [(0, "--a", "1")]),
        (("--a", "1", "--b"), [(0, "--a", "1"), (2, "--b")]),
        (("--a=x=y",), [(0, "--a", "x=y")]),
        (("--a=", "--b"), [(0, "--a", ""), (1, "--b")]),
        (("--sizes", "1", "2", "--b"), [(0, "--sizes", "1", "2"), (3, "--b")]),
        (("--chunk", "-1", "--x", "-0.5"), [(0, "--chunk", "-1"), (2, "--x", "-0.5")]),
        (("--tokens=-8k",), [(0, "--tokens", "-8k")]),
        (("-h",), [(0, "-h")]),
        (("model", "--a"), [(0, "", "model"), (1, "--a")]),
        (("model",), [(0, "", "model")]),
    ],
)
def test_an_argument_list(args: tuple[str, ...], parsed: list[Parsed]) -> None:
    assert [(flag.index, flag.written, *flag.values) for flag in UNLISTED.parse(args)] == parsed


@pytest.mark.parametrize(
    ("args", "places"),
    [
        (("--a=1", "2"), [(0, "1"), (1, "2")]),
        (("--a", "1", "2"), [(1, "1"), (2, "2")]),
        (("1", "2"), [(0, "1"), (1, "2")]),
    ],
)
def test_values_have_places(args: tuple[str, ...], places: list[tuple[int, str]]) -> None:
    (flag,) = UNLISTED.parse(args)
    assert list(flag.words) == places


def test_the_value_of_a_flag() -> None:
    args = ("--a", "1", "--b=2", "--c")
    assert [flag_value(args, name) for name in ("--a", "--b", "--c", "--d")] == ["1", "2", None, None]


@pytest.mark.parametrize(
    ("flag_list", "written", "name"),
    [
        (VLLM, "--max_num_seqs", "--max-num-seqs"),
        (VLLM, "-tp", "--tensor-parallel-size"),
        (VLLM, "-O3", "--optimization-level"),
        (VLLM, "--compilation_config.mode", "--compilation-config"),
        (VLLM, "--new_thing", "--new-thing"),
        (jax("0.1.0"), "--tp-size", "--tensor-parallel-size"),
        (UNLISTED, "--max_num_seqs", "--max_num_seqs"),
    ],
)
def test_the_name_of_a_flag(flag_list: FlagList, written: str, name: str) -> None:
    (flag,) = flag_list.parse((written,))
    assert (flag.written, flag.name) == (written, name)


def test_a_row_of_the_list() -> None:
    newest = flags("0.5.23")
    assert newest["--ep"] == newest["--expert-parallel-size"]
    assert newest["--ep"].name == "--ep-size"
    assert newest["--enable-mixed-chunk"].kind == "switch"
    assert newest["--no-lora-strict-loading"].name == "--lora-strict-loading"
    assert (newest["--context-length"].kind, newest["--cuda-graph-bs-decode"].many) == ("size", "+")
    assert "qwen3_coder" in newest["--tool-call-parser"].choices


@pytest.mark.parametrize(
    ("version", "judge"),
    [
        ("0.5.5.post3", "0.5.5.post3"),
        ("v0.5.6-cu129", "0.5.6"),
        ("0.5.12+amd", "0.5.12"),
        ("0.5.6.post9", "0.5.6.post2"),
        ("0.4.11", "0.4.10.post2"),
        ("999.0.0", releases()[-1]),
        ("0.3.0", "0.4.5"),
        ("nightly", releases()[-1]),
    ],
)
def test_a_version_is_judged_by_itself_or_the_newest_before_it(version: str, judge: str) -> None:
    assert judged_by(version) == judge


def test_each_release_has_its_own_flags() -> None:
    """Read in the wheels: a repaired release may bring flags, and choices come one by one."""
    assert set(flags("0.5.5.post3")) - set(flags("0.5.5")) >= {"--kt-method", "--enable-draft-weights-cpu-backup"}
    assert "trtllm_mha" in flags("0.5.1")["--attention-backend"].choices
    assert "trtllm_mha" not in flags("0.4.10.post2")["--attention-backend"].choices
    assert first_with("--cuda-graph-max-bs-decode") == "0.5.14"
    assert first_with("--bogus") is None


def test_a_flag_of_other_releases_is_told(says: Says) -> None:
    says(elsewhere("--cuda-graph-max-bs-decode", "0.5.12"), elsewhere("--enable-piecewise-cuda-graph", "0.5.23"))
    assert elsewhere("--bogus", "0.5.23") == ""
