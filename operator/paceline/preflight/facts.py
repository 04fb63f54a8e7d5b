"""What is known of fetched models, and the message in which a fetch says it.

The fetch pod writes the message, the planner reads it; nothing here touches a file.
"""

import base64
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from paceline.core.names import snapshot_path

COMMIT = re.compile(r"[0-9a-f]{40}")
VERSION = 2
"""Version of the message, which is the marker on the volume too. A new fact that rules need raises it: an older fetch
lacks that fact, and a missing fact would pass for "nothing wrong"."""
LONGEST = 4096
"""Bytes of a termination message that the kubelet keeps."""
LARGEST_JSON = 1 << 18
"""Bytes of facts once they are unpacked. Those of twenty models have some 20,000."""
MOST_LAYERS = 1_000
"""Of a model: rules go through them one by one. Llama 3.1 405B has 126 (its config.json)."""
LARGEST_NUMBER = 10**15
"""Of any fact, bytes included: what a status takes, and a float can be made of."""
WORD = re.compile("[ -~]{0,200}")
"""A class, a type or a repository (two times 96 characters on the hub)."""
MOST_WORDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """From config.json, the safetensors headers and the files' sizes. None, or empty, where the model does not say."""

    architectures: tuple[str, ...] = ()
    hidden_size: int | None = None
    target_hidden_size: int | None = None
    """Of a draft head: the target's hidden size it was made for, if that is not its own."""
    num_hidden_layers: int | None = None
    layer_types: Mapping[str, int] = field(default_factory=dict)
    """How many layers there are of each type, for models that mix them."""
    attention_layers: tuple[int, ...] = ()
    """Which layers attend to single tokens, for models in which the others keep a running state instead."""
    state_bytes: int | None = None
    """Of one sequence: what those other layers keep, all of them together."""
    num_attention_heads: int | None = None
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    cache_elements: int | None = None
    """Numbers that the KV cache keeps of one token, in all layers together."""
    kv_lora_rank: int | None = None
    """Set: attention is over a latent vector (MLA)."""
    split_sizes: Mapping[str, int] = field(default_factory=dict)
    """Inner sizes of MLPs that tensor parallelism splits, by their name in config.json."""
    weight_block_size: tuple[int, ...] = ()
    """Of a block-quantised checkpoint: rows and columns that share a scale."""
    vocab_size: int | None = None
    draft_vocab_size: int | None = None
    max_position_embeddings: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    aux_layers: tuple[int, ...] = ()
    """Of a head: the target's layers whose output it reads, as its `eagle_config` or `dflash_config` names them."""
    aux_layers_beside: tuple[int, ...] = ()
    """The same, named at the top of config.json: not every engine looks there."""
    block_size: int | None = None
    markov_rank: int | None = None
    num_target_layers: int | None = None
    """Of a DFLASH or DSPARK head, as is what stands above: what it was trained for."""
    nextn: bool | None = None
    """Whether it has layers of its own that predict further tokens."""
    custom_code: bool = False
    """The repository brings Python files, or its configuration asks for some."""
    lacks: tuple[str, ...] = ()
    """Of a head: weights that its class needs and that are in none of its files."""
    has_d2t: bool | None = None
    """Of a head: whether it says which target tokens its own are."""
    speculators: str | None = None
    """Of a model in the speculators format: its type, such as eagle3."""
    verifier: str | None = None
    """Likewise: the repository of the target that it was made for."""
    weight_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedModel:
    """A repository on the cache volume: `bytes` of all files that were asked for, `path` of the snapshot. Of a dataset,
    the one file."""

    source: str
    revision: str
    commit: str
    bytes: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """`facts` by source of a model; a source may be missing."""

    models: tuple[FetchedModel, ...]
    facts: Mapping[str, ModelFacts]
    datasets: tuple[FetchedModel, ...] = ()


def write_message(fetched: Fetched) -> str:
    """JSON of at most 4096 bytes. What does not fit as it is has its facts packed; if that is not enough either, facts
    are left out from the last model on, and preflight says that it knows nothing of those.

    Raises ValueError where the commits alone do not fit (some twenty models and datasets).
    """
    known = [(model.source, fetched.facts[model.source]) for model in fetched.models if model.source in fetched.facts]
    brought: dict[str, Any] = {"models": [_model(model) for model in fetched.models]}
    if fetched.datasets:
        brought["datasets"] = [_model(dataset) for dataset in fetched.datasets]
    for count in range(len(known), -1, -1):
        facts = {source: write_facts(facts) for source, facts in known[:count]}
        for shape in ({"facts": facts}, {"packed": _pack(facts)}):
            text = json.dumps({"version": VERSION, **brought, **shape}, separators=(",", ":"))
            if len(text) <= LONGEST:  # json.dumps writes ASCII: characters are bytes
                return text
    what = f"{len(fetched.models)} models" + (f" and {len(fetched.datasets)} datasets" if fetched.datasets else "")
    raise ValueError(f"{what} do not fit into a termination message of {LONGEST} bytes")


def read_message(text: str) -> Fetched:
    """The inverse. Raises ValueError for anything else: a failed fetch ends with a sentence, not with JSON.

    What a newer release has added is ignored.
    """
    try:
        value = json.loads(text)
        if value["version"] != VERSION:
            raise ValueError(f"version {value['version']}, not {VERSION}")
        facts = _unpack(value["packed"]) if "packed" in value else value["facts"]
        return Fetched(
            models=tuple(_read_model(model) for model in value["models"]),
            facts={source: read_facts(found) for source, found in facts.items()},
            datasets=tuple(_read_model(dataset) for dataset in value.get("datasets", ())),
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, zlib.error) as error:
        raise ValueError(f"not the message of a finished fetch: {error}") from error


def write_facts(facts: ModelFacts) -> dict[str, Any]:
    """Without what is not known."""
    return {key: value for key, value in asdict(facts).items() if value not in (None, (), {}, "")}


def read_facts(value: Mapping[str, Any]) -> ModelFacts:
    """The inverse, also after JSON. Raises TypeError for a value of another kind than its field's, or that no model
    has."""
    known = {key: found for key, found in _known(ModelFacts, value).items() if found is not None}
    known |= {key: tuple(found) for key, found in known.items() if isinstance(found, list)}
    if odd := next((name for name in known if not _plausible(name, known[name])), None):
        raise TypeError(f"{odd} is {known[odd]!r:.80}")
    return ModelFacts(**known)


def believed(facts: ModelFacts) -> ModelFacts:
    """Without what no model has: whoever writes a config.json may write anything, and rules count with it."""
    said = {name: found for name in KIND_OF if (found := getattr(facts, name)) is not None}
    return ModelFacts(**{name: found for name, found in said.items() if _plausible(name, found)})


def _plausible(name: str, value: Any) -> bool:
    return KINDS[KIND_OF[name]](value) and (name not in LAYERS or value <= MOST_LAYERS)


def _number(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_NUMBER


def _word(value: Any) -> bool:
    return isinstance(value, str) and WORD.fullmatch(value) is not None


def _layers(value: Any) -> bool:
    """Numbers of layers; some heads count from the end, and a rule tells them that their engine does not."""
    if not isinstance(value, tuple) or len(value) > MOST_LAYERS:
        return False
    return all(_number(one, -MOST_LAYERS) for one in value)


KINDS: Mapping[str, Callable[[Any], bool]] = {
    str(int | None): _number,
    str(str | None): _word,
    str(bool | None): lambda value: isinstance(value, bool),
    str(bool): lambda value: isinstance(value, bool),
    str(tuple[int, ...]): _layers,
    str(tuple[str, ...]): lambda value: (
        isinstance(value, tuple) and len(value) <= MOST_WORDS and all(map(_word, value))
    ),
    str(Mapping[str, int]): lambda value: (
        isinstance(value, Mapping)
        and len(value) <= MOST_WORDS
        and all(map(_word, value))
        and all(map(_number, value.values()))
    ),
}
"""By a field's type, whether a value that came from outside is of it, and no more than a status can hold."""
KIND_OF = {field.name: str(field.type) for field in fields(ModelFacts)}
LAYERS = ("num_hidden_layers", "num_target_layers")


def _model(model: FetchedModel) -> dict[str, Any]:
    """A path that follows from the commit is not written: it is the longest part."""
    value = asdict(model)
    if model.path == snapshot_path(model.source, model.commit):
        del value["path"]
    return value


def _read_model(value: Mapping[str, Any]) -> FetchedModel:
    known = _known(FetchedModel, value)
    if not isinstance(known["source"], str) or not isinstance(known["revision"], str) or not _number(known["bytes"]):
        raise TypeError(f"a model or dataset of {known['source']!r:.80}")
    if not COMMIT.fullmatch(known["commit"]):  # it becomes a part of a path, and of a server's argv
        raise ValueError(f"{known['commit']!r:.80} is no commit")
    return FetchedModel(**{"path": snapshot_path(known["source"], known["commit"]), **known})


def _pack(facts: Mapping[str, Any]) -> str:
    return base64.b85encode(zlib.compress(json.dumps(facts, separators=(",", ":")).encode(), 9)).decode()


def _unpack(text: str) -> Mapping[str, Any]:
    inflater = zlib.decompressobj()
    found: Mapping[str, Any] = json.loads(inflater.decompress(base64.b85decode(text), LARGEST_JSON))
    return found


def _known(kind: type[ModelFacts] | type[FetchedModel], value: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {key: found for key, found in value.items() if key in names}
