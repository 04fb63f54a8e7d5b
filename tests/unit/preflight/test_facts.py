"""config.json → facts → the termination message → facts."""

import pytest
from tests.support.speculator import speculator

from paceline.core import ModelFacts
from paceline.preflight import model_facts
from paceline_emulator.hub.models import QWEN3_CODER_NEXT, QWEN3_CODER_NEXT_EAGLE3, QWEN3_CODER_NEXT_FP8, naming
from paceline_emulator.hub.published import GEMMA_4_31B, GLM_4_7_FLASH, MINIMAX_M2_5


def test_facts_of_a_target_that_mixes_layers() -> None:
    facts = model_facts(QWEN3_CODER_NEXT, 159)
    assert facts.architectures == ("Qwen3NextForCausalLM",)
    assert len(facts.attention_layers) == 12
    assert (facts.num_attention_heads, facts.num_key_value_heads) == (16, 2)
    assert (facts.dtype, facts.weight_bytes, facts.quantization) == ("bfloat16", 159, None)


def test_facts_that_rules_on_splitting_and_memory_need() -> None:
    facts = model_facts(QWEN3_CODER_NEXT_FP8, 159)
    assert facts.attention_layers == (3, 7, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47)
    assert facts.split_sizes == {"moe_intermediate_size": 512, "shared_expert_intermediate_size": 512}
    assert (facts.weight_block_size, facts.quantization) == ((128, 128), "fp8")
    assert facts.cache_elements == 12 * 2 * 2 * 256
    assert facts.state_bytes == 36 * 32 * 128 * 128 * 4


def test_a_head_in_the_speculators_format_is_read_as_any_other() -> None:
    """Its layers are counted from the other side: state before layer 18 is the output of layer 17."""
    facts = model_facts(speculator(), 776_000_000, {"d2t", "fc.weight"}, has_code=True)
    assert (facts.speculators, facts.verifier) == ("eagle3", "Qwen/Qwen3-8B")
    assert facts.architectures == ("Eagle3DraftModel",)
    assert (facts.hidden_size, facts.num_hidden_layers, facts.vocab_size, facts.draft_vocab_size) == (
        4096, 1, 151936, 32000,
    )  # fmt: skip
    assert (facts.num_attention_heads, facts.num_key_value_heads) == (32, 8)
    assert (facts.dtype, facts.cache_elements, facts.max_position_embeddings) == ("bfloat16", 2 * 8 * 128, 40960)
    assert (facts.aux_layers, facts.aux_layers_beside, facts.has_d2t) == ((1, 17, 32), (), True)
    assert not facts.custom_code, "no engine runs the configuration class that it brings"


def test_a_block_drafter_in_the_speculators_format() -> None:
    facts = model_facts({**speculator("dflash"), "block_size": 8}, 1)
    assert (facts.speculators, facts.aux_layers, facts.block_size) == ("dflash", (1, 17, 32), 8)


@pytest.mark.parametrize("broken", [{"transformer_layer_config": None}, {"speculators_config": []}])
def test_a_speculator_that_is_none_says_nothing_of_what_it_lacks(broken: dict[str, object]) -> None:
    facts = model_facts({**speculator(), **broken}, 1)
    assert facts.speculators == "eagle3"
    assert (facts.hidden_size is None) == ("transformer_layer_config" in broken)
    assert (facts.verifier is None) == ("speculators_config" in broken)


def test_blocks_of_compressed_tensors_and_of_none() -> None:
    def block(weights: dict[str, object]) -> tuple[int, ...]:
        groups = {"group_0": {"weights": weights}}
        return model_facts({"quantization_config": {"config_groups": groups}}, 1).weight_block_size

    assert block({"strategy": "block", "block_structure": [128, 128]}) == (128, 128)
    assert block({"strategy": "channel"}) == ()


def test_global_layers_with_heads_of_their_own() -> None:
    facts = model_facts(GEMMA_4_31B, 1)
    assert facts.attention_layers == ()  # all of them attend
    assert facts.cache_elements == 50 * 2 * 16 * 256 + 10 * 2 * 4 * 512


def test_a_latent_takes_the_place_of_keys_and_values() -> None:
    facts = model_facts(GLM_4_7_FLASH, 1)
    assert (facts.kv_lora_rank, facts.cache_elements) == (512, 47 * (512 + 64))


@pytest.mark.parametrize(
    ("config", "tensors", "announced", "there"),
    [
        ({"num_nextn_predict_layers": 1}, None, 1, None),
        ({"text_config": {"mtp_num_hidden_layers": 2}}, {"model.norm.weight"}, 2, False),
        ({}, {"mtp.fc.weight"}, None, True),
    ],
)
def test_layers_for_further_tokens(
    config: dict[str, object], tensors: set[str] | None, announced: int | None, there: bool | None
) -> None:
    facts = model_facts(config, 1, tensors)
    assert (facts.nextn_layers, facts.has_nextn) == (announced, there)


@pytest.mark.parametrize(
    "keys",
    [("text_config",), ("llm_config",), ("language_config",), ("thinker_config",), ("thinker_config", "text_config")],
)
def test_the_language_models_part_has_the_sizes(keys: tuple[str, ...]) -> None:
    """Qwen2.5-VL, InternVL, DeepSeek-VL2, Qwen2.5-Omni and Qwen3-Omni."""
    config: dict[str, object] = {"hidden_size": 2048, "vocab_size": 151936}
    for key in reversed(keys):
        config = {key: config, "vision_config": {"hidden_size": 1152}, "hidden_size": 1}
    facts = model_facts(config, 1)
    assert (facts.hidden_size, facts.vocab_size) == (2048, 151936)


def test_sizes_of_weights_by_which_a_head_is_compared_with_its_configuration() -> None:
    shapes = {
        "model.fc.weight": (2048, 6144),
        "lm_head.weight": (32000, 2048),
        "d2t": (32000,),
        "model.embed_tokens.weight": (151936, 2048),
        "model.layers.61.eh_proj.weight": (2048, 4096),
        "vision.lm_head.weight": (1, 1),
        "fc.bias": (2048,),
    }
    facts = model_facts({}, 1, shapes.keys(), shapes)
    assert facts.weight_sizes == {
        "fc": 6144, "lm_head": 32000, "d2t": 32000, "embed_tokens": 151936, "eh_proj": 4096,
    }  # fmt: skip
    assert facts.quantized_weights is False
    assert model_facts({}, 1, {"layers.0.mlp.up_proj.weight_scale_inv"}).quantized_weights is True


def test_code_of_its_own() -> None:
    assert model_facts(MINIMAX_M2_5, 1).custom_code
    assert model_facts({}, 1, has_code=True).custom_code
    assert not model_facts({}, 1).custom_code


def test_facts_of_a_head() -> None:
    facts = model_facts(naming(2, 26, 46), 278)
    assert (facts.hidden_size, facts.vocab_size, facts.draft_vocab_size) == (2048, 151936, 32000)
    assert (facts.num_hidden_layers, facts.max_position_embeddings) == (1, 4096)
    assert (facts.aux_layers, facts.aux_layers_beside) == ((2, 26, 46), ())
    assert facts.has_d2t is None  # no file was read


def test_layers_that_are_named_beside_the_place_where_sglang_looks() -> None:
    facts = model_facts({"eagle_aux_hidden_state_layer_ids": [2, 46, 89]}, 1)
    assert (facts.aux_layers, facts.aux_layers_beside) == ((), (2, 46, 89))


def test_facts_of_a_heads_tensors() -> None:
    facts = model_facts(QWEN3_CODER_NEXT_EAGLE3, 278, {"fc.weight", "d2t", "t2d"})
    assert facts.has_d2t is True
    assert facts.lacks[0] == "layers.0.self_attn.q_proj"


def test_facts_of_a_model_with_more_than_text_and_a_quantization() -> None:
    facts = model_facts(
        {
            "architectures": ["Qwen3_5ForConditionalGeneration"],
            "text_config": {"hidden_size": 5120, "dtype": "bfloat16"},
            "quantization_config": {"quant_method": "fp8"},
        },
        1,
    )
    assert (facts.hidden_size, facts.dtype, facts.quantization) == (5120, "bfloat16", "fp8")


@pytest.mark.parametrize(
    "config",
    [{}, {"hidden_size": None}, {"hidden_size": "2048"}, {"architectures": None, "layer_types": 3, "text_config": []}],
)
def test_a_strange_configuration_gives_no_facts(config: dict[str, object]) -> None:
    assert model_facts(config, 1) == ModelFacts(weight_bytes=1)


DEEP = {"num_hidden_layers": 2 * 10**9, "full_attention_interval": 4}
LONG = {"architectures": ["A" * 200_000], "quantization_config": {"quant_method": "q" * 50_000}}


@pytest.mark.parametrize(
    "config",
    [
        DEEP,
        LONG,
        {"num_hidden_layers": -1, "vocab_size": 10**400, "hidden_size": -(10**400)},
        {"layer_types": ["full_attention"] * 5_000, "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1] * 5_000}},
        {"architectures": [f"Class{number}" for number in range(5_000)]},
        {"torch_dtype": "bfloat16\x1b[2J\u202e"},
    ],
)
def test_what_no_model_has_is_as_good_as_absent(config: dict[str, object]) -> None:
    """Rules go through layers one by one and status takes 32,768 characters of facts: two billion layers would take
    the operator's memory, and a long name would keep its deployment from ever having a status again."""
    assert model_facts(config, 1) == ModelFacts(weight_bytes=1)
