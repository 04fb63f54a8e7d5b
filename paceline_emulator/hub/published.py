"""Configurations of the models that the examples name, by repository: the numbers that matter are the published ones.

Targets: config.json of the repositories (what only concerns training or generation is left out). Heads: their cards and
the source documents; heads and inner sizes that those leave out are the usual ones of SpecForge's configurations for
that hidden size. Where a head's card names no layers, neither does its configuration: the engine then takes its own.
"""

from collections.abc import Mapping
from typing import Any

Config = dict[str, Any]

LLAMA: Config = {
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "attention_bias": False,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
}
QWEN3: Config = {
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
    "attention_bias": False,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
}

QWEN3_8B: Config = {
    **QWEN3,
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rope_theta": 1000000,
    "max_position_embeddings": 40960,
}

QWEN3_CODER_30B_A3B: Config = {
    **QWEN3,
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 5472,
    "num_hidden_layers": 48,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "rope_theta": 10000000,
    "max_position_embeddings": 262144,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
}

LLAMA_3_1_8B: Config = {
    **LLAMA,
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 128256,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
    },
    "max_position_embeddings": 131072,
}

LLAMA_3_3_70B: Config = {
    **LLAMA_3_1_8B,
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
}

FP8: Config = {
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "dynamic": False},
                "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
            }
        },
    },
}

QWEN3_32B: Config = {
    **QWEN3_8B,
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "num_hidden_layers": 64,
    "num_attention_heads": 64,
}

GLM_4_7_FP8: Config = {
    "architectures": ["Glm4MoeForCausalLM"],
    "model_type": "glm4_moe",
    "torch_dtype": "bfloat16",
    "vocab_size": 151552,
    "hidden_size": 5120,
    "intermediate_size": 12288,
    "num_hidden_layers": 92,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "attention_bias": True,
    "partial_rotary_factor": 0.5,
    "rope_theta": 1000000,
    "max_position_embeddings": 202752,
    "n_routed_experts": 160,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1536,
    "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
    **FP8,
}

GLM_4_7_FLASH: Config = {
    "architectures": ["Glm4MoeLiteForCausalLM"],
    "model_type": "glm4_moe_lite",
    "torch_dtype": "bfloat16",
    "vocab_size": 154880,
    "hidden_size": 2048,
    "intermediate_size": 10240,
    "num_hidden_layers": 47,
    "num_attention_heads": 20,
    "num_key_value_heads": 20,
    "q_lora_rank": 768,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "max_position_embeddings": 202752,
    "n_routed_experts": 64,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "moe_intermediate_size": 1536,
    "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 1,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-05,
    "tie_word_embeddings": False,
}

MINIMAX_M2_5: Config = {
    "architectures": ["MiniMaxM2ForCausalLM"],
    "model_type": "minimax_m2",
    "auto_map": {"AutoConfig": "configuration_minimax_m2.MiniMaxM2Config"},
    "torch_dtype": "bfloat16",
    "vocab_size": 200064,
    "hidden_size": 3072,
    "intermediate_size": 1536,
    "num_hidden_layers": 62,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "rotary_dim": 64,
    "rope_theta": 5000000,
    "max_position_embeddings": 196608,
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "quantization_config": {
        "quant_method": "fp8",
        "fmt": "float8_e4m3fn",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
        "modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"],
    },
}

GEMMA_4_31B: Config = {
    "architectures": ["Gemma4ForConditionalGeneration"],
    "model_type": "gemma4",
    "dtype": "bfloat16",
    "text_config": {
        "model_type": "gemma4_text",
        "dtype": "bfloat16",
        "vocab_size": 262144,
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_hidden_layers": 60,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 10,
        "sliding_window": 1024,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 256,
        "num_global_key_value_heads": 4,
        "global_head_dim": 512,
        "max_position_embeddings": 262144,
        "hidden_activation": "gelu_pytorch_tanh",
        "rms_norm_eps": 1e-06,
        "tie_word_embeddings": True,
    },
}

TARGETS: Mapping[str, Config] = {
    "Qwen/Qwen3-8B": QWEN3_8B,
    "Qwen/Qwen3-Coder-30B-A3B-Instruct": QWEN3_CODER_30B_A3B,
    "Qwen/Qwen3-Coder-30B-A3B": QWEN3_CODER_30B_A3B,  # as one of the source documents calls it
    "meta-llama/Llama-3.1-8B-Instruct": LLAMA_3_1_8B,
    "RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8": {**LLAMA_3_1_8B, **FP8},
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": {**LLAMA_3_3_70B, **FP8},
    "Qwen/Qwen3-32B": QWEN3_32B,
    "zai-org/GLM-4.7-FP8": GLM_4_7_FP8,
    "zai-org/GLM-4.7-Flash": GLM_4_7_FLASH,
    "MiniMaxAI/MiniMax-M2.5": MINIMAX_M2_5,
    "google/gemma-4-31B": GEMMA_4_31B,
    "google/gemma-4-31B-it": GEMMA_4_31B,
}


def _eagle3(target: Config, heads: int, keys: int, inner: int, **more: Any) -> Config:
    """One Llama layer with heads of 128 that proposes from 32000 of the target's tokens."""
    text = target.get("text_config", target)
    return {
        **LLAMA,
        "architectures": ["LlamaForCausalLMEagle3"],
        "vocab_size": text["vocab_size"],
        "draft_vocab_size": 32000,
        "hidden_size": text["hidden_size"],
        "intermediate_size": inner,
        "num_hidden_layers": 1,
        "num_attention_heads": heads,
        "num_key_value_heads": keys,
        "head_dim": 128,
        "max_position_embeddings": 4096,
        **more,
    }


def _speculator(target: Config, verifier: str) -> Config:
    """An EAGLE3 head in the format of vLLM's speculators, with the layers before which states are taken."""
    head = _eagle3(target, target["num_attention_heads"], target["num_key_value_heads"], target["intermediate_size"])
    layers = target["num_hidden_layers"]
    return {
        "architectures": ["Eagle3DraftModel"],
        "speculators_model_type": "eagle3",
        "draft_vocab_size": head.pop("draft_vocab_size"),
        "torch_dtype": "bfloat16",
        "eagle_aux_hidden_state_layer_ids": [2, layers // 2, layers - 3],
        "transformer_layer_config": head,
        "speculators_config": {"algorithm": "eagle3", "verifier": {"name_or_path": verifier}},
    }


OF_LLAMA = _eagle3(LLAMA_3_1_8B, 32, 8, 14336, max_position_embeddings=2048)

HEADS: Mapping[str, Config] = {
    "thoughtworks/Qwen3-8B-Eagle3": _eagle3(QWEN3_8B, 32, 8, 12288),
    "Qwen/Qwen3-Coder-30B-A3B-EAGLE3": _eagle3(QWEN3_CODER_30B_A3B, 32, 4, 12288),
    "lmsys/SGLang-EAGLE3-Qwen3-Coder-30B-A3B-Instruct-SpecForge": _eagle3(QWEN3_CODER_30B_A3B, 32, 4, 12288),
    "yuhuili/Eagle3-Qwen3-30B-A3B": _eagle3(QWEN3_CODER_30B_A3B, 32, 4, 12288),
    "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B": {**OF_LLAMA, "torch_dtype": "float16"},
    "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B": {
        **_eagle3(LLAMA_3_3_70B, 64, 8, 28672, max_position_embeddings=2048),
        "torch_dtype": "float16",
    },
    "RedHatAI/Qwen3-32B-speculator.eagle3": _speculator(QWEN3_32B, "Qwen/Qwen3-32B"),
    "lmsys/sglang-EAGLE3-LLaMA3.1-Instruct-8B": {**OF_LLAMA, "torch_dtype": "float16"},
    "lmsys/SGLang-EAGLE3-Llama-3.1-8B-Instruct-SpecForge": OF_LLAMA,
    "thoughtworks/GLM-4.7-FP8-Eagle3": _eagle3(GLM_4_7_FP8, 40, 8, 12288),
    "thoughtworks/GLM-4.7-Flash-Eagle3": _eagle3(GLM_4_7_FLASH, 16, 4, 8192),
    "thoughtworks/MiniMax-M2.5-Eagle3": _eagle3(MINIMAX_M2_5, 24, 8, 8192),
    "thoughtworks/Gemma-4-31B-Eagle3": _eagle3(
        GEMMA_4_31B,
        42,
        14,
        21504,
        eagle_config={"eagle_aux_hidden_state_layer_ids": [2, 29, 56], "use_aux_hidden_state": True},
    ),
}
