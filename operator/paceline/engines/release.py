"""Parses engine versions into releases without suffixes, for comparison."""

import re

Release = tuple[int, ...]


def release(version: str) -> Release | None:
    """(0, 5, 6) for 0.5.6, v0.5.6.post1 and 0.5.6rc1; None for other names, such as nightly."""
    match = re.match(r"v?(\d+(?:\.\d+)+)", version)
    return tuple(map(int, match[1].split("."))) if match else None
