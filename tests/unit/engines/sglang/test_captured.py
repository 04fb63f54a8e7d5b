"""Which layers each release takes states before: the table of `set_eagle3_layers_to_capture`, class by class."""

import pytest

from paceline.engines.sglang.hidden_states import Captured, captured

NEXT, QWEN3, MOE = "Qwen3NextForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"
FORK = {"declared": True}


def one(version: str, target: str, layers: int, *named: int, **image: bool) -> Captured:
    (found,) = captured(version, target, layers, named, **image)
    return found


@pytest.mark.parametrize(
    ("version", "target", "layers", "image", "default"),
    [
        ("0.4.5", "LlamaForCausalLM", 32, {}, (2, 16, 29)),
        ("0.5.6", QWEN3, 36, {}, (2, 18, 33)),
        ("0.5.6", NEXT, 48, FORK, (3, 27, 47)),
        ("0.5.23", NEXT, 48, {}, (2, 24, 45)),
        ("0.5.23", "MiniMaxM3SparseForConditionalGeneration", 60, {}, (3, 31, 58)),
    ],
)
def test_what_a_head_that_names_none_is_given(
    version: str, target: str, layers: int, image: dict[str, bool], default: tuple[int, ...]
) -> None:
    found = one(version, target, layers, **image)
    assert (found.asked, found.graphs, found.fails) == (default, default, False)


@pytest.mark.parametrize(
    ("version", "target", "layers", "image", "named", "asked", "lost"),
    [
        ("0.5.23", NEXT, 48, {}, (2, 22, 46), (3, 23, 47), ()),
        ("0.5.23", NEXT, 48, {}, (3, 23, 47), (4, 24, 48), (48,)),
        ("0.5.6", NEXT, 48, FORK, (3, 23, 47), (4, 24, 48), (48,)),
        ("0.5.23", QWEN3, 36, {}, (1, 17, 35), (2, 18, 36), (36,)),
        ("0.5.23", "Gemma4ForConditionalGeneration", 60, {}, (2, 29, 59), (3, 30, 60), ()),
        ("0.5.23", "DeepseekV3ForCausalLM", 61, {}, (2, 30, 58), (2, 30, 58), ()),
        ("0.5.23", "DeepseekV3ForCausalLM", 61, {}, (1, 29, 57), (2, 30, 58), ()),
        ("0.5.6", "DeepseekV3ForCausalLM", 61, {}, (2, 30, 58), (3, 31, 59), ()),
        ("0.5.23", "GptOssForCausalLM", 36, {}, (1, 17, 33), (2, 18, 34), ()),
        ("0.5.23", "GptOssForCausalLM", 36, {}, (2, 18, 36), (2, 18, 36), ()),
        ("0.4.5", "LlamaForCausalLM", 32, {}, (3, 16, 31), (2, 16, 29), ()),
    ],
)
def test_what_a_head_that_names_some_is_given(
    version: str, target: str, layers: int, image: dict[str, bool], named: tuple[int, ...], asked: object, lost: object
) -> None:
    found = one(version, target, layers, *named, **image)
    assert (found.asked, found.lost) == (asked, lost)


def test_before_0_5_11_graphs_are_captured_with_the_classes_own_layers() -> None:
    assert one("0.5.6", QWEN3, 36, 3, 20, 30).graphs == (2, 18, 33)
    assert [found.graphs for found in captured("0.5.11", QWEN3, 36, (3, 20, 30))] == [(4, 21, 31)] * 2
    assert one("0.5.6", QWEN3, 36, 3, 20, 30, graphs=False).graphs == (4, 21, 31)


def test_a_class_that_marks_its_layers_keeps_the_marks_of_the_graphs() -> None:
    found = one("0.5.6", MOE, 48, 3, 23, 43)
    assert (found.extra, found.fails, found.dies) == ((2, 45), True, "at its first request")
    assert not one("0.5.6", MOE, 48, 3, 23, 43, graphs=False).fails
    assert not one("0.5.6", MOE, 48, 1, 23, 44).fails, "what it takes by itself"
    assert not one("0.5.23", MOE, 48, 3, 23, 43).fails


def test_a_class_that_marks_its_layers_dies_at_once_others_with_the_first_request() -> None:
    assert one("0.5.23", NEXT, 48, 3, 23, 47).dies == "at its start"
    assert one("0.5.23", QWEN3, 36, 1, 17, 35).dies == "at its first request"


def test_of_a_release_between_two_known_ones_either_may_be_so() -> None:
    assert [found.asked for found in captured("0.5.12", "DeepseekV3ForCausalLM", 61, (2, 30, 58))] == [
        (3, 31, 59),
        (2, 30, 58),
    ]


def test_of_another_images_hook_nothing_is_known() -> None:
    assert captured("0.5.6", "LagunaForCausalLM", 40, (3, 20, 39), declared=True) == ()
    assert captured("0.5.23", NEXT, 48, (3, 23, 47), declared=True) == ()
