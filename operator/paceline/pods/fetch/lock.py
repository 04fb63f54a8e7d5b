"""Locks on a volume that pods on several nodes share.

A lock is a file made with O_EXCL. Its holder writes a rising count into it. A waiter that sees the same count for
`stale` seconds of its own clock takes the lock over, so a crashed holder does not block others forever, and clocks of
different nodes are never compared. flock would be simpler, but not every shared filesystem honours it between nodes.

Locks save bandwidth; correctness does not depend on them. The client downloads to a random name and renames the file
when it is complete, so two holders at once (one was paused for longer than `stale`) only duplicate work.
"""

import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from paceline.core.text import printable
from paceline.pods.opened import small_file

_LARGEST = 1000
"""Maximum bytes of a lock: a name and a count."""
BEAT = 10.0
STALE = 90.0
"""Seconds. Network filesystems may show an outdated file for up to a minute."""


@contextmanager
def holding(path: Path, *, beat: float = BEAT, stale: float = STALE) -> Iterator[None]:
    """Wait for the lock and hold it. Take several locks in sorted order, so that pods cannot deadlock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = f"{os.uname().nodename} {uuid.uuid4().hex}"
    descriptor = _take(path, name, beat, stale)
    stop = threading.Event()
    thread = threading.Thread(target=_beat, args=(descriptor, name, beat, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:  # else another pod has taken it over
                path.unlink()
        os.close(descriptor)


def _take(path: Path, name: str, beat: float, stale: float) -> int:
    """The descriptor of the new lock file."""
    seen, since = "", time.monotonic()
    while True:
        with suppress(FileExistsError):
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
            os.write(descriptor, f"{name} 0\n".encode())
            return descriptor
        content = _read(path)
        if content != seen:
            if content and content.split()[:2] != seen.split()[:2]:
                print(f"waiting for {printable(content.split()[0])}, which fetches the same: {path.stem}", flush=True)
            seen, since = content, time.monotonic()
        elif time.monotonic() - since > stale:
            print(f"taking over from a holder that has stopped: {path.stem}", flush=True)
            _remove(path, seen)
            seen, since = "", time.monotonic()
        time.sleep(beat / 4)


def _beat(descriptor: int, name: str, beat: float, stop: threading.Event) -> None:
    """Write to the descriptor, not to the path: after a take-over, the path is another holder's lock."""
    count = 0
    while not stop.wait(beat):
        count += 1
        with suppress(OSError):
            os.pwrite(descriptor, f"{name} {count}\n".encode(), 0)
            os.fsync(descriptor)


def _remove(path: Path, seen: str) -> None:
    """Remove the stale lock; restore it if another waiter had already replaced it."""
    aside = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    with suppress(FileNotFoundError):
        path.rename(aside)
        if _read(aside) != seen:
            with suppress(FileExistsError):
                os.link(aside, path)
        aside.unlink()


def _read(path: Path) -> str:
    return (small_file(path, _LARGEST) or b"").decode(errors="replace")
