"""Prompts from the cluster as files of this machine: named by `--prompts`, in a ConfigMap of the question's file, or
below the directory of `--models`."""

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.core import Dataset, Scheme
from paceline.core.manifest import Object
from paceline.measure.models import MissingError, ModelKey, file_of


def local_prompt_files(
    datasets: Sequence[Dataset],
    named: Mapping[str, Path],
    objects: Sequence[Object],
    directory: Path | None,
    folder: Path,
) -> dict[ModelKey, Path]:
    """Files of datasets that are neither built in nor on the hub. `named`: by dataset, for all datasets with the same
    source; `objects`: of the question's file; `directory`: of `--models`. Prompts of a ConfigMap are written into
    `folder`. A file keeps its suffix, which shows whether it is a table. Raises MissingError."""
    sources = {one.name: one.source for one in datasets}
    for name, place in named.items():
        if name not in sources:
            there = ", ".join(sources) or "none"
            raise MissingError(f"--prompts {name}: no dataset {name} has its file in the cluster; these do: {there}")
        if not place.is_file():
            raise MissingError(f"--prompts {name}={place}: there is no such file")
    given = {sources[name]: place.resolve() for name, place in named.items()}
    return {
        (one.source, one.revision): given.get(one.source)
        or _in_a_config_map(one, objects, folder)
        or file_of(one, directory)
        for one in datasets
    }


def _in_a_config_map(dataset: Dataset, objects: Sequence[Object], folder: Path) -> Path | None:
    """The key of the ConfigMap in the source, as a pod would find it; None if no object has it."""
    source = dataset.address
    for one in objects if source.scheme is Scheme.CONFIG_MAP else ():
        if one.get("kind") != "ConfigMap" or (one.get("metadata") or {}).get("name") != source.name:
            continue
        text, packed = ((one.get(field) or {}).get(source.path) for field in ("data", "binaryData"))
        content = text.encode() if isinstance(text, str) else _unpacked(packed, dataset)
        if content is not None:
            place = folder / f"prompts-{source.name}-{source.path}"
            place.write_bytes(content)
            return place
    return None


def _unpacked(packed: Any, dataset: Dataset) -> bytes | None:
    try:
        return base64.b64decode("".join(packed.split()), validate=True) if isinstance(packed, str) else None
    except ValueError as error:
        raise MissingError(f"{dataset.source}: binaryData of the ConfigMap is not base64: {error}") from error
