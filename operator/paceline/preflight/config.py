"""Derives facts from a model's config.json and the names of its weights."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from paceline.core import ModelFacts
from paceline.fetching.facts import MOST_LAYERS, plausible
from paceline.preflight import speculators
from paceline.preflight.weights import Shape, has_nextn, is_quantized, lacking, sizes

ATTENTION = ("full_attention", "sliding_attention", "chunked_attention", "attention")
"""Layer types that attend to single tokens; all others carry a state along the sequence."""

NEXTN = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers", "num_mtp_layers")

STATE_ELEMENT_BYTES = 4
"""The recurrent state is kept in float32, also in models of another type."""


LANGUAGE_MODEL = ("thinker_config", "llm_config", "language_config", "text_config")
"""Keys of the language model's part in a multimodal model, in the order in which engines look (SGLang 0.5.23,
`utils/hf_transformers/common.py:582`; vLLM 0.33.0 uses the same names through Transformers)."""


def _language_model(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The innermost language model: Qwen's Omni models have a `text_config` in their `thinker_config`."""
    part = next((part for key in LANGUAGE_MODEL if isinstance(part := config.get(key), Mapping)), None)
    return config if part is None else _language_model(part)


class _Config:
    """Reads config.json, preferring the language model's part; a value of an unexpected type counts as absent."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.outer = config
        self.both: Mapping[str, Any] = {**config, **_language_model(config)}

    def number(self, *keys: str) -> int | None:
        """The first of these keys' values that is a number."""
        values = (self.both.get(key) for key in keys)
        return next((n for n in values if isinstance(n, int) and not isinstance(n, bool)), None)

    def word(self, key: str) -> str | None:
        value = self.both.get(key)
        return value if isinstance(value, str) else None

    def table(self, key: str) -> Mapping[str, Any]:
        value = self.outer.get(key, self.both.get(key))
        return value if isinstance(value, Mapping) else {}


def model_facts(
    config: Mapping[str, Any],
    weight_bytes: int,
    tensors: Collection[str] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    *,
    has_code: bool = False,
) -> ModelFacts:
    """`tensors` are the names in the safetensors headers, None if they were not read, and `shapes` those of tensors
    with one number per cell; `has_code`: the repository has Python files. An implausible value counts as absent."""
    values = _Config(speculators.plain_config(config))
    architectures = config.get("architectures")
    classes = tuple(map(str, architectures)) if isinstance(architectures, list) else ()
    quantization = values.table("quantization_config")
    kinds = _layers(values)
    mixed = any(kind not in ATTENTION for kind in kinds)
    facts = ModelFacts(
        architectures=classes,
        hidden_size=values.number("hidden_size"),
        target_hidden_size=values.number("target_hidden_size"),
        num_hidden_layers=values.number("num_hidden_layers"),
        attention_layers=tuple(n for n, kind in enumerate(kinds) if kind in ATTENTION) if mixed else (),
        state_bytes=_state_bytes(values, kinds),
        num_attention_heads=values.number("num_attention_heads"),
        num_key_value_heads=values.number("num_key_value_heads"),
        cache_elements=_cache_elements(values, kinds),
        kv_lora_rank=values.number("kv_lora_rank"),
        split_sizes=_split_sizes(values),
        weight_block_size=_block(quantization),
        vocab_size=values.number("vocab_size"),
        draft_vocab_size=values.number("draft_vocab_size"),
        max_position_embeddings=values.number("max_position_embeddings"),
        dtype=values.word("dtype") or values.word("torch_dtype"),
        quantization=str(quantization["quant_method"]) if quantization.get("quant_method") else None,
        aux_layers=_aux_layers(values.table("eagle_config"), values.table("dflash_config")),
        aux_layers_beside=_aux_layers(values.both, values.both),
        num_aux_hidden_states=values.number("num_aux_hidden_states"),
        block_size=values.number("block_size"),
        markov_rank=values.number("markov_rank"),
        num_target_layers=values.number("num_target_layers"),
        nextn_layers=values.number(*NEXTN),
        has_nextn=has_nextn(tensors) if tensors is not None else None,
        custom_code=(has_code or "auto_map" in config) and not speculators.kind(config),  # no engine runs their code
        lacks=lacking(classes, config, tensors) if tensors is not None else (),
        has_d2t=any(name.split(".")[-1] == "d2t" for name in tensors) if tensors is not None else None,
        weight_sizes=sizes(shapes or {}),
        quantized_weights=is_quantized(tensors) if tensors is not None else None,
        speculators=speculators.kind(config),
        verifier=speculators.verifier(config),
        weight_bytes=weight_bytes,
    )
    return plausible(facts)


def _layers(config: _Config) -> Sequence[str]:
    """The type of every layer: listed (`layer_types`), or "every nth has full attention"."""
    listed = config.both.get("layer_types")
    if isinstance(listed, list):
        return [str(kind) for kind in listed]
    interval, layers = config.number("full_attention_interval"), config.number("num_hidden_layers")
    if interval and layers and layers <= MOST_LAYERS:
        return ["linear_attention" if (n + 1) % interval else "full_attention" for n in range(layers)]
    return []


def _cache_elements(config: _Config, kinds: Sequence[str]) -> int | None:
    """Keys and values of all attention layers, one vector for both if attention is latent (MLA). A sliding window keeps
    fewer tokens but counts in full: the engine's pools for it are a share that a person may set.

    Global layers may have a different number and size of heads (`num_global_key_value_heads`, `global_head_dim`).
    """
    layers = config.number("num_hidden_layers")
    if layers is None:
        return None
    if latent := config.number("kv_lora_rank"):
        return layers * (latent + (config.number("qk_rope_head_dim") or 0))
    heads, hidden = config.number("num_attention_heads"), config.number("hidden_size")
    size = config.number("head_dim") or (hidden // heads if hidden and heads else None)
    keys = config.number("num_key_value_heads") or heads
    if keys is None or size is None:
        return None
    wide = 2 * keys * size
    overall = config.number("num_global_key_value_heads") or keys, config.number("global_head_dim") or size
    of_kind = dict.fromkeys(ATTENTION, wide) | {"full_attention": 2 * overall[0] * overall[1]}
    return sum(of_kind.get(kind, 0) for kind in kinds) if kinds else layers * wide


def _state_bytes(config: _Config, kinds: Sequence[str]) -> int | None:
    """Bytes of the state of gated delta networks: a matrix of key size by value size for each value head."""
    parts = [config.number(f"linear_{part}") for part in ("num_value_heads", "key_head_dim", "value_head_dim")]
    if None in parts:
        return None
    heads, keys, values = (part or 0 for part in parts)
    return kinds.count("linear_attention") * heads * keys * values * STATE_ELEMENT_BYTES


def _split_sizes(config: _Config) -> Mapping[str, int]:
    """Dense layers are split by `intermediate_size`, experts by their own. Many mixtures have a dense size that no
    layer uses."""
    experts = config.number("moe_intermediate_size")
    dense = config.number("first_k_dense_replace") or config.both.get("mlp_only_layers") or experts is None
    shared = config.number("shared_expert_intermediate_size")
    if shared is None and experts is not None and (count := config.number("n_shared_experts", "num_shared_experts")):
        shared = experts * count
    inner = "experts' intermediate_size" if config.number("num_local_experts") else "intermediate_size"
    sizes = {
        inner: config.number("intermediate_size") if dense else None,
        "moe_intermediate_size": experts,
        "shared_expert_intermediate_size": shared,
    }
    return {name: size for name, size in sizes.items() if size}


def _block(quantization: Mapping[str, Any]) -> tuple[int, ...]:
    """`weight_block_size` of FP8 checkpoints; compressed-tensors has it in its groups, and none if scales are per
    channel or tensor."""
    groups = quantization.get("config_groups")
    weights = [group.get("weights") for group in groups.values()] if isinstance(groups, Mapping) else []
    blocks = [weight.get("block_structure") for weight in weights if isinstance(weight, Mapping)]
    block = next((size for size in (quantization.get("weight_block_size"), *blocks) if size), None)
    return tuple(block) if isinstance(block, list) and all(isinstance(side, int) for side in block) else ()


def _aux_layers(eagle: Mapping[str, Any], block: Mapping[str, Any]) -> tuple[int, ...]:
    named = eagle.get("eagle_aux_hidden_state_layer_ids"), block.get("target_layer_ids")
    ids = next((layers for layers in named if isinstance(layers, list)), [])
    return tuple(layer for layer in ids if isinstance(layer, int))
