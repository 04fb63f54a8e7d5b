"""Models that are on the volume already (`pvc://CLAIM/PATH`): nothing is brought, they are looked at and named."""

import hashlib
from pathlib import Path

from paceline.pods.fetch.hub import Listing, Pinned
from paceline.pods.fetch.reading import LARGEST_CONFIG
from paceline.pods.fetch.request import FetchError, Wish
from paceline.pods.opened import small_file


def look(wish: Wish, volume: Path) -> Listing:
    """What there is. Its commit is a digest of the files' names and sizes and of config.json: enough to notice that
    somebody has put other files there, without reading the weights."""
    folder = volume / wish.place
    if not folder.is_dir():
        where = f"{wish.place}, in the cache volume"
        raise FetchError(f"{wish.source}: no directory {where}; correct the path or put the model there", final=True)
    files = {str(path.relative_to(folder)): path.stat().st_size for path in sorted(folder.rglob("*")) if path.is_file()}
    if "config.json" not in files:
        raise FetchError(f"{wish.source}: no config.json in {wish.place}; not a model", final=True)
    if not any(name.endswith(".safetensors") for name in files):
        raise FetchError(f"{wish.source}: no safetensors in {wish.place}; other weights are not served", final=True)
    config = small_file(folder / "config.json", LARGEST_CONFIG, through_links=True)
    if config is None:
        raise FetchError(f"{wish.source}: config.json in {wish.place} is no small file; not a model", final=True)
    digest = hashlib.sha256(config)
    for name, size in files.items():
        digest.update(f"{name} {size}\n".encode())
    return Listing(
        pinned=Pinned(wish=wish, commit=digest.hexdigest()[:40]),
        files=files,
        has_code=any(name.endswith(".py") for name in files),
    )
