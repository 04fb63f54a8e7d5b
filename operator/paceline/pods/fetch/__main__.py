"""One fetch, in order: read the request, pin, lock, list, bring, mark, report. See the package's docstring."""

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

# Read by the client when it is imported. Bars are no use in a log.
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")

from paceline.core.text import printable
from paceline.pods.fetch import arrived, hub, local, volume
from paceline.pods.fetch.lock import BEAT, STALE, holding
from paceline.pods.fetch.reading import facts_of
from paceline.pods.fetch.request import FetchError, Request, Wish, read_request
from paceline.pods.round import dataset
from paceline.preflight import Fetched, FetchedModel, write_message
from paceline.preflight.facts import LONGEST

MESSAGE_PATH = "/dev/termination-log"

UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
"""What the volume says when only a person can help; of anything else (a stale handle, I/O) another try may get over."""


def main(environment: Mapping[str, str]) -> int:
    """The exit code; the termination message is written."""
    message = Path(environment.get("PACELINE_TERMINATION_MESSAGE_PATH", MESSAGE_PATH))
    try:
        with ExitStack() as held:
            _release_on_sigterm(held)
            fetched = fetch(read_request(environment.get("PACELINE_FETCH", "")), held)
        message.write_text(write_message(fetched))
    except FetchError as error:
        return _ended(message, str(error), 2 if error.final else 1)
    except Exception as error:  # whatever it is, somebody waits for a sentence
        traceback.print_exc()
        return _ended(message, f"the prefetch failed: {type(error).__name__}: {error}", 1)
    return 0


def _ended(message: Path, sentence: str, code: int) -> int:
    shown = printable(sentence)
    print(shown, file=sys.stderr, flush=True)
    message.write_bytes(shown.encode()[:LONGEST])
    return code


def fetch(request: Request, held: ExitStack, *, beat: float = BEAT, stale: float = STALE) -> Fetched:
    """Everything that is asked for, or FetchError. The locks go into `held`."""
    try:
        there = {wish: local.look(wish, request.path) for wish in request.wishes if wish.place}
        pins = [there[wish].pinned if wish in there else hub.pin(wish) for wish in request.wishes]
        for pinned in pins:
            print(f"{pinned.wish.source}: revision {pinned.wish.revision} is {pinned.commit}", flush=True)
        wanted = [pinned for pinned in pins if pinned.wish.repository]
        for path in sorted({volume.lock_path(request.path, pinned) for pinned in wanted}):
            held.enter_context(holding(path, beat=beat, stale=stale))
        fetched = volume.completed(request, pins)
        if fetched is not None:
            fetched = _as_it_is(fetched)
        else:
            brought = _bring_all(request, wanted)
            fetched = _report([there.get(pin.wish) or brought[pin.wish] for pin in pins], request.path)
            volume.mark_complete(request, pins, fetched)
        volume.note_use(request, pins)
        volume.remove_unused(request, wanted)
    except OSError as error:
        final = error.errno in UNUSABLE
        way = f"; {hub.whose()}" if error.errno in (errno.EACCES, errno.EPERM) else ""
        raise FetchError(f"the cache volume {request.path} cannot be used: {error}{way}", final=final) from error
    return fetched


def _bring_all(request: Request, pins: Sequence[hub.Pinned]) -> Mapping[Wish, hub.Listing]:
    volume.sweep(request.path, pins)
    cache = volume.cache(request.path)
    listings = [hub.listing(pinned, request) for pinned in pins]
    volume.check_room(request.path, listings)
    with hub.nothing_larger(listings):
        return _bring_listed(request, listings, cache)


def _bring_listed(request: Request, listings: Sequence[hub.Listing], cache: Path) -> Mapping[Wish, hub.Listing]:
    for listed in listings:
        hub.bring_first(listed, cache)
        if listed.pinned.wish.file:
            arrived.check(listed, volume.folder(request.path, listed.pinned))
            _check_prompts(listed, request.path)
    with volume.progress(request.path, listings):
        for listed in listings:
            if not listed.pinned.wish.file:
                hub.bring(listed, cache)
                arrived.check(listed, volume.folder(request.path, listed.pinned))
    return {listed.pinned.wish: listed for listed in listings}


def _as_it_is(fetched: Fetched) -> Fetched:
    """What is known of a set that is complete is read anew: others may write to the volume, and to its marker."""
    facts = {
        one.source: facts_of(one.source, Path(one.path), has_code=known.custom_code)
        for one in fetched.models
        if (known := fetched.facts.get(one.source))
    }
    return replace(fetched, facts=facts)


def _check_prompts(listed: hub.Listing, path: Path) -> None:
    """As a round would read them, but before anything waits for it."""
    try:
        dataset.read(volume.place(path, listed.pinned), listed.pinned.wish.source)
    except dataset.DatasetError as error:
        raise FetchError(str(error), final=True) from error


def _report(listings: Sequence[hub.Listing], path: Path) -> Fetched:
    found = [(listed, _fetched(listed, path)) for listed in listings]
    models = [(listed, one) for listed, one in found if not listed.pinned.wish.file]
    return Fetched(
        models=tuple(one for _, one in models),
        facts={one.source: facts_of(one.source, Path(one.path), has_code=listed.has_code) for listed, one in models},
        datasets=tuple(one for listed, one in found if listed.pinned.wish.file),
    )


def _fetched(listed: hub.Listing, path: Path) -> FetchedModel:
    return FetchedModel(
        source=listed.pinned.wish.source,
        revision=listed.pinned.wish.revision,
        commit=listed.pinned.commit,
        bytes=listed.size,
        path=str(volume.place(path, listed.pinned)),
    )


def _release_on_sigterm(held: ExitStack) -> None:
    """Downloads run in threads that do not stop when asked: let go of the locks and leave."""

    def leave(*_: object) -> NoReturn:
        held.close()
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)


if __name__ == "__main__":
    sys.exit(main(os.environ))
