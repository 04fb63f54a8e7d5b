"""Lists and downloads a repository's files with the hub's client."""

import errno
import os
import re
import resource
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TypeVar

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

from paceline.core import Source
from paceline.core.text import error_text, printable
from paceline.fetching import WHOLE_COMMIT, Artifact, FetchRequest
from paceline.pods.fetch.request import FetchError, covers
from paceline.pods.prompt_file import LARGEST_FILE

_Result = TypeVar("_Result")
PAGES: ContextVar[Iterator[int] | None] = ContextVar("pages", default=None)
"""One item for each page that a list may still have; None while no list is read."""
DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_NAME = re.compile(r"[\w-][\w.+-]{0,200}", re.ASCII)
"""Permitted names of files and commits in the hub's headers, because the client makes paths of them."""
PLAIN = re.compile(r"(?!\.{1,2}(?:/|$))[^/\\\0]+(?:/(?!\.{1,2}(?:/|$))[^/\\\0]+)*")
"""A path below the repository."""
MOST_FILES = 50_000
MOST_PAGES = 1000
"""Maximum pages of a list of files; the hub itself lists a thousand files per page."""
LARGEST_SIZE = 1 << 50
"""Maximum bytes of a file in the hub's list: a petabyte."""
_AT_ONCE = 8
SLACK = 1 << 20
"""Bytes in addition to the models: files of the client and the prefetch."""
ENLARGE_CLAIM = "enlarge the cache claim (spec.cache.claim.size)"
_TOKEN = "give a token in spec.cache.tokenSecretRef"


def grant_access() -> str:
    """The way out if the prefetch may not write to the volume."""
    identity = f"uid {os.getuid()}, groups {', '.join(map(str, sorted({os.getgid(), *os.getgroups()})))}"
    return f"the prefetch runs as {identity}: let it write there, or set spec.cache.securityContext to a user who may"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    """An artifact whose revision is resolved to a commit."""

    artifact: Artifact
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileListing:
    """The files to download: path in the repository → bytes. From a bucket, `commit` is "" until they are known."""

    pinned: Pinned
    files: dict[str, int]
    digests: Mapping[str, str] = field(default_factory=dict)
    """Path → the hub's digest of the content: the SHA-256 of a large file, Git's SHA-1 of any other. Of a bucket's
    object always our own SHA-256."""
    untrusted: Mapping[str, int] = field(default_factory=dict)
    """Python files of a model, which are not kept: path → bytes. A bucket's commit covers them all the same, so that
    engine.trustRemoteCode does not change it."""
    all_files: frozenset[str] = frozenset()
    """All files of a model's repository, downloaded or not; empty for a dataset."""
    has_code: bool = False
    """Whether the repository has Python files, downloaded or not."""

    @property
    def size(self) -> int:
        return sum(self.files.values())

    @property
    def weights(self) -> int:
        return sum(size for path, size in self.files.items() if path.endswith(".safetensors"))


def resolve_revision(artifact: Artifact) -> Pinned:
    """Resolve the revision. A commit, or a revision resolved before, needs no request to the hub; a bucket's is known
    after its download only."""
    if WHOLE_COMMIT.fullmatch(known := artifact.commit or artifact.revision):
        return Pinned(artifact=artifact, commit=known)
    source = artifact.source
    if source.in_bucket:
        return Pinned(artifact=artifact, commit="")
    with explained(artifact):
        commit = HfApi().repo_info(source.name, revision=artifact.revision, repo_type=artifact.kind).sha
    if not isinstance(commit, str) or not WHOLE_COMMIT.fullmatch(commit):
        raise FetchError(f"{ENDPOINT} names no commit for revision {artifact.revision}", final=False, source=source)
    return Pinned(artifact=artifact, commit=commit)


def list_files(pinned: Pinned, request: FetchRequest) -> FileListing:
    """The files to download. Refuses a repository without weights that can be loaded safely."""
    artifact = pinned.artifact
    if artifact.is_dataset:
        return _list_prompts(pinned)
    with explained(artifact), limited_pages():
        tree = HfApi().list_repo_tree(artifact.source.name, recursive=True, revision=pinned.commit)
        entries = {entry.path: entry for entry in islice(tree, MOST_FILES + 1) if isinstance(entry, RepoFile)}
    sizes = {path: entry.size for path, entry in entries.items()}
    return listing_of(pinned, request, sizes, _digests(entries.values()))


def listing_of(
    pinned: Pinned, request: FetchRequest, sizes: Mapping[str, int], digests: Mapping[str, str]
) -> FileListing:
    """The files of a model to download, from the sizes of all that a repository or a bucket lists. Refuses one without
    weights that can be loaded safely."""
    source = pinned.artifact.source
    kind, where = ("prefix", "it") if source.in_bucket else ("repository", f"revision {pinned.artifact.revision}")
    if len(sizes) > MOST_FILES:
        raise FetchError(f"lists more than {MOST_FILES} files; name another {kind}", final=True, source=source)
    if odd := [path for path in sizes if not (isinstance(path, str) and PLAIN.fullmatch(path))]:
        sentence = f"lists {odd[0]!r:.80}, which is not a file's path; name another {kind}"
        raise FetchError(sentence, final=True, source=source)
    _refuse_sizes(sizes.values(), source)
    listing = FileListing(
        pinned=pinned,
        files={path: size for path, size in sizes.items() if covers(request, path)},
        digests=digests,
        untrusted={
            path: size for path, size in sizes.items() if path.endswith(".py") and not request.trust_remote_code
        },
        all_files=frozenset(sizes),
        has_code=any(path.endswith(".py") for path in sizes),
    )
    if not listing.weights:
        sentence = f"no safetensors in {where}; other weight files are not fetched, name a {kind} that has them"
        raise FetchError(sentence, final=True, source=source)
    if "config.json" not in listing.files:
        raise FetchError(f"no config.json in {where}; not a model", final=True, source=source)
    return listing


def _refuse_sizes(sizes: Iterable[object], source: Source) -> None:
    """Refuse impossible sizes, because sizes are summed, and a file's size is its minimum length."""
    for size in sizes:
        if not isinstance(size, int) or not 0 <= size <= LARGEST_SIZE:
            origin = "the bucket" if source.in_bucket else ENDPOINT
            raise FetchError(f"{origin} says that a file has {size!r:.40} bytes", final=False, source=source)


def _list_prompts(pinned: Pinned) -> FileListing:
    """List the dataset's only file. Raises FetchError if it is missing, or too large to be read."""
    artifact, source = pinned.artifact, pinned.artifact.source
    with explained(artifact):
        entries = HfApi().get_paths_info(source.name, [source.path], revision=pinned.commit, repo_type=artifact.kind)
    files = [entry for entry in entries if isinstance(entry, RepoFile) and entry.path == source.path]
    if not files:
        raise FetchError(f"no such file in revision {artifact.revision}; correct the path", final=True, source=source)
    _refuse_sizes((entry.size for entry in files), source)
    if files[0].size > LARGEST_FILE:
        sentence = f"larger than {LARGEST_FILE >> 20} MiB; name a file with a part of it"
        raise FetchError(sentence, final=True, source=source)
    return FileListing(pinned=pinned, files={source.path: files[0].size}, digests=_digests(files))


def _digests(files: Iterable[RepoFile]) -> dict[str, str]:
    """Leaves out invalid digests: a mirror invented them, and no file can be checked against them."""
    names = {entry.path: str(entry.lfs.sha256 if entry.lfs else entry.blob_id) for entry in files}
    return {path: name for path, name in names.items() if DIGEST.fullmatch(name)}


def download_first(listing: FileListing, cache: Path) -> None:
    """Download one small file, to detect an unreadable repository before the weights of others are downloaded. A
    dataset has no other file."""
    artifact = listing.pinned.artifact
    with explained(artifact):
        _download(listing, artifact.source.path if artifact.is_dataset else "config.json", cache)


def download(listing: FileListing, cache: Path) -> FileListing:
    """Download the listed files only, even if the hub lists more by now. Existing files are kept."""
    with explained(listing.pinned.artifact):
        of_each(listing.files, lambda name: _download(listing, name, cache))
    return listing


def of_each(names: Iterable[str], download: Callable[[str], _Result]) -> list[_Result]:
    """The downloads' results, in order. The first failure cancels those that wait."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        downloads = [pool.submit(download, name) for name in names]
        try:
            return [pending.result() for pending in downloads]
        finally:
            pool.shutdown(cancel_futures=True)


@contextmanager
def limited_pages() -> Iterator[None]:
    """Limits the pages of a list: pages may form a cycle, and empty ones add no file to the count."""
    token = PAGES.set(iter(range(MOST_PAGES)))
    try:
        yield
    finally:
        PAGES.reset(token)


@contextmanager
def limited_file_size(listings: Iterable[FileListing]) -> Iterator[None]:
    """Limits this process's files to the largest listed size, so that a hub that sends more cannot fill the volume."""
    most = max((size for listing in listings for size in listing.files.values()), default=0) + SLACK
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _download(listing: FileListing, name: str, cache: Path) -> None:
    """Keeps an existing file with this name: `verify` compares all files with the listing."""
    artifact, commit = listing.pinned.artifact, listing.pinned.commit
    hf_hub_download(artifact.source.name, name, repo_type=artifact.kind, revision=commit, cache_dir=cache)


def _session() -> httpx2.Client:
    """A client that checks the hub's headers: it makes file names of them."""
    client = default_client_factory()
    client.event_hooks = {**client.event_hooks, "response": [*client.event_hooks["response"], _refuse]}
    return client


def _refuse(response: httpx2.Response) -> None:
    if (pages := PAGES.get()) is not None and next(pages, None) is None:
        raise ValueError(f"the hub's list of files has more than {MOST_PAGES} pages")
    for header in ("ETag", "X-Linked-ETag", "X-Repo-Commit"):
        value = response.headers.get(header, "a")
        if not _NAME.fullmatch(value.removeprefix("W/").strip('"')):
            raise ValueError(f"the hub sent {header}: {value!r:.80}, which names no file")


set_client_factory(_session)


@contextmanager
def explained(artifact: Artifact) -> Iterator[None]:
    """Turns the client's errors into one sentence that names the way out."""
    try:
        yield
    except (OSError, ValueError, httpx2.HTTPError) as error:
        raise _explanation(error, artifact) from error
    except (TypeError, LookupError, AttributeError, RecursionError) as error:  # the client misread the answer
        sentence = f"{ENDPOINT} does not answer like a hub ({error_text(error)})"
        raise FetchError(sentence, final=False, source=artifact.source) from error


def _explanation(error: BaseException, artifact: Artifact) -> FetchError:
    while isinstance(error, LocalEntryNotFoundError) and error.__cause__ is not None:
        error = error.__cause__  # "nothing in the cache either": the cause is below
    source = artifact.source
    revision = f"{artifact.revision} ({artifact.commit})" if artifact.commit else artifact.revision
    match error:
        case GatedRepoError():
            return FetchError(f"gated; accept its terms on the hub and {_TOKEN}", final=True, source=source)
        case RepositoryNotFoundError():
            sentence = f"no such repository, or a private one; correct the source or {_TOKEN}"
            return FetchError(sentence, final=True, source=source)
        case RevisionNotFoundError():
            sentence = f"no revision {revision}; name a branch, tag or commit it has"
            return FetchError(sentence, final=True, source=source, part="revision")
        case RemoteEntryNotFoundError():
            return FetchError(f"a file listed in revision {revision} is not there", final=False, source=source)
        case DisabledRepoError():
            return FetchError("disabled on the hub; name another repository", final=True, source=source)
        case HfHubHTTPError(response=response) if response.status_code in (401, 403):
            return FetchError(f"the hub refused the token; {_TOKEN} that may read it", final=True, source=source)
        case HfHubHTTPError(response=response):
            return FetchError(f"{ENDPOINT} answered {response.status_code}", final=False, source=source)
        case httpx2.HTTPError() | LocalEntryNotFoundError() | ConnectionError():
            advice = "check HF_ENDPOINT and the proxies in spec.cache.env"
            unreached = f"{ENDPOINT} cannot be reached ({_short(error)}); {advice}"
            return FetchError(unreached, final=False, source=source)
    return not_written(error, source)


def not_written(error: BaseException, source: Source) -> FetchError:
    """The sentence for an error of the volume, or for one that is not known."""
    match error:
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return FetchError(f"the cache volume is full; {ENLARGE_CLAIM}", final=True, source=source)
        case OSError(errno=errno.EFBIG):
            origin = "the bucket" if source.in_bucket else ENDPOINT
            return FetchError(f"{origin} sends more than it lists", final=False, source=source)
        case OSError(errno=errno.EACCES | errno.EROFS):
            unwritable = f"cannot write to the cache volume ({_short(error)})"
            return FetchError(f"{unwritable}; {grant_access()}", final=True, source=source)
    return FetchError(_short(error), final=False, source=source)


def _short(error: BaseException) -> str:
    """The error's first line, at most 200 characters."""
    return printable((str(error).strip() or type(error).__name__).splitlines()[0])[:200]
