"""A model's config.json → facts."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from paceline.preflight.facts import ModelFacts


def model_facts(config: Mapping[str, Any], weight_bytes: int) -> ModelFacts:
    """Read what is there; a value of another type than expected counts as absent.

    Models that take more than text keep the language model's part under `text_config`. A layer pattern is either
    spelled out (`layer_types`) or given as "every nth layer has full attention" (`full_attention_interval`).
    """
    text = config.get("text_config")
    both = {**config, **text} if isinstance(text, Mapping) else config

    def number(key: str) -> int | None:
        found = both.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def word(key: str) -> str | None:
        found = both.get(key)
        return found if isinstance(found, str) else None

    architectures = config.get("architectures")
    quantization = config.get("quantization_config", both.get("quantization_config"))
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    layers = number("num_hidden_layers")
    return ModelFacts(
        architectures=tuple(map(str, architectures)) if isinstance(architectures, list) else (),
        hidden_size=number("hidden_size"),
        target_hidden_size=number("target_hidden_size"),
        num_hidden_layers=layers,
        layer_types=_layer_types(both.get("layer_types"), number("full_attention_interval"), layers),
        num_attention_heads=number("num_attention_heads"),
        num_key_value_heads=number("num_key_value_heads"),
        head_dim=number("head_dim"),
        vocab_size=number("vocab_size"),
        draft_vocab_size=number("draft_vocab_size"),
        max_position_embeddings=number("max_position_embeddings"),
        dtype=word("dtype") or word("torch_dtype"),
        quantization=str(method) if method else None,
        weight_bytes=weight_bytes,
    )


def _layer_types(spelled: object, interval: int | None, layers: int | None) -> Mapping[str, int]:
    if isinstance(spelled, list):
        return dict(sorted(Counter(map(str, spelled)).items()))
    if interval and layers:
        full = layers // interval
        return {"full_attention": full, "linear_attention": layers - full}
    return {}
