"""Releases of engines as their servers report them."""

PARTS = ("", "+", ".", "-", "r", "a", "b")
"""What may follow a release in the version of the same: `0.5.23.post1`, `0.33.0+cu130`, `0.1.0rc0`."""


def same_release(reported: str, wanted: str) -> bool:
    return reported.startswith(wanted) and reported.removeprefix(wanted)[:1] in PARTS
