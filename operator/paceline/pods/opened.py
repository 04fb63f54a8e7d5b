"""Opens files that another party may have written: a server in /ctl, another deployment on the cache volume."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path, *, through_links: bool = False) -> Iterator[int | None]:
    """A descriptor of a regular file, never one at which we would wait for somebody's other end; None of anything
    else, and where there is nothing."""
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
    """From where the descriptor stands."""
    parts = []
    while most > 0 and (part := os.read(file, min(most, 1 << 20))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


def small_file(path: Path, most: int, *, through_links: bool = False) -> bytes | None:
    """All of a file of at most so many bytes; None where there is none, and of a larger one."""
    with opened(path, through_links=through_links) as file:
        if file is None or os.fstat(file).st_size > most:
            return None
        return read_at_most(file, most)
