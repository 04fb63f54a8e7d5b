"""The hub, through its own client: what there is, and bringing it."""

import errno
import os
import re
import resource
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import httpx2
from huggingface_hub import HfApi, hf_hub_download, set_client_factory
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
from huggingface_hub.utils._http import default_client_factory

from paceline.core.text import printable
from paceline.pods.fetch.request import FetchError, Request, Wish
from paceline.pods.round.dataset import LARGEST

COMMIT = re.compile(r"[0-9a-f]{40}")
DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
NAME = re.compile(r"[\w-][\w.+-]{0,200}", re.ASCII)
"""What a hub may call a file or a commit in a header: the client makes a path of it."""
PLAIN = re.compile(r"(?!\.{1,2}(?:/|$))[^/\\\0]+(?:/(?!\.{1,2}(?:/|$))[^/\\\0]+)*")
"""A path below the repository."""
MOST_FILES = 50_000
AT_ONCE = 8
SLACK = 1 << 20
"""Bytes: what the client and we write beside the models is small."""
MORE_ROOM = "enlarge the cache claim (spec.cache.claim.size)"
TOKEN = "give a token in spec.cache.tokenSecretRef"


def whose() -> str:
    """The way out where the volume is another's."""
    us = f"uid {os.getuid()}, groups {', '.join(map(str, sorted({os.getgid(), *os.getgroups()})))}"
    return f"the prefetch is {us}: let that write there, or set spec.cache.securityContext to who may"


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
    digests: Mapping[str, str] = field(default_factory=dict)
    """Of these, as the hub names them: the SHA-256 of a large one, Git's SHA-1 of any other."""
    all_files: frozenset[str] = frozenset()
    """Of a model: wanted or not."""
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
        there = {entry.path: entry for entry in islice(tree, MOST_FILES + 1) if isinstance(entry, RepoFile)}
    if len(there) > MOST_FILES:
        raise FetchError(f"{wish.source}: lists more than {MOST_FILES} files; name another repository", final=True)
    if odd := next((path for path in there if not PLAIN.fullmatch(path)), None):
        raise FetchError(f"{wish.source}: lists {odd!r:.80}, which is no file's path; name another one", final=True)
    files = [entry for path, entry in there.items() if request.wants(path)]
    found = Listing(
        pinned=pinned,
        files={entry.path: entry.size for entry in files},
        digests=_digests(files),
        all_files=frozenset(there),
        has_code=any(path.endswith(".py") for path in there),
    )
    if not found.weights:
        raise FetchError(
            f"{wish.source}: no safetensors in revision {wish.revision}; other weight files are not fetched, "
            "name a repository that has them",
            final=True,
        )
    if "config.json" not in found.files:
        raise FetchError(f"{wish.source}: no config.json in revision {wish.revision}; not a model", final=True)
    return found


def _listing_of_prompts(pinned: Pinned) -> Listing:
    """One file, of a size that can be read."""
    wish = pinned.wish
    with explained(wish):
        found = HfApi().get_paths_info(wish.repository, [wish.file], revision=pinned.commit, repo_type=wish.kind)
    files = [entry for entry in found if isinstance(entry, RepoFile) and entry.path == wish.file]
    if not files:
        raise FetchError(f"{wish.source}: no such file in revision {wish.revision}; correct the path", final=True)
    if files[0].size > LARGEST:
        raise FetchError(f"{wish.source}: larger than {LARGEST >> 20} MiB; name a file with a part of it", final=True)
    return Listing(pinned=pinned, files={wish.file: files[0].size}, digests=_digests(files))


def _digests(files: Iterable[RepoFile]) -> dict[str, str]:
    """What is neither was made up by a mirror, and there is nothing to hold a file against."""
    named = {entry.path: str(entry.lfs.sha256 if entry.lfs else entry.blob_id) for entry in files}
    return {path: name for path, name in named.items() if DIGEST.fullmatch(name)}


def bring_first(listed: Listing, cache: Path) -> None:
    """A small file: a repository we may not read is found out before the others' weights are downloaded. Of a dataset
    it is all."""
    name = listed.pinned.wish.file or "config.json"
    with explained(listed.pinned.wish):
        _bring(listed, name, cache)


def bring(listed: Listing, cache: Path) -> None:
    """The files that were listed, and no others, whatever the hub lists by now; those that are there are left alone."""
    with explained(listed.pinned.wish), ThreadPoolExecutor(AT_ONCE) as bringing:
        under_way = [bringing.submit(_bring, listed, name, cache) for name in listed.files]
        try:
            for one in under_way:
                one.result()
        finally:
            bringing.shutdown(cancel_futures=True)


@contextmanager
def nothing_larger(listings: Iterable[Listing]) -> Iterator[None]:
    """A hub that sends more than it lists fills no volume: no file of this process grows beyond the largest listed."""
    most = max((size for listed in listings for size in listed.files.values()), default=0) + SLACK
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _bring(listed: Listing, name: str, cache: Path) -> None:
    """What is there under its name is left alone: whether it is what was listed is looked at of all (`arrived`)."""
    wish, commit = listed.pinned.wish, listed.pinned.commit
    hf_hub_download(wish.repository, name, repo_type=wish.kind, revision=commit, cache_dir=cache)


def _session() -> httpx2.Client:
    """The client makes names of files out of what a hub says of them."""
    client = default_client_factory()
    client.event_hooks = {**client.event_hooks, "response": [*client.event_hooks["response"], _refuse_paths]}
    return client


def _refuse_paths(response: httpx2.Response) -> None:
    for header in ("ETag", "X-Linked-ETag", "X-Repo-Commit"):
        said = response.headers.get(header, "a")
        if not NAME.fullmatch(said.removeprefix("W/").strip('"')):
            raise ValueError(f"the hub sent {header}: {said!r:.80}, which names no file")


set_client_factory(_session)


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
        case OSError(errno=errno.EFBIG):
            return FetchError(f"{source}: {ENDPOINT} sends more than it lists", final=False)
        case OSError(errno=errno.EACCES | errno.EROFS):
            return FetchError(f"{source}: cannot write to the cache volume ({_short(error)}); {whose()}", final=True)
    return FetchError(f"{source}: {_short(error)}", final=False)


def _short(error: BaseException) -> str:
    """The error's first line, at most 200 characters."""
    return printable((str(error).strip() or type(error).__name__).splitlines()[0])[:200]
