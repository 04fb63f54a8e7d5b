"""A model's directory → facts, without reading a weight. Also for a desk: `facts_of` takes any downloaded model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.pods.fetch.request import FetchError
from paceline.preflight import ModelFacts, model_facts

INDEX = "model.safetensors.index.json"
LONGEST_HEADER = 100_000_000
"""Bytes, of the format's own definition."""


def facts_of(source: str, folder: Path, *, has_code: bool = False) -> ModelFacts:
    """Raises FetchError, which names `source`. `has_code`: the repository has Python files that are not here."""
    found = weights(source, folder)
    code = has_code or any(folder.glob("*.py"))
    return model_facts(_config(source, folder), found.bytes, found.tensors, has_code=code)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Tensors by name, and the bytes of the files they are in."""

    tensors: frozenset[str]
    bytes: int


def weights(source: str, folder: Path) -> Weights:
    """Where there is an index it has all names; else the files' headers have. Copies of the same weights under other
    names (`consolidated.safetensors`) count only where no index leaves them out."""
    try:
        mapped = json.loads((folder / INDEX).read_text())["weight_map"]
        files = [folder / name for name in sorted(set(mapped.values()))]
        return Weights(tensors=frozenset(mapped), bytes=sum(path.stat().st_size for path in files))
    except FileNotFoundError:
        files = sorted(folder.glob("*.safetensors")) or sorted(folder.rglob("*.safetensors"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FetchError(f"{source}: {INDEX} names no weights: {error!r}", final=True) from error
    return Weights(
        tensors=frozenset(name for path in files for name in _names(source, path)),
        bytes=sum(path.stat().st_size for path in files),
    )


def _names(source: str, path: Path) -> list[str]:
    """8 bytes of length, little end first, then that much JSON."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = file.read(length) if length <= LONGEST_HEADER else b""
    try:
        return [name for name in json.loads(header) if name != "__metadata__"]
    except ValueError as error:
        sentence = f"{source}: {path.name} has no safetensors header; name a repository whose weights are whole"
        raise FetchError(sentence, final=True) from error


def _config(source: str, folder: Path) -> Mapping[str, Any]:
    try:
        config = json.loads((folder / "config.json").read_text())
    except ValueError as error:
        raise FetchError(f"{source}: config.json is not JSON: {error}", final=True) from error
    return config if isinstance(config, dict) else {}
