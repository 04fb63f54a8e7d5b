"""A head as `speculators` publishes one: its config.json in full, in the format of its documentation and code
(github.com/vllm-project/speculators c05b95b, src/speculators/config.py and models/eagle3/config.py)."""

from collections.abc import Mapping
from typing import Any

LAYER = {
    "attention_bias": False,
    "attention_dropout": 0.0,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 4096,
    "initializer_range": 0.02,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "mlp_bias": False,
    "model_type": "llama",
    "num_attention_heads": 32,
    "num_hidden_layers": 1,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000,
    "use_cache": True,
    "vocab_size": 151936,
}


def speculator(kind: str = "eagle3", verifier: str = "Qwen/Qwen3-8B", **layer: int) -> dict[str, Any]:
    """Of this type, for this verifier, with these sizes in place of those for Qwen3-8B."""
    names: Mapping[str, str] = {
        "eagle3": "Eagle3DraftModel",
        "dflash": "DFlashSpeculator",
        "peagle": "PEagleDraftModel",
    }
    layers = "eagle_aux_hidden_state_layer_ids" if "eagle" in kind else "aux_hidden_state_layer_ids"
    proposal = {"accept_tolerance": 0.0, "proposal_type": "greedy", "speculative_tokens": 5, "verifier_accept_k": 1}
    return {
        "architectures": [names.get(kind, "SpeculatorModel")],
        "auto_map": {"": f"{kind}.SpeculatorConfig"},
        "draft_vocab_size": 32000,
        layers: [2, 18, 33],
        "norm_before_residual": True,
        "speculators_config": {
            "algorithm": kind,
            "default_proposal_method": "greedy",
            "proposal_methods": [proposal],
            "verifier": {"architectures": ["Qwen3ForCausalLM"], "name_or_path": verifier},
        },
        "speculators_model_type": kind,
        "speculators_version": "0.3.0",
        "target_hidden_size": None,
        "torch_dtype": "bfloat16",
        "transformer_layer_config": {**LAYER, **layer},
        "transformers_version": "4.57.1",
    }
