"""Models that are already on the volume (`pvc://CLAIM/PATH`): they are listed and get a commit, not downloaded."""

import hashlib
from pathlib import Path

from paceline.fetching import Artifact
from paceline.pods.fetch.hub import FileListing, Pinned
from paceline.pods.fetch.reading import LARGEST_CONFIG
from paceline.pods.fetch.request import FetchError
from paceline.pods.opened import small_file


def list_local_files(artifact: Artifact, volume: Path) -> FileListing:
    """The model's files. Its commit is a digest of their names and sizes and of config.json, which detects a replaced
    model without reading the weights."""
    source, path = artifact.source, artifact.source.path
    folder = volume / path
    if not folder.is_dir():
        where = f"{path}, in the cache volume"
        raise FetchError(f"no directory {where}; correct the path or put the model there", final=True, source=source)
    files = {str(file.relative_to(folder)): file.stat().st_size for file in sorted(folder.rglob("*")) if file.is_file()}
    if "config.json" not in files:
        raise FetchError(f"no config.json in {path}; not a model", final=True, source=source)
    if not any(name.endswith(".safetensors") for name in files):
        raise FetchError(f"no safetensors in {path}; other weights are not served", final=True, source=source)
    config = small_file(folder / "config.json", LARGEST_CONFIG, through_links=True)
    if config is None:
        raise FetchError(f"config.json in {path} is not a small file; not a model", final=True, source=source)
    digest = hashlib.sha256(config)
    for name, size in files.items():
        digest.update(f"{name} {size}\n".encode())
    return FileListing(
        pinned=Pinned(artifact=artifact, commit=digest.hexdigest()[:40]),
        files=files,
        has_code=any(name.endswith(".py") for name in files),
    )
