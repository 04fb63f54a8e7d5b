"""Checks names and shapes in safetensors headers: which weights a head of some class lacks, and the sizes of others.

A loader reads the names in the files and skips unknown ones; a weight missing in all files stays random, and the server
is healthy and accepts nothing (SGLang 0.5.23, `models/llama_eagle3.py`: load_weights).
"""

from collections.abc import Collection, Mapping
from typing import Any

# Other names of a module in a checkpoint: from older releases, or for several fused modules.
LEGACY = {"midlayer": "layers.0"}
FUSED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}

_LAYER = (
    "layers.0.self_attn.q_proj",
    "layers.0.self_attn.k_proj",
    "layers.0.self_attn.v_proj",
    "layers.0.self_attn.o_proj",
    "layers.0.mlp.gate_proj",
    "layers.0.mlp.up_proj",
    "layers.0.mlp.down_proj",
)
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "LlamaForCausalLMEagle3": ("fc", *_LAYER, "norm"),
    "LlamaForCausalLMEagle": ("fc", *_LAYER),
    "Qwen2ForCausalLMEagle": ("fc", *_LAYER),
}
"""Class of a head → its required modules: all but embeddings, which are the target's, and the norms of layers, which
default to ones and which some heads lack."""


def lacking(architectures: tuple[str, ...], config: Mapping[str, Any], tensors: Collection[str]) -> tuple[str, ...]:
    """Modules that the class needs and no tensor is named after. Empty for unknown classes."""
    needs = list(_NEEDS.get(architectures[0], ())) if architectures else []
    if needs and architectures[0].endswith("Eagle3") and _own_lm_head(config):
        needs.append("lm_head")
    modules = {_module(name) for name in tensors}
    modules |= {module.replace(fused, part) for module in modules for fused, parts in FUSED.items() for part in parts}
    return tuple(module for module in needs if module not in modules)


def has_nextn(tensors: Collection[str]) -> bool:
    """Whether there are MTP layers: `mtp.…`, `model.mtp_layers.…`, or `….eh_proj` of a layer after the last."""
    return any("mtp" in name or ".eh_proj." in name for name in tensors)


Shape = tuple[int, ...]
COLUMNS, ROWS = ("fc", "eh_proj"), ("lm_head", "embed_tokens", "d2t")
"""Modules whose number of columns, or rows, follows from config.json."""
MATRIX = 2
"""Number of dimensions."""
QUANTIZED = (".weight_scale", ".weight_scale_inv", ".weight_packed", ".qweight", ".qzeros", ".scales")
"""Suffixes of tensors that only quantised checkpoints have: FP8 and compressed-tensors; AWQ and GPTQ."""


def module_of(tensor: str) -> str:
    """The module of COLUMNS or ROWS to which a tensor belongs; "" for all others."""
    name = tensor.removeprefix("model.").removesuffix(".weight")
    last = name.rpartition(".")[2]
    return last if last in COLUMNS or name in ROWS else ""


def sizes(shapes: Mapping[str, Shape]) -> dict[str, int]:
    """Sizes by module; for several layers the first one's."""
    found: dict[str, int] = {}
    for tensor, shape in sorted(shapes.items()):
        module = module_of(tensor)
        if module in ROWS and shape:
            found.setdefault(module, shape[0])
        elif module in COLUMNS and len(shape) == MATRIX:
            found.setdefault(module, shape[1])
    return found


def is_quantized(tensors: Collection[str]) -> bool:
    return any(name.endswith(QUANTIZED) for name in tensors)


def _own_lm_head(config: Mapping[str, Any]) -> bool:
    """Whether the head needs its own lm_head; otherwise its embedding is used, or the target's lm_head."""
    return not config.get("tie_word_embeddings") and config.get("draft_vocab_size") is not None


def _module(tensor: str) -> str:
    """`model.midlayer.mlp.up_proj.weight` → `layers.0.mlp.up_proj`; quantised weights have other last parts."""
    for old, new in LEGACY.items():
        tensor = tensor.replace(old, new)
    return tensor.removeprefix("model.").rpartition(".")[0]
