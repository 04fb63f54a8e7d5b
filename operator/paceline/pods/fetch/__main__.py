"""One prefetch, in order: read the request, pin, lock, list, download, mark, report. See the package's docstring."""

import errno
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

# The client reads these at import. A log does not need progress bars.
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from paceline.core.masking import without, without_secrets
from paceline.core.text import printable
from paceline.fetching import (
    FETCH_VARIABLE,
    LARGEST_MESSAGE,
    Artifact,
    FetchedModel,
    FetchFailure,
    FetchRequest,
    FetchResult,
)
from paceline.pods import prompt_file
from paceline.pods.fetch import bucket, hub, local, verify, volume
from paceline.pods.fetch.lock import BEAT, STALE, holding
from paceline.pods.fetch.reading import facts_of
from paceline.pods.fetch.request import FetchError, read_request

_MESSAGE_PATH = "/dev/termination-log"

_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", *bucket.BUCKET_SECRETS)
"""Variables with a secret: a hub, a bucket or a proxy may return it in its answer."""
UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""Errors of the volume that only a person can fix; others (a stale handle, I/O) may disappear with the next try."""


def main(environment: Mapping[str, str]) -> int:
    """Writes the termination message and returns the exit code."""
    message = Path(environment.get("PACELINE_TERMINATION_MESSAGE_PATH", _MESSAGE_PATH))
    try:
        with ExitStack() as locks:
            _release_on_sigterm(locks)
            result = fetch(read_request(environment.get(FETCH_VARIABLE, "")), locks)
        message.write_text(result.to_message())
    except FetchError as error:
        return _failed(message, error.failure, 2 if error.final else 1)
    except Exception as error:  # any failure must leave a message for the operator
        traceback.print_exc()
        failure = FetchFailure(sentence=f"the prefetch failed: {type(error).__name__}: {error}")
        return _failed(message, failure, 1)
    return 0


def _failed(message: Path, failure: FetchFailure, code: int) -> int:
    tokens = [os.environ[name] for name in _TOKENS if os.environ.get(name)]
    shown = replace(failure, sentence=without_secrets(without(printable(failure.sentence), tokens)))
    print(shown.sentence, file=sys.stderr, flush=True)
    message.write_bytes(shown.to_message().encode()[:LARGEST_MESSAGE])
    return code


def fetch(request: FetchRequest, locks: ExitStack, *, beat: float = BEAT, stale: float = STALE) -> FetchResult:
    """Download all artifacts of the request, or raise FetchError. Acquired locks go onto `locks`."""
    path = Path(request.path)
    try:
        local_listings = {one: local.list_local_files(one, path) for one in request.artifacts if one.is_local}
        pins = [local_listings[one].pinned if one.is_local else hub.resolve_revision(one) for one in request.artifacts]
        for pinned in pins:
            if pinned.commit:
                print(f"{pinned.artifact.source}: revision {pinned.artifact.revision} is {pinned.commit}", flush=True)
        remote = [pinned for pinned in pins if not pinned.artifact.is_local]
        for lock in sorted({volume.lock_path(path, pinned) for pinned in remote}):
            locks.enter_context(holding(lock, beat=beat, stale=stale))
        result = volume.completed(request, pins)
        if result is not None:
            result = _with_current_facts(result)
        else:
            listings = local_listings | _download_all(request, remote)
            found = [listings[artifact] for artifact in request.artifacts]
            pins = [listing.pinned for listing in found]
            result = _result(found, path)
            volume.mark_complete(request, pins, result)
        volume.record_use(request, pins)
        volume.remove_unused(request, [pinned for pinned in pins if not pinned.artifact.is_local])
    except OSError as error:
        final = error.errno in UNUSABLE
        advice = f"; {hub.grant_access()}" if error.errno in (errno.EACCES, errno.EPERM) else ""
        raise FetchError(f"the cache volume {path} cannot be used: {error}{advice}", final=final) from error
    return result


def _download_all(request: FetchRequest, pins: Sequence[hub.Pinned]) -> dict[Artifact, hub.FileListing]:
    """By artifact. A bucket's listing has its commit only now."""
    path = Path(request.path)
    volume.remove_partial_downloads(path, pins)
    listings = [
        bucket.list_objects(pinned, request) if pinned.artifact.source.in_bucket else hub.list_files(pinned, request)
        for pinned in pins
    ]
    volume.check_free_space(path, listings)
    with hub.limited_file_size(listings):
        return {listing.pinned.artifact: listing for listing in _download_listed(path, listings)}


def _download_listed(path: Path, listings: Sequence[hub.FileListing]) -> list[hub.FileListing]:
    """Small files first, so that an unusable repository or dataset is detected before weights are downloaded."""
    cache, done = volume.cache(path), []
    for listing in listings:
        if listing.pinned.artifact.source.in_bucket:
            bucket.ask_for_one(listing)
        else:
            hub.download_first(listing, cache)
        if listing.pinned.artifact.is_dataset:
            verify.verify_snapshot(listing, volume.repository_folder(path, listing.pinned))
            _check_prompts(listing, path)
            done.append(listing)
    with volume.log_progress(path, listings):
        for listing in listings:
            if not listing.pinned.artifact.is_dataset:
                download = bucket.download_objects if listing.pinned.artifact.source.in_bucket else hub.download
                here = download(listing, cache)
                verify.verify_snapshot(here, volume.repository_folder(path, here.pinned))
                done.append(here)
    return done


def _with_current_facts(result: FetchResult) -> FetchResult:
    """Read the facts of a complete set again: others may write to the volume, and to the set's marker."""
    facts = {
        model.source: facts_of(model.source, Path(model.path), has_code=known.custom_code)
        for model in result.models
        if (known := result.facts.get(model.source))
    }
    return replace(result, facts=facts)


def _check_prompts(listing: hub.FileListing, path: Path) -> None:
    """Read the dataset in the same way as a round."""
    source = listing.pinned.artifact.source
    try:
        prompt_file.read_prompts(volume.place(path, listing.pinned), source)
    except prompt_file.DatasetError as error:
        raise FetchError(str(error).removeprefix(f"{source}: "), final=True, source=source) from error


def _result(listings: Sequence[hub.FileListing], path: Path) -> FetchResult:
    downloads = [(listing, _fetched(listing, path)) for listing in listings]
    models = [(listing, model) for listing, model in downloads if not listing.pinned.artifact.is_dataset]
    return FetchResult(
        models=tuple(model for _, model in models),
        facts={
            model.source: facts_of(model.source, Path(model.path), has_code=listing.has_code)
            for listing, model in models
        },
        datasets=tuple(dataset for listing, dataset in downloads if listing.pinned.artifact.is_dataset),
    )


def _fetched(listing: hub.FileListing, path: Path) -> FetchedModel:
    artifact = listing.pinned.artifact
    return FetchedModel(
        source=str(artifact.source),
        revision=artifact.revision,
        commit=listing.pinned.commit,
        bytes=listing.size,
        path=str(volume.place(path, listing.pinned)),
    )


def _release_on_sigterm(locks: ExitStack) -> None:
    """Downloads run in threads that cannot be stopped: release the locks and exit."""

    def leave(*_: object) -> NoReturn:
        locks.close()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)


if __name__ == "__main__":
    sys.exit(main(os.environ))
