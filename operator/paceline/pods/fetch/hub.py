"""The hub, through its own client: what there is, and bringing it."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, hf_hub_download, snapshot_download
from huggingface_hub.constants import ENDPOINT
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    LocalEntryNotFoundError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from paceline.pods.fetch.request import FetchError, Request, Wish
from paceline.pods.round.dataset import LARGEST

COMMIT = re.compile(r"[0-9a-f]{40}")
MORE_ROOM = "enlarge the cache claim (spec.cache.claim.size)"
TOKEN = "give a token in spec.cache.tokenSecretRef"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """A wish whose revision is known as a commit."""

    wish: Wish
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files to bring: path in the repository → bytes."""

    pinned: Pinned
    files: dict[str, int]
    has_code: bool = False
    """There are Python files, wanted or not."""

    @property
    def size(self) -> int:
        return sum(self.files.values())

    @property
    def weights(self) -> int:
        return sum(size for path, size in self.files.items() if path.endswith(".safetensors"))


def pin(wish: Wish) -> Pinned:
    """Resolve the revision; a commit needs no question, nor what was resolved before."""
    if COMMIT.fullmatch(known := wish.commit or wish.revision):
        return Pinned(wish=wish, commit=known)
    with explained(wish):
        commit = HfApi().repo_info(wish.repository, revision=wish.revision, repo_type=wish.kind).sha
    if commit is None:
        raise FetchError(f"{wish.source}: {ENDPOINT} names no commit for revision {wish.revision}", final=False)
    return Pinned(wish=wish, commit=commit)


def listing(pinned: Pinned, request: Request) -> Listing:
    """What is to be brought. Refuses a repository without weights that can be loaded safely."""
    wish = pinned.wish
    if wish.file:
        return _listing_of_prompts(pinned)
    with explained(wish):
        tree = HfApi().list_repo_tree(wish.repository, recursive=True, revision=pinned.commit)
        there = {entry.path: entry.size for entry in tree if isinstance(entry, RepoFile)}
    files = {
        path: size for path, size in there.items() if any(fnmatchcase(path, pattern) for pattern in request.patterns)
    }
    found = Listing(pinned=pinned, files=files, has_code=any(path.endswith(".py") for path in there))
    if not found.weights:
        raise FetchError(
            f"{wish.source}: no safetensors in revision {wish.revision}; other weight files are not fetched, "
            "name a repository that has them",
            final=True,
        )
    if "config.json" not in files:
        raise FetchError(f"{wish.source}: no config.json in revision {wish.revision}; not a model", final=True)
    return found


def _listing_of_prompts(pinned: Pinned) -> Listing:
    """One file, of a size that can be read."""
    wish = pinned.wish
    with explained(wish):
        found = HfApi().get_paths_info(wish.repository, [wish.file], revision=pinned.commit, repo_type=wish.kind)
    size = next((entry.size for entry in found if isinstance(entry, RepoFile)), None)
    if size is None:
        raise FetchError(f"{wish.source}: no such file in revision {wish.revision}; correct the path", final=True)
    if size > LARGEST:
        raise FetchError(f"{wish.source}: larger than {LARGEST >> 20} MiB; name a file with a part of it", final=True)
    return Listing(pinned=pinned, files={wish.file: size})


def bring_first(listed: Listing, cache: Path) -> None:
    """A small file: a repository we may not read is found out before the others' weights are downloaded. Of a dataset
    it is all."""
    wish, commit = listed.pinned.wish, listed.pinned.commit
    name = wish.file or "config.json"
    with explained(wish):
        path = hf_hub_download(wish.repository, name, repo_type=wish.kind, revision=commit, cache_dir=cache)
        _check_size(listed, name, Path(path))


def bring(listed: Listing, request: Request, cache: Path) -> None:
    """All files of a model; those that are complete already are left alone."""
    pinned = listed.pinned
    wish = pinned.wish
    with explained(wish):
        path = Path(
            snapshot_download(
                wish.repository, revision=pinned.commit, cache_dir=cache, allow_patterns=list(request.patterns)
            )
        )
        for name in listed.files:
            _check_size(listed, name, path / name)


def _check_size(listed: Listing, name: str, path: Path) -> None:
    if path.stat().st_size != listed.files[name]:
        source = listed.pinned.wish.source
        raise FetchError(f"{source}: {name} arrived with another size than the hub lists", final=False)


@contextmanager
def explained(wish: Wish) -> Iterator[None]:
    """Turns what the client raises into one sentence that says the way out."""
    try:
        yield
    except (OSError, ValueError, httpx2.HTTPError) as error:
        raise _explanation(error, wish) from error


def _explanation(error: BaseException, wish: Wish) -> FetchError:
    while isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__  # "nothing in the cache either": the reason is below
    source = wish.source
    revision = f"{wish.revision} ({wish.commit})" if wish.commit else wish.revision
    match error:
        case GatedRepoError():
            return FetchError(f"{source}: gated; accept its terms on the hub and {TOKEN}", final=True)
        case RepositoryNotFoundError():
            sentence = f"{source}: no such repository, or a private one; correct the source or {TOKEN}"
            return FetchError(sentence, final=True)
        case RevisionNotFoundError():
            return FetchError(f"{source}: no revision {revision}; name a branch, tag or commit it has", final=True)
        case RemoteEntryNotFoundError():
            return FetchError(f"{source}: a file listed in revision {revision} is not there", final=False)
        case DisabledRepoError():
            return FetchError(f"{source}: disabled on the hub; name another repository", final=True)
        case HfHubHTTPError(response=response) if response.status_code in (401, 403):
            return FetchError(f"{source}: the hub refused the token; {TOKEN} that may read it", final=True)
        case HfHubHTTPError(response=response):
            return FetchError(f"{source}: {ENDPOINT} answered {response.status_code}", final=False)
        case httpx2.HTTPError() | LocalEntryNotFoundError() | ConnectionError():
            unreached = f"{source}: {ENDPOINT} cannot be reached ({_short(error)})"
            return FetchError(f"{unreached}; check HF_ENDPOINT and the proxies in spec.cache.env", final=False)
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return FetchError(f"{source}: the cache volume is full; {MORE_ROOM}", final=True)
        case OSError(errno=errno.EACCES | errno.EROFS):
            return FetchError(f"{source}: cannot write to the cache volume ({_short(error)})", final=True)
    return FetchError(f"{source}: {_short(error)}", final=False)


def _short(error: BaseException) -> str:
    """The error's first line, at most 200 characters."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
