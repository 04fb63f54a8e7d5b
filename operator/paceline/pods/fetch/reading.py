"""A model's directory → facts, without reading weights. Also for the CLI: `facts_of` accepts any downloaded model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.core import ModelFacts
from paceline.core.text import error_text
from paceline.pods.fetch.request import FetchError
from paceline.pods.opened import opened, read_at_most, small_file
from paceline.preflight import model_facts
from paceline.preflight.weights import Shape, module_of

INDEX = "model.safetensors.index.json"
LARGEST_CONFIG = 16 << 20
LARGEST_INDEX = 256 << 20
"""Maximum bytes of an index. The largest known one has some 200,000 tensors of 100 bytes."""
_ODD = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""Errors for a well-formed file with meaningless content."""
LONGEST_HEADER = 100_000_000
"""Maximum bytes of a header, from the format's definition."""
_NUMBERS = frozenset({"F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "I64", "I32"})
"""Types of the format with one number per cell; others may pack several."""


def facts_of(source: str, folder: Path, *, has_code: bool = False) -> ModelFacts:
    """Raises FetchError, which names `source`. `has_code`: the repository has Python files that are not here."""
    found, config = weights(source, folder), _config(source, folder)
    code = has_code or any(folder.glob("*.py"))
    try:
        return model_facts(config, found.bytes, found.tensors, found.shapes, has_code=code)
    except _ODD as error:
        sentence = f"config.json is not a model's: {error_text(error)}"
        raise FetchError(sentence, final=True, source=source) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Tensors by name, the shapes with a relevant size, and the bytes of their files."""

    tensors: frozenset[str]
    shapes: Mapping[str, Shape]
    bytes: int


def weights(source: str, folder: Path) -> Weights:
    """An index has all names; otherwise the files' headers are read. Copies of the same weights under other names
    (`consolidated.safetensors`) count only if no index leaves them out."""
    try:
        if (folder / INDEX).exists():
            mapped = json.loads(_text(source, folder / INDEX, LARGEST_INDEX))["weight_map"]
            named = sorted(set(mapped.values()))
            if odd := next((name for name in named if Path(name).is_absolute() or ".." in Path(name).parts), None):
                raise ValueError(f"{odd} is not in the repository")
            size = sum((folder / name).stat().st_size for name in named)
            of_interest = sorted({file for tensor, file in mapped.items() if module_of(tensor)})
            headers = {name: entry for file in of_interest for name, entry in _header(source, folder / file).items()}
            return Weights(tensors=frozenset(mapped), shapes=_shapes(headers), bytes=size)
    except FileNotFoundError:
        pass
    except _ODD as error:
        raise FetchError(f"{INDEX} names no weights: {error_text(error):.200}", final=True, source=source) from error
    files = sorted(folder.glob("*.safetensors")) or sorted(folder.rglob("*.safetensors"))
    headers = {name: entry for path in files for name, entry in _header(source, path).items()}
    size = sum(path.stat().st_size for path in files)
    return Weights(tensors=frozenset(headers), shapes=_shapes(headers), bytes=size)


def _shapes(headers: Mapping[str, Any]) -> dict[str, Shape]:
    return {
        name: tuple(entry["shape"])
        for name, entry in headers.items()
        if module_of(name)
        and isinstance(entry, dict)
        and entry.get("dtype") in _NUMBERS
        and _is_shape(entry.get("shape"))
    }


def _is_shape(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(side, int) for side in value)


def _header(source: str, path: Path) -> dict[str, Any]:
    """The first 8 bytes are the length, little-endian, followed by JSON of that length."""
    with opened(path, through_links=True) as file:
        length = int.from_bytes(read_at_most(file, 8), "little") if file is not None else 0
        header = read_at_most(file, length) if file is not None and length <= LONGEST_HEADER else b""
    try:
        named = json.loads(header)
        if not isinstance(named, dict):
            raise TypeError(f"a header of {type(named).__name__}")
        return {name: entry for name, entry in named.items() if name != "__metadata__"}
    except _ODD as error:
        sentence = f"{path.name} has no safetensors header; name a repository whose weights are whole"
        raise FetchError(sentence, final=True, source=source) from error


def _config(source: str, folder: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(_text(source, folder / "config.json", LARGEST_CONFIG))
    except (ValueError, RecursionError) as error:
        raise FetchError(f"config.json is not JSON: {error_text(error)}", final=True, source=source) from error
    return config if isinstance(config, dict) else {}


def _text(source: str, path: Path, most: int) -> str:
    found = small_file(path, most, through_links=True)
    if found is None:
        sentence = f"{path.name} is not a file of at most {most >> 20} MiB; name a repository that has one"
        raise FetchError(sentence, final=True, source=source)
    return found.decode()
