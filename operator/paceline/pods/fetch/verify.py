"""Compares the files on the volume with the hub's listing: the volume is shared, and its other users may write to it.

Every file is read once before a set is marked complete, also those that others have downloaded. A file that differs is
removed, and the next try downloads it again.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from paceline.pods.fetch.hub import FileListing
from paceline.pods.fetch.request import FetchError

_READERS = 4
"""Files read at once: hashing takes a core for one or two GB a second."""
RUNS_CODE = {
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle"),
    b"PK\x03\x04": "an archive of the kind in which PyTorch keeps pickles",
    b"\x7fELF": "a program",
    b"\x1f\x8b": "compressed",
}
"""First bytes of files that cannot be a tokenizer or a configuration, whatever their name."""


def verify_snapshot(listing: FileListing, snapshot: Path) -> None:
    """Raises FetchError if a file in the snapshot's directory differs from the listing."""
    source = listing.pinned.artifact.source
    origin = "the bucket" if source.in_bucket else "the hub"
    began = time.monotonic()
    repository = snapshot.parent.parent
    if snapshot.resolve() != repository.parent.resolve() / repository.name / "snapshots" / snapshot.name:
        raise FetchError(f"{snapshot} is a link; remove it from the volume", final=True, source=source)
    for file in _unlisted(listing, snapshot):
        print(f"{source}: {file.relative_to(snapshot)} is not in {origin}, removed", flush=True)
        file.unlink()
    with ThreadPoolExecutor(_READERS) as readers:
        wrong = list(filter(None, readers.map(partial(_remove_if_wrong, listing, snapshot), listing.files)))
    if wrong:
        raise FetchError(
            f"{wrong[0]} on the cache volume is not what {origin} "
            f"lists{f', and {len(wrong) - 1} more' if len(wrong) > 1 else ''}; removed, and fetched again with the "
            "next try",
            final=False,
            source=source,
        )
    for name in listing.files:
        _refuse_code(listing, name, snapshot / name)
    if (took := time.monotonic() - began) > 1:
        print(f"{source}: read once to check it, {took:.0f} s", flush=True)


def _remove_if_wrong(listing: FileListing, snapshot: Path, name: str) -> str:
    """Remove the file if its content differs from the listing. Returns its name if it was removed, else ""."""
    link, repository = snapshot / name, snapshot.parent.parent.resolve()
    file = Path(os.path.realpath(link))
    inside = file.is_relative_to(repository)
    try:
        if inside and stat.S_ISREG(file.stat().st_mode):
            digest = listing.digests.get(name, "")
            if file.stat().st_size == listing.files[name] and (not digest or _digest(file, digest) == digest):
                return ""
    except FileNotFoundError:
        pass
    if inside and file != link:
        file.unlink(missing_ok=True)
    link.unlink(missing_ok=True)
    return name


def _digest(path: Path, like: str) -> str:
    """The hub's digest of the content: the SHA-256 of a large file, Git's blob id of any other."""
    with path.open("rb") as file:
        if len(like) == hashlib.sha256().digest_size * 2:
            return hashlib.file_digest(file, "sha256").hexdigest()
        header = hashlib.sha1(b"blob %d\0" % path.stat().st_size)
        return hashlib.file_digest(file, header.copy).hexdigest()


def _refuse_code(listing: FileListing, name: str, path: Path) -> None:
    if name.endswith((".safetensors", ".py")):
        return
    with path.open("rb") as file:
        beginning = file.read(4)
    if kind := next((kind for magic, kind in RUNS_CODE.items() if beginning.startswith(magic)), ""):
        raise FetchError(
            f"{name} is {kind}: reading it may run code; name a repository without it",
            final=True,
            source=listing.pinned.artifact.source,
        )


def _unlisted(listing: FileListing, snapshot: Path) -> Iterator[Path]:
    """Files that the hub does not list. Empty for a dataset's directory: other prefetches download its other files."""
    for folder, folders, files in os.walk(snapshot if listing.all_files else os.devnull):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*links, *files):
            path = Path(folder) / name
            if str(path.relative_to(snapshot)) not in listing.all_files:
                yield path
