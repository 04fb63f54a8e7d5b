"""What is known of fetched models, and the message in which a fetch says it.

The fetch pod writes the message, the planner reads it; nothing here touches a file.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

VERSION = 1
LONGEST = 4096
"""Bytes of a termination message that the kubelet keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """From config.json and the files' sizes. None, or empty, where the model does not say."""

    architectures: tuple[str, ...] = ()
    hidden_size: int | None = None
    target_hidden_size: int | None = None
    """Of a draft head: the target's hidden size it was made for, if that is not its own."""
    num_hidden_layers: int | None = None
    layer_types: Mapping[str, int] = field(default_factory=dict)
    """How many layers there are of each type, for models that mix them."""
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    vocab_size: int | None = None
    draft_vocab_size: int | None = None
    max_position_embeddings: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    weight_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedModel:
    """A repository on the cache volume: `bytes` of all files that were asked for, `path` of the snapshot."""

    source: str
    revision: str
    commit: str
    bytes: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """`facts` by source; a source may be missing."""

    models: tuple[FetchedModel, ...]
    facts: Mapping[str, ModelFacts]


def write_message(fetched: Fetched) -> str:
    """Compact JSON of at most 4096 bytes: facts are left out from the last model on until it fits.

    Raises ValueError where the commits alone do not fit (some fifteen models).
    """
    known = [(model.source, fetched.facts[model.source]) for model in fetched.models if model.source in fetched.facts]
    for count in range(len(known), -1, -1):
        value = {
            "version": VERSION,
            "models": [asdict(model) for model in fetched.models],
            "facts": {source: {k: v for k, v in asdict(facts).items() if v} for source, facts in known[:count]},
        }
        text = json.dumps(value, separators=(",", ":"))
        if len(text) <= LONGEST:  # json.dumps writes ASCII: characters are bytes
            return text
    raise ValueError(f"{len(fetched.models)} models do not fit into a termination message of {LONGEST} bytes")


def read_message(text: str) -> Fetched:
    """The inverse. Raises ValueError for anything else: a failed fetch ends with a sentence, not with JSON.

    What a newer release has added is ignored.
    """
    try:
        value = json.loads(text)
        if value["version"] != VERSION:
            raise ValueError(f"version {value['version']}, not {VERSION}")
        return Fetched(
            models=tuple(FetchedModel(**_known(FetchedModel, model)) for model in value["models"]),
            facts={source: _facts(facts) for source, facts in value["facts"].items()},
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"not the message of a finished fetch: {error}") from error


def _facts(value: Mapping[str, Any]) -> ModelFacts:
    known = _known(ModelFacts, value)
    return ModelFacts(**{**known, "architectures": tuple(known.get("architectures", ()))})


def _known(kind: type[ModelFacts] | type[FetchedModel], value: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {key: found for key, found in value.items() if key in names}
