"""Versions of engines as they are compared: by release, whatever is appended to it."""

import re

Release = tuple[int, ...]


def release(version: str) -> Release | None:
    """(0, 5, 6) of 0.5.6, v0.5.6.post1 and 0.5.6rc1; None of what is no version, such as nightly."""
    found = re.match(r"v?(\d+(?:\.\d+)+)", version)
    return tuple(map(int, found[1].split("."))) if found else None
