"""Whether what is on the volume is what the hub lists: the volume is shared, and its other users may write to it.

It is looked at before a set is marked complete, all of it, whoever brought it: a weight file costs the time to read it
once. What is found to be something else is removed, so that the next try brings it anew.
"""

import hashlib
import os
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from paceline.pods.fetch.hub import Listing
from paceline.pods.fetch.request import FetchError

READERS = 4
"""Files read at once: hashing takes a core for one or two GB a second."""
RUNS_CODE = {
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle"),
    b"PK\x03\x04": "an archive, as PyTorch keeps pickles in",
    b"\x7fELF": "a program",
    b"\x1f\x8b": "compressed",
}
"""How a file begins that is none of a tokenizer's or a configuration's, whatever its name is."""


def check(listed: Listing, snapshot: Path) -> None:
    """Raises FetchError if anything in the snapshot's directory is not what was listed."""
    began = time.monotonic()
    repository = snapshot.parent.parent
    if snapshot.resolve() != repository.parent.resolve() / repository.name / "snapshots" / snapshot.name:
        raise FetchError(f"{listed.pinned.wish.source}: {snapshot} is a link; remove it from the volume", final=True)
    for stranger in _strangers(listed, snapshot):
        print(f"{listed.pinned.wish.source}: {stranger.relative_to(snapshot)} is not on the hub, removed", flush=True)
        stranger.unlink()
    with ThreadPoolExecutor(READERS) as readers:
        wrong = [name for name in readers.map(lambda name: _look(listed, snapshot, name), listed.files) if name]
    if wrong:
        raise FetchError(
            f"{listed.pinned.wish.source}: {wrong[0]} on the cache volume is not what the hub lists"
            f"{f', and {len(wrong) - 1} more' if len(wrong) > 1 else ''}; removed, and brought anew with the next try",
            final=False,
        )
    for name in listed.files:
        _refuse_code(listed, name, snapshot / name)
    if (took := time.monotonic() - began) > 1:
        print(f"{listed.pinned.wish.source}: read once to check it, {took:.0f} s", flush=True)


def _look(listed: Listing, snapshot: Path, name: str) -> str:
    """Its name if it is something else; that is removed."""
    link, repository = snapshot / name, snapshot.parent.parent.resolve()
    there = Path(os.path.realpath(link))
    inside = there.is_relative_to(repository)
    try:
        if inside and stat.S_ISREG(there.stat().st_mode):
            digest = listed.digests.get(name, "")
            if there.stat().st_size == listed.files[name] and (not digest or _digest(there, digest) == digest):
                return ""
    except FileNotFoundError:
        pass
    if inside and there != link:
        there.unlink(missing_ok=True)
    link.unlink(missing_ok=True)
    return name


def _digest(path: Path, like: str) -> str:
    """As the hub names the file: by SHA-256 a large one, as Git names a blob any other."""
    with path.open("rb") as file:
        if len(like) == hashlib.sha256().digest_size * 2:
            return hashlib.file_digest(file, "sha256").hexdigest()
        begun = hashlib.sha1(b"blob %d\0" % path.stat().st_size)
        return hashlib.file_digest(file, begun.copy).hexdigest()


def _refuse_code(listed: Listing, name: str, path: Path) -> None:
    if name.endswith((".safetensors", ".py")):
        return
    with path.open("rb") as file:
        begins = file.read(4)
    if found := next((kind for how, kind in RUNS_CODE.items() if begins.startswith(how)), ""):
        raise FetchError(
            f"{listed.pinned.wish.source}: {name} is {found}: reading it may run code; name a repository without it",
            final=True,
        )


def _strangers(listed: Listing, snapshot: Path) -> Iterator[Path]:
    """What is there and in no listing: somebody has put it there. Of a dataset others bring other files."""
    for folder, folders, files in os.walk(snapshot if listed.all_files else os.devnull):
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in (*links, *files):
            path = Path(folder) / name
            if str(path.relative_to(snapshot)) not in listed.all_files:
                yield path
