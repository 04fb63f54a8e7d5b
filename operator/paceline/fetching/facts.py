"""The facts of a model that preflight's rules need, and their form in JSON. Nothing here touches a file."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from typing import Any

from paceline.core import ModelFacts

WHOLE_COMMIT = re.compile(r"[0-9a-f]{40}")
MOST_LAYERS = 1_000
"""Of a model: rules go through them one by one. Llama 3.1 405B has 126 (its config.json)."""
LARGEST_NUMBER = 10**15
"""The largest fact, bytes included: a status can hold it, and a float can be made of it."""
WORD = re.compile("[ -~]{0,200}")
"""A class, a type or a repository (two times 96 characters on the hub)."""
MOST_WORDS = 16


def write_facts(facts: ModelFacts) -> dict[str, Any]:
    """As JSON, without what is not known."""
    return {key: value for key, value in asdict(facts).items() if value not in (None, (), {}, "")}


def read_facts(value: Mapping[str, Any]) -> ModelFacts:
    """The inverse, also after JSON. Raises TypeError for a value of another type than its field's, or that no model
    has."""
    facts = {name: fact for name, fact in known_fields(ModelFacts, value).items() if fact is not None}
    facts |= {name: tuple(fact) for name, fact in facts.items() if isinstance(fact, list)}
    if odd := next((name for name, fact in facts.items() if not _is_plausible(name, fact)), None):
        raise TypeError(f"{odd} is {facts[odd]!r:.80}")
    return ModelFacts(**facts)


def plausible(facts: ModelFacts) -> ModelFacts:
    """Without values that no model has: a config.json can contain anything, and rules count with it."""
    known = {name: fact for name in KIND_OF if (fact := getattr(facts, name)) is not None}
    return ModelFacts(**{name: fact for name, fact in known.items() if _is_plausible(name, fact)})


def known_fields(kind: type[Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """The entries for which the dataclass has a field: a newer release may write more."""
    names = {field.name for field in fields(kind)}
    return {name: entry for name, entry in value.items() if name in names}


def is_number(value: Any, least: int = 0) -> bool:
    """A whole number that a status can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= LARGEST_NUMBER


def _is_plausible(name: str, value: Any) -> bool:
    return _KINDS[KIND_OF[name]](value) and (name not in LAYERS or value <= MOST_LAYERS)


def _word(value: Any) -> bool:
    return isinstance(value, str) and WORD.fullmatch(value) is not None


def _layers(value: Any) -> bool:
    """Indexes of layers; some heads count from the end, which a rule refuses where the engine does not."""
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
"""By a field's type: whether a value from outside has that type and is no more than a status can hold."""
KIND_OF = {field.name: str(field.type) for field in fields(ModelFacts)}
LAYERS = ("num_hidden_layers", "num_target_layers")
