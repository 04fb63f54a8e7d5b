"""What is on the cache volume: complete sets, what is left of interrupted downloads, revisions nobody needs."""

import hashlib
import json
import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import scan_cache_dir

from paceline.core.text import printable
from paceline.pods.fetch.hub import COMMIT, MORE_ROOM, Listing, Pinned
from paceline.pods.fetch.request import FetchError, Request
from paceline.pods.opened import small_file
from paceline.preflight import Fetched, read_message, write_message
from paceline.preflight.facts import LONGEST

PROGRESS_SECONDS = 30.0
LARGEST_NOTE = 1 << 20
"""Bytes: some twenty thousand commits."""


def cache(path: Path) -> Path:
    return path / "hub"


def folder(path: Path, pinned: Pinned) -> Path:
    """Where the repository's files are."""
    if pinned.wish.place:
        return path / pinned.wish.place
    return cache(path) / _folder(pinned) / "snapshots" / pinned.commit


def place(path: Path, pinned: Pinned) -> Path:
    """Of what is asked for: a model's directory, a dataset's file."""
    return folder(path, pinned) / pinned.wish.file


def lock_path(path: Path, pinned: Pinned) -> Path:
    return path / "fetch" / "locks" / f"{_folder(pinned)}.lock"


def completed(request: Request, pins: Sequence[Pinned]) -> Fetched | None:
    """What an earlier fetch of the same reported, if all of it is still there; its marker is made new again. A marker
    that speaks of anything else than what is asked for is none."""
    marker = _marker(request, pins)
    found = _read_marker(marker)
    asked = {(pin.wish.source, pin.wish.revision, pin.commit, str(place(request.path, pin))) for pin in pins}
    there = [*found.models, *found.datasets] if found else []
    if {(one.source, one.revision, one.commit, one.path) for one in there} != asked:
        return None
    if found is None or not all(_whole(Path(one.path)) for one in there):
        return None
    marker.touch()
    return found


def mark_complete(request: Request, pins: Sequence[Pinned], fetched: Fetched) -> None:
    """From now on the set is there."""
    try:
        text = write_message(fetched)
    except ValueError as error:
        raise FetchError(f"{error}; name fewer draft heads, or fewer datasets of the hub", final=True) from error
    marker = _marker(request, pins)
    marker.parent.mkdir(parents=True, exist_ok=True)
    _replace(marker, text)


def sweep(path: Path, pins: Iterable[Pinned]) -> None:
    """Remove what interrupted downloads left behind. Only for repositories whose locks are held."""
    for pinned in pins:
        for left in (cache(path) / _folder(pinned) / "blobs").glob("*.incomplete"):
            left.unlink(missing_ok=True)


def check_room(path: Path, listings: Iterable[Listing]) -> None:
    """Raises FetchError if what is still missing does not fit: better now than after an hour."""
    missing = sum(_missing(path, listed) for listed in listings)
    free = shutil.disk_usage(path).free
    if missing > free:
        raise FetchError(
            f"the cache volume is too small: {_gigabytes(missing)} are to be fetched, {_gigabytes(free)} are free; "
            f"{MORE_ROOM}",
            final=True,
        )


@contextmanager
def progress(path: Path, listings: Sequence[Listing]) -> Iterator[None]:
    """A line now and then that says how far the download is."""
    total = _gigabytes(sum(listed.size for listed in listings))
    stop = threading.Event()

    def tell() -> None:
        while not stop.wait(PROGRESS_SECONDS):
            blobs = (cache(path) / _folder(listed.pinned) / "blobs" for listed in listings)
            there = sum(entry.stat().st_size for folder in blobs for entry in folder.glob("*") if entry.exists())
            print(f"{_gigabytes(there)} of {total}", flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def note_use(request: Request, pins: Sequence[Pinned]) -> None:
    """Leave word for all who share the volume: these commits are served, or may be before this user asks again."""
    if not request.user:
        return
    commits = sorted({pinned.commit for pinned in pins} | request.in_use)
    note = _users(request.path) / f"{request.user.replace('/', '.')}.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    _replace(note, json.dumps(commits))


def remove_unused(request: Request, pins: Sequence[Pinned]) -> None:
    """Keep, of each of these repositories, the newest `keep_revisions`, and what is wanted or in use by anybody.

    A revision is as new as the last fetch that asked for it; one that no complete set names is the oldest of all. What
    is asked for is there by now: whatever is wrong with what others have left, nothing is removed and nobody is kept.
    """
    try:
        _remove_unused(request, pins)
    except (OSError, ValueError) as error:
        print(f"nothing is removed from the volume: {printable(str(error))}", flush=True)


def _remove_unused(request: Request, pins: Sequence[Pinned]) -> None:
    if not cache(request.path).is_dir():
        return
    sets = {marker: found for marker in _sets(request.path).glob("*.json") if (found := _read_marker(marker))}
    asked: dict[str, float] = {}
    for marker, found in sets.items():
        for one in (*found.models, *found.datasets):
            asked[one.commit] = max(asked.get(one.commit, 0.0), marker.stat().st_mtime)
    wanted = {pinned.commit for pinned in pins}
    repositories = {(pinned.wish.kind, pinned.wish.repository) for pinned in pins}
    used = request.in_use.union(*map(_commits, _users(request.path).glob("*.json")))
    scan = scan_cache_dir(cache(request.path))
    unused: set[str] = set()
    for repository in scan.repos:
        if (repository.repo_type, repository.repo_id) in repositories:
            commits = {revision.commit_hash for revision in repository.revisions}
            newest = sorted(commits, key=lambda commit: (commit in wanted, asked.get(commit, 0.0)), reverse=True)
            unused |= set(newest[request.keep_revisions :]) - wanted - used
    if not unused:
        return
    for marker, found in sets.items():
        if any(one.commit in unused for one in (*found.models, *found.datasets)):
            marker.unlink(missing_ok=True)  # first: a marker must not promise what is going
    removal = scan.delete_revisions(*unused)
    print(f"removing {len(unused)} unused revisions, {removal.expected_freed_size_str}", flush=True)
    removal.execute()


def _commits(note: Path) -> frozenset[str]:
    """Of a user's note. Raises ValueError: what it may serve is not known then, and must not go."""
    text = small_file(note, LARGEST_NOTE)
    try:
        commits = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        commits = None
    if not isinstance(commits, list) or not all(isinstance(one, str) and COMMIT.fullmatch(one) for one in commits):
        raise ValueError(f"{note} is no list of commits; correct or delete it")
    return frozenset(commits)


def _missing(path: Path, listed: Listing) -> int:
    snapshot = folder(path, listed.pinned)
    return sum(size for name, size in listed.files.items() if not (snapshot / name).exists())


def _whole(snapshot: Path) -> bool:
    """The snapshot's links all lead somewhere; of a dataset, the one."""
    return snapshot.exists() and all(entry.exists() for entry in snapshot.rglob("*"))


def _folder(pinned: Pinned) -> str:
    """The client's name for a repository's directory."""
    return f"{pinned.wish.kind}s--{pinned.wish.repository.replace('/', '--')}"


def _sets(path: Path) -> Path:
    return path / "fetch" / "sets"


def _users(path: Path) -> Path:
    return path / "fetch" / "users"


def _replace(path: Path, text: str) -> None:
    """Whole or not at all."""
    fresh = path.with_suffix(f".{uuid.uuid4().hex}.new")  # a name that nobody can have given to a link
    with fresh.open("x") as file:
        file.write(text)
    fresh.rename(path)


def _marker(request: Request, pins: Sequence[Pinned]) -> Path:
    names = (f"{pinned.wish.source} {pinned.wish.revision} {pinned.commit}" for pinned in pins)
    text = "\n".join((*names, *request.patterns))
    return _sets(request.path) / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def _read_marker(marker: Path) -> Fetched | None:
    text = small_file(marker, LONGEST)
    try:
        return read_message(text.decode()) if text else None
    except ValueError:
        return None


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
