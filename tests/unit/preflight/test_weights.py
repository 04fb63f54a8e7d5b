"""Names of tensors → what a head is missing."""

import pytest

from paceline.preflight.weights import has_nextn, lacking
from paceline_emulator.hub.models import TINY_LLAMA_EAGLE3

CLASS = ("LlamaForCausalLMEagle3",)
NAMES = frozenset(
    f"{module}.weight"
    for module in (
        "fc",
        "norm",
        "lm_head",
        *(f"layers.0.self_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "o_proj")),
        *(f"layers.0.mlp.{part}" for part in ("gate_proj", "up_proj", "down_proj")),
    )
)


@pytest.mark.parametrize(
    "names",
    [
        NAMES,
        {name.replace("layers.0", "midlayer") for name in NAMES},  # as older heads call it
        {f"model.{name}" for name in NAMES},
        {name.replace(".weight", ".qweight") for name in NAMES},
        {name for name in NAMES if not any(part in name for part in ("q_proj", "k_proj", "v_proj"))}
        | {"layers.0.self_attn.qkv_proj.weight"},
    ],
)
def test_names_that_the_loader_finds(names: set[str]) -> None:
    assert lacking(CLASS, TINY_LLAMA_EAGLE3, names) == ()


def test_names_that_it_skips() -> None:
    renamed = {name.replace("layers.0", "decoder").replace("fc", "fuse") for name in NAMES}
    assert lacking(CLASS, TINY_LLAMA_EAGLE3, renamed)[:2] == ("fc", "layers.0.self_attn.q_proj")


@pytest.mark.parametrize("change", [{"tie_word_embeddings": True}, {"draft_vocab_size": None}])
def test_an_output_layer_may_be_borrowed(change: dict[str, object]) -> None:
    assert lacking(CLASS, TINY_LLAMA_EAGLE3, NAMES - {"lm_head.weight"}) == ("lm_head",)
    assert lacking(CLASS, {**TINY_LLAMA_EAGLE3, **change}, NAMES - {"lm_head.weight"}) == ()


def test_nothing_is_asked_of_classes_that_are_not_known() -> None:
    assert lacking(("SomethingNewEagle3",), {}, {"x"}) == ()
    assert lacking((), {}, set()) == ()


def test_layers_for_further_tokens_have_names_of_their_own() -> None:
    assert has_nextn({"mtp.fc.weight"})
    assert has_nextn({"model.layers.92.eh_proj.weight"})
    assert not has_nextn(NAMES)
