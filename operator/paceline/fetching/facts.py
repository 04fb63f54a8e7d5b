"""The facts of a model that preflight's rules need, and their JSON form. Does not access files."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from paceline.core import ModelFacts

WHOLE_COMMIT = re.compile(r"[0-9a-f]{40}")
MOST_LAYERS = 1_000
"""Maximum layers of a model: rules iterate over them. Llama 3.1 405B has 126 (its config.json)."""
LARGEST_NUMBER = 10**15
"""The largest fact, bytes included: it fits in a status and in a float."""
WORD = re.compile("[ -~]{0,200}")
"""A class, a type or a repository (twice 96 characters on the hub)."""
MOST_WORDS = 16


def write_facts(facts: ModelFacts) -> dict[str, Any]:
    """The facts as JSON, without unknown ones."""
    return {key: value for key, value in asdict(facts).items() if value not in (None, (), {}, "")}


def read_facts(value: Mapping[str, Any]) -> ModelFacts:
    """The inverse of `write_facts`, also after JSON. Raises TypeError for a value that has the wrong type or is
    implausible."""
    facts = {name: fact for name, fact in known_fields(ModelFacts, value).items() if fact is not None}
    facts |= {name: tuple(fact) for name, fact in facts.items() if isinstance(fact, list)}
    if odd := next((name for name, fact in facts.items() if not _is_plausible(name, fact)), None):
        raise TypeError(f"{odd} is {facts[odd]!r:.80}")
    return ModelFacts(**facts)


def plausible(facts: ModelFacts) -> ModelFacts:
    """The facts without implausible values: a config.json can contain anything, and rules calculate with it."""
    known = {name: fact for name in KIND_OF if (fact := getattr(facts, name)) is not None}
    return ModelFacts(**{name: fact for name, fact in known.items() if _is_plausible(name, fact)})


def known_fields(kind: type[Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that are fields of the dataclass: a newer release may write more."""
    names = {field.name for field in fields(kind)}
    return {name: entry for name, entry in value.items() if name in names}


def is_number(value: Any, least: int = 0) -> bool:
    """A whole number that fits in a status."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_NUMBER


def _is_plausible(name: str, value: Any) -> bool:
    return _KINDS[KIND_OF[name]](value) and (name not in LAYERS or value <= MOST_LAYERS)


def _word(value: Any) -> bool:
    return isinstance(value, str) and WORD.fullmatch(value) is not None


def _layers(value: Any) -> bool:
    """Layer indexes; some heads count from the end, which a rule refuses if the engine does not."""
    if not isinstance(value, tuple) or len(value) > MOST_LAYERS:
        return False
    return all(is_number(layer, -MOST_LAYERS) for layer in value)


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    str(int | None): is_number,
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
        and all(map(is_number, value.values()))
    ),
}
"""Type of a field → whether an outside value has that type and fits in a status."""
KIND_OF = {field.name: str(field.type) for field in fields(ModelFacts)}
LAYERS = ("num_hidden_layers", "num_target_layers")
