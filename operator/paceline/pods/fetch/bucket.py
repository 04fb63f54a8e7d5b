"""Downloads a model that is a prefix of a bucket (`s3://`, `gs://`), with obstore's client.

A bucket has no revisions that can be asked for, so the commit is a digest of what was read: key, size and SHA-256 of
each object. It is known after the first download; later ones must have the same, or nothing of them is kept. On the
volume a prefix has the layout of a repository in the hub's cache, and `objects/COMMIT`: the text whose digest the
commit is. With it a pinned model needs no request.
"""

import hashlib
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import TypeAlias

import obstore
from huggingface_hub.file_download import _create_symlink
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import GCSStore, S3Store

from paceline.core import Scheme, Source
from paceline.fetching import Artifact, FetchRequest
from paceline.pods.fetch.hub import MOST_FILES, FileListing, Pinned, listing_of, not_written, of_each
from paceline.pods.fetch.request import FetchError
from paceline.pods.opened import small_file

Objects: TypeAlias = Mapping[str, tuple[int, str]]
"""Key below the prefix → bytes and SHA-256."""
BUCKET_SECRETS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_TOKEN", "GOOGLE_SERVICE_ACCOUNT_KEY",
           "GOOGLE_BEARER_TOKEN")  # fmt: skip
"""The client's variables that are secrets (obstore 0.12.1, S3Config and GCSConfig)."""
_CREDENTIALS = {
    Scheme.S3: "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    Scheme.GCS: "GOOGLE_SERVICE_ACCOUNT_KEY, or bind the namespace's ServiceAccount default",
}
_ADDRESSES = {Scheme.S3: ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"), Scheme.GCS: ("GOOGLE_BASE_URL",)}
_ADDRESS = re.compile(r"https?://[\w.:\[\]-]+(/|$)")
_STATUS = re.compile(r"status code: (\d{3})")
"""In the text of an error (object_store 0.14.2), which has no field for it."""
_ODD_KEY = re.compile(r'parsing Path "([^"]*)"')
_REFUSED = (PermissionDeniedError, UnauthenticatedError)
_BAD_TOKEN = ("ExpiredToken", "InvalidToken")
"""Codes that S3 answers with 400."""
_OF_THE_MACHINE = ("/computeMetadata/", "/latest/api/token", "/latest/meta-data/")
"""Paths of the clouds' metadata servers: the client asks them if the environment has no credentials."""
_RETRIES = 5
"""Tries of a request after the first, within some five seconds. The Job is tried again, too."""
_LARGEST_TEXT = 1 << 25
"""Maximum bytes of `objects/COMMIT`: MOST_FILES lines of 600."""


def list_objects(pinned: Pinned, request: FetchRequest) -> FileListing:
    """The objects to download; those of a commit that the volume has, as they were pinned."""
    text = small_file(_text_path(Path(request.path) / "hub", pinned), _LARGEST_TEXT) if pinned.commit else None
    if text is not None and _commit_of(text) == pinned.commit:
        objects: Objects = {key: (size, digest) for key, size, digest in json.loads(text)}
        sizes = {key: size for key, (size, _) in objects.items()}
        return listing_of(pinned, request, sizes, {key: digest for key, (_, digest) in objects.items()})
    source = pinned.artifact.source
    with _explained(pinned.artifact):
        found = chain.from_iterable(obstore.list(_store(source), prefix=source.path))
        sizes = {one["path"]: one["size"] for one in islice(found, MOST_FILES + 1)}
    below = f"{source.path}/"  # an object may stand for the folder itself
    sizes = {key.removeprefix(below): size for key, size in sizes.items() if key.startswith(below)}
    if not sizes:
        raise FetchError("no objects below this prefix; correct the source", final=True, source=source)
    return listing_of(pinned, request, sizes, {})


def ask_for_one(listing: FileListing) -> None:
    """Ask for one small object, to detect that objects may be listed and not read."""
    source = listing.pinned.artifact.source
    if not listing.digests:
        with _explained(listing.pinned.artifact):
            obstore.get(_store(source), f"{source.path}/config.json")


def download_objects(listing: FileListing, cache: Path) -> FileListing:
    """Download all objects, or those that the volume lacks of a commit. Returns the listing with the commit; refuses
    objects that are not those of the pinned one, and keeps nothing of them."""
    pinned, source = listing.pinned, listing.pinned.artifact.source
    repository, store = cache / source.cache_folder, _store(source)
    blobs, snapshots = repository / "blobs", repository / "snapshots"
    blobs.mkdir(parents=True, exist_ok=True)
    wanted = {**listing.files, **listing.untrusted}
    kept = {
        name for name in listing.digests if name not in listing.files or (snapshots / pinned.commit / name).exists()
    }
    names = [name for name in wanted if name not in kept]
    try:
        with _explained(pinned.artifact):
            read = of_each(names, lambda name: _read(store, source, name, wanted[name], blobs))
        new = dict(zip(names, read, strict=True))
        digests = {**listing.digests, **{name: digest for name, (digest, _) in new.items()}}
        text = _text({name: (size, digests[name]) for name, size in wanted.items()})
        commit = _commit_of(text)
        if pinned.commit and commit != pinned.commit:
            raise FetchError(
                f"its objects are not those that were pinned as {pinned.commit}: restore them, or write another "
                "revision (any name) to pin what is there now",
                final=True,
                source=source,
                part="revision",
            )
        done = replace(listing, pinned=replace(pinned, commit=commit), digests=digests)
        for name, (digest, part) in new.items():
            if name in listing.files:
                link = snapshots / commit / name
                link.parent.mkdir(parents=True, exist_ok=True)
                part.replace(blobs / digest)
                _create_symlink(str(blobs / digest), str(link), new_blob=True)
        fresh = blobs / f"{uuid.uuid4().hex}.incomplete"  # a random name: nobody can have placed a link there
        fresh.write_bytes(text)
        _text_path(cache, done.pinned).parent.mkdir(exist_ok=True)
        fresh.replace(_text_path(cache, done.pinned))
    finally:
        for left in blobs.glob("*.incomplete"):
            left.unlink(missing_ok=True)
    return done


def _read(store: S3Store | GCSStore, source: Source, name: str, size: int, blobs: Path) -> tuple[str, Path]:
    """The object's SHA-256, and the file with its content."""
    part, digest = blobs / f"{uuid.uuid4().hex}.incomplete", hashlib.sha256()
    with part.open("xb") as file:
        for chunk in obstore.get(store, f"{source.path}/{name}"):
            file.write(chunk)
            digest.update(chunk)
        if file.tell() != size:
            raise FetchError(f"{name} was changed during the download", final=False, source=source)
    return digest.hexdigest(), part


def _text(objects: Objects) -> bytes:
    return json.dumps(sorted((key, size, digest) for key, (size, digest) in objects.items())).encode()


def _commit_of(text: bytes) -> str:
    """40 hex digits, as a commit of the hub."""
    return hashlib.sha256(text).hexdigest()[:40]


def _text_path(cache: Path, pinned: Pinned) -> Path:
    return cache / pinned.artifact.source.cache_folder / "objects" / pinned.commit


def _store(source: Source) -> S3Store | GCSStore:
    """A client with the environment's credentials and addresses. The limit of a request's time includes its body."""
    for name in _ADDRESSES[source.scheme]:
        if not _ADDRESS.match(os.environ.get(name) or "http://-"):  # the client ends the process for it
            raise FetchError(f"{name} in spec.cache.env must be http:// or https:// and a host", final=True)
    kind = S3Store if source.scheme is Scheme.S3 else GCSStore
    return kind(
        source.name,
        client_options={"allow_http": True, "timeout": timedelta(days=1), "read_timeout": timedelta(minutes=1)},
        retry_config={"max_retries": _RETRIES},
    )


@contextmanager
def _explained(artifact: Artifact) -> Iterator[None]:
    """Turns the client's errors into one sentence that names the way out."""
    try:
        yield
    except (BaseError, OSError, ValueError, TypeError) as error:
        raise _explanation(error, artifact.source) from error


def _explanation(error: Exception, source: Source) -> FetchError:
    if isinstance(error, OSError) and error.errno is not None:
        return not_written(error, source)
    text, variables = str(error), f"in spec.cache.env ({_CREDENTIALS[source.scheme]})"
    status = found[1] if (found := _STATUS.search(text)) else ""
    if any(part in text for part in _OF_THE_MACHINE):
        sentence, final = f"no credentials for the bucket; give them {variables}", False
    elif "credential error" in text:
        sentence, final = f"the credentials cannot be read; correct them {variables}", True
    elif status in ("401", "403") or isinstance(error, _REFUSED) or any(code in text for code in _BAD_TOKEN):
        sentence, final = f"the bucket refused access; give credentials that may list and read it {variables}", True
    elif "NoSuchBucket" in text:
        sentence, final = "no such bucket; correct the source", True
    elif status in ("301", "307") or "AuthorizationHeaderMalformed" in text:
        sentence, final = "the bucket is in another region; set its AWS_REGION in spec.cache.env", True
    elif isinstance(error, FileNotFoundError):
        sentence, final = "an object that the bucket lists is not there", False
    elif odd := _ODD_KEY.search(text):
        sentence, final = f"lists {odd[1]!r:.80}, which is not a file's path; name another prefix", True
    elif status:
        sentence, final = f"the bucket answered {status}", False
    elif "HTTP error" in text:
        name = _ADDRESSES[source.scheme][0]
        sentence, final = f"the bucket cannot be reached; check {name}, the proxies and the CA in spec.cache.env", False
    else:
        return not_written(error, source)
    return FetchError(sentence, final=final, source=source)
