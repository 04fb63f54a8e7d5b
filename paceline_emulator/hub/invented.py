"""Repositories for models that nothing is published about: shapes of a dense Llama of that size, and heads that fit it.

They let a person's own file run on the emulator. They say nothing about the real model.
"""

import math
from collections.abc import Mapping

from paceline_emulator.hub.published import LLAMA, Config

SHAPES: Mapping[float, tuple[int, int, int, int, int]] = {
    0.6: (1024, 28, 16, 8, 3072),
    1.7: (2048, 28, 16, 8, 6144),
    4: (2560, 36, 32, 8, 9728),
    8: (4096, 32, 32, 8, 14336),
    14: (5120, 40, 40, 8, 17408),
    32: (5120, 64, 64, 8, 25600),
    70: (8192, 80, 64, 8, 28672),
    123: (12288, 88, 96, 8, 28672),
    405: (16384, 126, 128, 8, 53248),
}
"""Billions of parameters → hidden size, layers, heads, heads for keys, inner size (Qwen3, Llama, Mistral)."""

CLASSES: Mapping[str, str] = {
    "EAGLE3": "LlamaForCausalLMEagle3",
    "EAGLE": "LlamaForCausalLMEagle",
    "STANDALONE": "LlamaForCausalLM",
    "NEXTN": "LlamaForCausalLMEagle",
    "MTP": "LlamaForCausalLMEagle",
    "DFLASH": "DFlashDraftModel",
    "DSPARK": "DSparkDraftModel",
}
"""Algorithm → class of its head."""


TARGETS: Mapping[str, str] = {"target": "LlamaForCausalLM", "target-with-mtp": "Glm4MoeForCausalLM"}
"""Kind of a target → its class; the second is one that engines take MTP layers of."""


def target(billions: float, kind: str = "target") -> Config:
    """Of the nearest shape."""
    nearest = min(SHAPES, key=lambda size: abs(math.log(size / billions)))
    hidden, layers, heads, keys, inner = SHAPES[nearest]
    return {
        **LLAMA,
        "architectures": [TARGETS[kind]],
        "vocab_size": 151936,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": keys,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "num_nextn_predict_layers": int(kind == "target-with-mtp"),
    }


def head(algorithm: str, billions: float) -> Config:
    """For a target of so many. A custom algorithm gets an EAGLE3 head."""
    of = target(billions)
    layers = 4 if algorithm == "STANDALONE" else 1
    return {
        **of,
        "architectures": [CLASSES.get(algorithm, CLASSES["EAGLE3"])],
        "num_hidden_layers": layers,
        "draft_vocab_size": of["vocab_size"] if algorithm == "STANDALONE" else 32000,
        "block_size": 16,
        "markov_rank": 8,
        "num_target_layers": of["num_hidden_layers"],
    }
