"""Opens files that others may have written: a server in /ctl, another deployment on the cache volume."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path, *, through_links: bool = False) -> Iterator[int | None]:
    """A descriptor of a regular file; None for anything else and for a missing file. Never blocks, as a FIFO would."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if through_links else os.O_NOFOLLOW))
    except OSError:
        yield None
        return
    try:
        yield file if stat.S_ISREG(os.fstat(file).st_mode) else None
    finally:
        os.close(file)


def read_at_most(file: int, most: int) -> bytes:
    """Reads from the descriptor's position."""
    parts = []
    while most > 0 and (part := os.read(file, min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def small_file(path: Path, most: int, *, through_links: bool = False) -> bytes | None:
    """The content of a file of at most `most` bytes; None if it is missing or larger."""
    with opened(path, through_links=through_links) as file:
        if file is None or os.fstat(file).st_size > most:
            return None
        return read_at_most(file, most)
