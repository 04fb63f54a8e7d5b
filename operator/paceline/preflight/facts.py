"""Facts of fetched models, and the message that carries them from the fetch to the planner.

The fetch pod writes the message, the planner reads it; nothing here touches a file.
"""

import base64
import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from paceline.core import ModelFacts
from paceline.core.names import snapshot_path

COMMIT = re.compile(r"[0-9a-f]{40}")
VERSION = 2
"""Version of the message, which is the marker on the volume too. A new fact that rules need raises it: an older fetch
lacks that fact, and a missing fact would pass for "nothing wrong"."""
LONGEST = 4096
"""Bytes of a termination message that the kubelet keeps."""
LARGEST_JSON = 1 << 18
"""Bytes of unpacked facts; twenty models have some 20,000."""
MOST_LAYERS = 1_000
"""Layers of a model, which rules visit one by one. Llama 3.1 405B has 126 (its config.json)."""
LARGEST_NUMBER = 10**15
"""Of any fact, bytes included: a status takes it, and a float can hold it."""
WORD = re.compile("[ -~]{0,200}")
"""A class, a type or a repository (two times 96 characters on the hub)."""
MOST_WORDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedModel:
    """A repository on the cache volume: `bytes` of all requested files, `path` of the snapshot. For a dataset, those of
    its one file."""

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
    """JSON of at most 4096 bytes. Facts are packed if they do not fit otherwise, and left out from the last model on if
    they do not fit packed; preflight then notes that it knows nothing of those models.

    Raises ValueError where the commits alone do not fit (some twenty models and datasets).
    """
    sources = [model.source for model in fetched.models if model.source in fetched.facts]
    message: dict[str, Any] = {"models": [_model(model) for model in fetched.models]}
    if fetched.datasets:
        message["datasets"] = [_model(dataset) for dataset in fetched.datasets]
    for count in range(len(sources), -1, -1):
        facts = {source: write_facts(fetched.facts[source]) for source in sources[:count]}
        for shape in ({"facts": facts}, {"packed": _pack(facts)}):
            text = json.dumps({"version": VERSION, **message, **shape}, separators=(",", ":"))
            if len(text) <= LONGEST:  # json.dumps writes ASCII: characters are bytes
                return text
    what = f"{len(fetched.models)} models" + (f" and {len(fetched.datasets)} datasets" if fetched.datasets else "")
    raise ValueError(f"{what} do not fit into a termination message of {LONGEST} bytes")


def read_message(text: str) -> Fetched:
    """The inverse. Raises ValueError for anything else: a failed fetch ends with a sentence, not with JSON.

    Keys that a newer release has added are ignored.
    """
    try:
        value = json.loads(text)
        if value["version"] != VERSION:
            raise ValueError(f"version {value['version']}, not {VERSION}")
        facts = _unpack(value["packed"]) if "packed" in value else value["facts"]
        return Fetched(
            models=tuple(_read_model(model) for model in value["models"]),
            facts={source: read_facts(value) for source, value in facts.items()},
            datasets=tuple(_read_model(dataset) for dataset in value.get("datasets", ())),
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError, zlib.error) as error:
        raise ValueError(f"not the message of a finished fetch: {error}") from error


def write_facts(facts: ModelFacts) -> dict[str, Any]:
    """The known facts."""
    return {key: value for key, value in asdict(facts).items() if value not in (None, (), {}, "")}


def read_facts(value: Mapping[str, Any]) -> ModelFacts:
    """The inverse, also after JSON. Raises TypeError for a value of the wrong type, and for one that no model has."""
    facts = {key: fact for key, fact in _fields(ModelFacts, value).items() if fact is not None}
    facts |= {key: tuple(fact) for key, fact in facts.items() if isinstance(fact, list)}
    if odd := next((name for name in facts if not _plausible(name, facts[name])), None):
        raise TypeError(f"{odd} is {facts[odd]!r:.80}")
    return ModelFacts(**facts)


def plausible(facts: ModelFacts) -> ModelFacts:
    """The plausible facts: a config.json may hold anything, and rules calculate with it."""
    values = {name: value for name in KIND_OF if (value := getattr(facts, name)) is not None}
    return ModelFacts(**{name: value for name, value in values.items() if _plausible(name, value)})


def _plausible(name: str, value: Any) -> bool:
    return KINDS[KIND_OF[name]](value) and (name not in LAYERS or value <= MOST_LAYERS)


def _number(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_NUMBER


def _word(value: Any) -> bool:
    return isinstance(value, str) and WORD.fullmatch(value) is not None


def _layers(value: Any) -> bool:
    """Numbers of layers. Some heads count from the end, which a rule refuses because engines do not."""
    if not isinstance(value, tuple) or len(value) > MOST_LAYERS:
        return False
    return all(_number(layer, -MOST_LAYERS) for layer in value)


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
"""Type of a field → whether a value from outside is of that type and fits into a status."""
KIND_OF = {field.name: str(field.type) for field in fields(ModelFacts)}
LAYERS = ("num_hidden_layers", "num_target_layers")


def _model(model: FetchedModel) -> dict[str, Any]:
    """A path that follows from the commit is left out: it is the longest part."""
    value = asdict(model)
    if model.path == snapshot_path(model.source, model.commit):
        del value["path"]
    return value


def _read_model(value: Mapping[str, Any]) -> FetchedModel:
    model = _fields(FetchedModel, value)
    if not isinstance(model["source"], str) or not isinstance(model["revision"], str) or not _number(model["bytes"]):
        raise TypeError(f"a model or dataset of {model['source']!r:.80}")
    if not COMMIT.fullmatch(model["commit"]):  # it becomes a part of a path, and of a server's argv
        raise ValueError(f"{model['commit']!r:.80} is no commit")
    return FetchedModel(**{"path": snapshot_path(model["source"], model["commit"]), **model})


def _pack(facts: Mapping[str, Any]) -> str:
    return base64.b85encode(zlib.compress(json.dumps(facts, separators=(",", ":")).encode(), 9)).decode()


def _unpack(text: str) -> Mapping[str, Any]:
    inflater = zlib.decompressobj()
    facts: Mapping[str, Any] = json.loads(inflater.decompress(base64.b85decode(text), LARGEST_JSON))
    return facts


def _fields(kind: type[ModelFacts] | type[FetchedModel], value: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(kind)}
    return {key: content for key, content in value.items() if key in names}
