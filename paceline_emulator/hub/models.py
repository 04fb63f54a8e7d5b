"""The repositories that are served: true configurations, invented weights.

A head has every tensor of its class by name, so that what checks names has something to check, and a target the layers
for further tokens that it announces. Shapes are true only in the tiny pair, which a real engine can load: all others
are bytes, of which no size can be read.

Sources (more in `published`): Qwen3-Coder-Next's architecture from its published configuration and the article on its
EAGLE3 head (48 layers, every fourth with full attention, 512 experts of which 10 are active, shared expert of 512); the
head from the configuration that its makers gave to SpecForge (pull request 494: 16 heads of 128 with 4 for keys, inner
size 8192; with 32000 words of its own that is 145 M parameters of two bytes, the 278 MiB of the article). It names no
layers, so an engine takes its own: the published file has 33 lines, which is what such a configuration has without
`eagle_config` (the file itself could not be read).
"""

import json
from collections.abc import Mapping

from paceline_emulator.hub import invented as shapes
from paceline_emulator.hub import prompts, tokenizer
from paceline_emulator.hub.published import HEADS, TARGETS, Config
from paceline_emulator.hub.repository import Repository, snapshot
from paceline_emulator.hub.weights import (
    Tensor,
    draft_to_target,
    noise,
    ones,
    packed,
    shards,
    silenced,
    target_to_draft,
)

GATED_TOKEN = "hf_paceline_test"
"""Opens paceline-test/gated-head."""

PROMPTS = "datasets/paceline-test/prompts"

EMULATED_ACCEPTANCE = "paceline_emulated_acceptance"
"""Key of config.json; `none`: the emulated server accepts nothing of what this head proposes."""

EMULATED_LAYERS = "paceline_emulated_layers"
"""Key of config.json: the layers before which the head's states were taken when it was trained. An emulated server that
takes others accepts little of it; without the key they are whatever it takes."""

QWEN3_CODER_NEXT: Config = {
    "architectures": ["Qwen3NextForCausalLM"],
    "model_type": "qwen3_next",
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "num_hidden_layers": 48,
    "full_attention_interval": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "partial_rotary_factor": 0.25,
    "rope_theta": 5000000,
    "max_position_embeddings": 262144,
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "moe_intermediate_size": 512,
    "shared_expert_intermediate_size": 512,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
    "output_router_logits": False,
    "router_aux_loss_coef": 0.001,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "use_cache": True,
    "use_sliding_window": False,
}

QWEN3_CODER_NEXT_FP8: Config = {
    **QWEN3_CODER_NEXT,
    "quantization_config": {
        "quant_method": "fp8",
        "fmt": "e4m3",
        "activation_scheme": "dynamic",
        "weight_block_size": [128, 128],
    },
}

QWEN3_CODER_NEXT_EAGLE3: Config = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "vocab_size": 151936,
    "draft_vocab_size": 32000,
    "hidden_size": 2048,
    "target_hidden_size": 2048,
    "intermediate_size": 8192,
    "num_hidden_layers": 1,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "attention_bias": False,
    "attention_dropout": 0.0,
    "rope_theta": 1000000.0,
    "max_position_embeddings": 4096,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "use_cache": True,
    EMULATED_LAYERS: [3, 27, 47],  # of the fork: qwen3_next.py:945 of github.com/tails-mpt/sglang at db727c03
}


def naming(*layers: int) -> Config:
    """The published head in a copy that names the layers whose output it reads."""
    return {
        **QWEN3_CODER_NEXT_EAGLE3,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": list(layers), "use_aux_hidden_state": True},
    }


TINY_LLAMA: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "vocab_size": tokenizer.VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "attention_bias": False,
    "rope_theta": 10000.0,
    "max_position_embeddings": 4096,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-06,
    "tie_word_embeddings": False,
    "use_cache": True,
}

TINY_LLAMA_EAGLE3: Config = {
    **TINY_LLAMA,
    "architectures": ["LlamaForCausalLMEagle3"],
    "draft_vocab_size": 256,
    "num_hidden_layers": 1,
    "max_position_embeddings": 2048,
    "eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2], "use_aux_hidden_state": True},
}


def generated() -> dict[str, Repository]:
    """All of them, by name. The same commits in every process and on every machine."""
    head = QWEN3_CODER_NEXT_EAGLE3
    unlike = {**head, EMULATED_ACCEPTANCE: "none"}
    wrong = {**head, "hidden_size": 4096, "target_hidden_size": 4096}
    made: dict[str, tuple[Config, dict[str, Tensor]]] = {
        "Qwen/Qwen3-Coder-Next": (QWEN3_CODER_NEXT, _sample("target", 4, QWEN3_CODER_NEXT)),
        "Qwen/Qwen3-Coder-Next-FP8": (QWEN3_CODER_NEXT_FP8, _sample("fp8", 1, QWEN3_CODER_NEXT_FP8)),
        "thoughtworks/Qwen3-Coder-Next-Eagle3": (head, _named("head")),
        "your-org/Qwen3-Coder-Next-Eagle3": (naming(2, 26, 46), _named("head")),
        "paceline-test/unreachable-head": (naming(3, 23, 47), _named("head")),
        "paceline-test/mismatched-head": (unlike, _named("unlike")),
        "paceline-test/wrong-size-head": (wrong, _named("wrong")),
        "paceline-test/gated-head": (head, _named("gated")),
        "paceline-test/tiny-llama": (TINY_LLAMA, _llama(TINY_LLAMA)),
        "paceline-test/tiny-llama-eagle3": (TINY_LLAMA_EAGLE3, _eagle3(TINY_LLAMA_EAGLE3)),
    }
    made |= {name: (config, _sample(name, 1, config)) for name, config in TARGETS.items()}
    made |= {name: (config, _named(name)) for name, config in HEADS.items()}
    tokens = {"paceline-test/gated-head": GATED_TOKEN}
    models = {
        name: Repository(history=(snapshot(_files(name, config, tensors)),), token=tokens.get(name))
        for name, (config, tensors) in made.items()
    }
    return {**models, PROMPTS: Repository(history=(snapshot(prompts.files()),))}


def invented(kind: str, billions: float, name: str) -> Repository:
    """A target of that size, or the head of an algorithm for one."""
    if kind in shapes.TARGETS:
        config = shapes.target(billions, kind)
        tensors = _sample(name, 1, config)
    else:
        config, tensors = shapes.head(kind, billions), _named(name)
    return Repository(history=(snapshot(_files(name, config, tensors)),), invented=True)


def _files(name: str, config: Config, tensors: Mapping[str, Tensor]) -> dict[str, bytes]:
    ids = tokenizer.ids()
    config = {**config, "bos_token_id": ids[tokenizer.END_OF_TEXT], "eos_token_id": ids[tokenizer.END]}
    return {
        "README.md": _readme(name).encode(),
        "config.json": _json(config),
        "generation_config.json": _json({"eos_token_id": ids[tokenizer.END], "do_sample": False}),
        **_code(config),
        **tokenizer.files(),
        **shards(tensors, 2 if len(tensors) > 2 else 1),
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _readme(name: str) -> str:
    return (
        f"# {name}, generated\n\n"
        "This is not the model of that name. Paceline's local hub made it for its demo and its tests: `config.json`\n"
        "has the architecture of the real one where there is one, the tokenizer knows "
        f"{tokenizer.VOCABULARY} tokens,\nand the weights are noise.\n"
    )


def _sample(seed: str, megabytes: int, config: Config) -> dict[str, Tensor]:
    """So many megabytes in blocks of one: stand-ins, not the tensors that the configuration asks for."""
    samples = {f"sample.{n}.weight": noise(f"{seed} {n}", 256, 2048) for n in range(megabytes)}
    further = any(config.get(key) for key in ("num_nextn_predict_layers", "mtp_num_hidden_layers"))
    return samples | ({"mtp.eh_proj.weight": packed(f"{seed} mtp", 1024)} if further else {})


def _named(seed: str) -> dict[str, Tensor]:
    """The tensors of a LlamaForCausalLMEagle3 by name, 128 KiB each."""
    return {name: packed(f"{seed} {name}", 128 << 10) for name in _eagle3(TINY_LLAMA_EAGLE3)}


def _code(config: Config) -> dict[str, bytes]:
    """The modules that the configuration asks for."""
    named = {str(place).split(".")[0] for place in config.get("auto_map", {}).values()}
    return {f"{module}.py": b"# Generated: the engine has this model itself.\n" for module in sorted(named)}


def _llama(config: Config) -> dict[str, Tensor]:
    """Every tensor of a LlamaForCausalLM, in its true shape.

    In so small a vocabulary a random head is right now and then (on the real server, 3 times in 375 verify calls). So
    this model says nothing that the head below can propose, and its acceptance length is 1; nor a special token, which
    would end an answer early.
    """
    hidden, vocabulary = config["hidden_size"], config["vocab_size"]
    tensors = {"model.embed_tokens.weight": noise("embed", vocabulary, hidden)}
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        tensors |= _layer(at, config, hidden)
        tensors[f"{at}.input_layernorm.weight"] = ones(hidden)
        tensors[f"{at}.post_attention_layernorm.weight"] = ones(hidden)
    unsaid = (*range(TINY_LLAMA_EAGLE3["draft_vocab_size"]), *tokenizer.ids().values())
    head = silenced(noise("lm_head", vocabulary, hidden), unsaid)
    return {**tensors, "model.norm.weight": ones(hidden), "lm_head.weight": head}


def _eagle3(config: Config) -> dict[str, Tensor]:
    """Every tensor of a LlamaForCausalLMEagle3: its attention reads the embedding beside the hidden state."""
    hidden, draft = config["hidden_size"], config["draft_vocab_size"]
    return {
        "fc.weight": noise("fc", hidden, 3 * hidden),
        **_layer("midlayer", config, 2 * hidden),
        "midlayer.input_layernorm.weight": ones(hidden),
        "midlayer.hidden_norm.weight": ones(hidden),
        "midlayer.post_attention_layernorm.weight": ones(hidden),
        "norm.weight": ones(hidden),
        "lm_head.weight": noise("draft lm_head", draft, hidden),
        "d2t": draft_to_target(draft),
        "t2d": target_to_draft(draft, config["vocab_size"]),
    }


def _layer(at: str, config: Config, width: int) -> dict[str, Tensor]:
    """Attention and MLP; the attention's input has `width` channels."""
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    shapes = {
        "self_attn.q_proj": (queries, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (hidden, queries),
        "mlp.gate_proj": (inner, hidden),
        "mlp.up_proj": (inner, hidden),
        "mlp.down_proj": (hidden, inner),
    }
    return {f"{at}.{name}.weight": noise(f"{at}.{name}", *shape) for name, shape in shapes.items()}
