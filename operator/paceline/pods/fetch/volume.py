"""The cache volume: complete sets, remains of interrupted downloads, unused revisions."""

import hashlib
import json
import shutil
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HFCacheInfo, scan_cache_dir

from paceline.core.text import printable
from paceline.fetching import LARGEST_MESSAGE, WHOLE_COMMIT, FetchRequest, FetchResult
from paceline.pods.fetch.hub import ENLARGE_CLAIM, FileListing, Pinned
from paceline.pods.fetch.request import FetchError, patterns
from paceline.pods.opened import small_file

PROGRESS_SECONDS = 30.0
LARGEST_NOTE = 1 << 20
"""Maximum bytes of a note: enough for some twenty thousand commits."""


def cache(path: Path) -> Path:
    return path / "hub"


def repository_folder(path: Path, pinned: Pinned) -> Path:
    """The directory with the repository's files."""
    if pinned.artifact.is_local:
        return path / pinned.artifact.source.path
    return _repository(path, pinned) / "snapshots" / pinned.commit


def place(path: Path, pinned: Pinned) -> Path:
    """A model's directory, or a dataset's file."""
    directory = repository_folder(path, pinned)
    return directory / pinned.artifact.source.path if pinned.artifact.is_dataset else directory


def lock_path(path: Path, pinned: Pinned) -> Path:
    return path / "fetch" / "locks" / f"{pinned.artifact.source.cache_folder}.lock"


def completed(request: FetchRequest, pins: Sequence[Pinned]) -> FetchResult | None:
    """The result of an earlier fetch of the same set, if all of it still exists; touches its marker. None if the marker
    names another set."""
    marker = _marker(request, pins)
    result = _read_marker(marker)
    if result is None:
        return None
    wanted = {
        (str(pin.artifact.source), pin.artifact.revision, pin.commit, str(place(Path(request.path), pin)))
        for pin in pins
    }
    downloaded = (*result.models, *result.datasets)
    if {(entry.source, entry.revision, entry.commit, entry.path) for entry in downloaded} != wanted:
        return None
    if not all(_is_complete(Path(entry.path)) for entry in downloaded):
        return None
    marker.touch()
    return result


def mark_complete(request: FetchRequest, pins: Sequence[Pinned], result: FetchResult) -> None:
    """Write the set's marker."""
    try:
        text = result.to_message()
    except ValueError as error:
        raise FetchError(f"{error}; name fewer draft heads, or fewer datasets of the hub", final=True) from error
    marker = _marker(request, pins)
    marker.parent.mkdir(parents=True, exist_ok=True)
    _replace(marker, text)


def remove_partial_downloads(path: Path, pins: Iterable[Pinned]) -> None:
    """Remove the remains of interrupted downloads. Only for repositories whose locks are held."""
    for pinned in pins:
        for partial in (_repository(path, pinned) / "blobs").glob("*.incomplete"):
            partial.unlink(missing_ok=True)


def check_free_space(path: Path, listings: Iterable[FileListing]) -> None:
    """Raises FetchError if the missing files do not fit: better now than after an hour of downloading."""
    missing = sum(_missing(path, listing) for listing in listings)
    free = shutil.disk_usage(path).free
    if missing > free:
        raise FetchError(
            f"the cache volume is too small: {_gigabytes(missing)} are to be fetched, but only {_gigabytes(free)} "
            f"are free; {ENLARGE_CLAIM}",
            final=True,
        )


@contextmanager
def log_progress(path: Path, listings: Sequence[FileListing]) -> Iterator[None]:
    """Log the size of the download every 30 seconds."""
    total = _gigabytes(sum(listing.size for listing in listings))
    stop = threading.Event()

    def log() -> None:
        while not stop.wait(PROGRESS_SECONDS):
            blobs = (_repository(path, listing.pinned) / "blobs" for listing in listings)
            size = sum(entry.stat().st_size for folder in blobs for entry in folder.glob("*") if entry.exists())
            print(f"{_gigabytes(size)} of {total}", flush=True)

    thread = threading.Thread(target=log, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def record_use(request: FetchRequest, pins: Sequence[Pinned]) -> None:
    """Write a note for other users of the volume: the commits that this user serves, or may serve before its next
    prefetch."""
    if not request.user:
        return
    commits = sorted({*(pinned.commit for pinned in pins), *request.in_use})
    note = _users(Path(request.path)) / f"{request.user.replace('/', '.')}.json"
    note.parent.mkdir(parents=True, exist_ok=True)
    _replace(note, json.dumps(commits))


def remove_unused(request: FetchRequest, pins: Sequence[Pinned]) -> None:
    """Remove revisions of these repositories, except the newest `keep_revisions`, the wanted ones, and those in use.

    A revision's age is the time of the last fetch that requested it; revisions in no complete set count as the oldest.
    If the notes of other users cannot be read, nothing is removed and the prefetch succeeds.
    """
    try:
        _remove_unused(request, pins)
    except (OSError, ValueError) as error:
        print(f"nothing is removed from the volume: {printable(str(error))}", flush=True)


def _remove_unused(request: FetchRequest, pins: Sequence[Pinned]) -> None:
    path = Path(request.path)
    if not cache(path).is_dir():
        return
    sets = {marker: result for marker in _sets(path).glob("*.json") if (result := _read_marker(marker))}
    scan = scan_cache_dir(cache(path))
    unused = _unused(request, pins, _last_requested(sets), scan)
    if not unused:
        return
    for marker, result in sets.items():
        if unused & set(_commits(result)):
            marker.unlink(missing_ok=True)  # first: a marker must not list removed revisions
    removal = scan.delete_revisions(*unused)
    print(f"removing {len(unused)} unused revisions, {removal.expected_freed_size_str}", flush=True)
    removal.execute()


def _unused(
    request: FetchRequest, pins: Sequence[Pinned], requested: Mapping[str, float], scan: HFCacheInfo
) -> set[str]:
    """The commits to remove. `requested`: commit → time of the last request for it."""
    wanted = {pinned.commit for pinned in pins}
    repositories = {pinned.artifact.source.cache_folder for pinned in pins}
    used = frozenset(request.in_use).union(*map(_noted_commits, _users(Path(request.path)).glob("*.json")))
    unused: set[str] = set()
    for repository in scan.repos:
        if repository.repo_path.name in repositories:
            commits = {revision.commit_hash for revision in repository.revisions}
            newest = sorted(commits, key=lambda commit: (commit in wanted, requested.get(commit, 0.0)), reverse=True)
            unused |= set(newest[request.keep_revisions :]) - wanted - used
    return unused


def _last_requested(sets: Mapping[Path, FetchResult]) -> Mapping[str, float]:
    """Commit → time of the newest marker that names it."""
    times = [(commit, marker.stat().st_mtime) for marker, result in sets.items() for commit in _commits(result)]
    return dict(sorted(times, key=lambda entry: entry[1]))


def _commits(result: FetchResult) -> list[str]:
    return [entry.commit for entry in (*result.models, *result.datasets)]


def _noted_commits(note: Path) -> frozenset[str]:
    """The commits in a user's note. Raises ValueError if it cannot be read: nothing may be removed then."""
    text = small_file(note, LARGEST_NOTE)
    try:
        commits = json.loads(text) if text is not None else None
    except (ValueError, RecursionError):
        commits = None
    if not isinstance(commits, list) or not all(
        isinstance(item, str) and WHOLE_COMMIT.fullmatch(item) for item in commits
    ):
        raise ValueError(f"{note} is not a list of commits; correct or delete it")
    return frozenset(commits)


def _missing(path: Path, listing: FileListing) -> int:
    """Bytes still to be downloaded."""
    snapshot = repository_folder(path, listing.pinned)
    return sum(size for name, size in listing.files.items() if not (snapshot / name).exists())


def _is_complete(snapshot: Path) -> bool:
    """Whether no link of the snapshot is broken. A dataset is one link."""
    return snapshot.exists() and all(entry.exists() for entry in snapshot.rglob("*"))


def _repository(path: Path, pinned: Pinned) -> Path:
    return cache(path) / pinned.artifact.source.cache_folder


def _sets(path: Path) -> Path:
    return path / "fetch" / "sets"


def _users(path: Path) -> Path:
    return path / "fetch" / "users"


def _replace(path: Path, text: str) -> None:
    """Write the file atomically: a reader never sees a part of it."""
    fresh = path.with_suffix(f".{uuid.uuid4().hex}.new")  # a random name: nobody can have placed a link there
    with fresh.open("x") as file:
        file.write(text)
    fresh.rename(path)


def _marker(request: FetchRequest, pins: Sequence[Pinned]) -> Path:
    names = (f"{pinned.artifact.source} {pinned.artifact.revision} {pinned.commit}" for pinned in pins)
    text = "\n".join((*names, *patterns(request)))
    return _sets(Path(request.path)) / f"{hashlib.sha256(text.encode()).hexdigest()[:20]}.json"


def _read_marker(marker: Path) -> FetchResult | None:
    text = small_file(marker, LARGEST_MESSAGE)
    try:
        return FetchResult.from_message(text.decode()) if text else None
    except ValueError:
        return None


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.2f} GB"
