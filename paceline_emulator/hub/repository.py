"""Repositories in memory, with the identities the hub gives to files and commits."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

LARGE = ".safetensors"
"""Files of this ending are kept as Git LFS objects, named by SHA-256; all others are Git blobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    content: bytes
    oid: str
    """Of the Git blob: for a large file, of what stands for it."""
    sha256: str | None = None
    """Of a large file's content."""

    @property
    def etag(self) -> str:
        return self.sha256 or self.oid


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A commit: 40 hexadecimal digits that follow from the content alone."""

    commit: str
    files: Mapping[str, File]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """`history` has the oldest snapshot first; the last one is `main`."""

    history: tuple[Snapshot, ...]
    token: str | None = None
    """Set: the repository is gated, and this token opens it."""
    invented: bool = False
    """Nothing is published about its model."""

    def at(self, revision: str) -> Snapshot | None:
        """The snapshot a branch or commit names."""
        if revision == "main":
            return self.history[-1]
        return next((snapshot for snapshot in self.history if snapshot.commit == revision), None)


def snapshot(files: Mapping[str, bytes]) -> Snapshot:
    """Name every file and the whole by content."""
    named = {path: _file(path, content) for path, content in sorted(files.items())}
    listing = "".join(f"{file.etag} {path}\n" for path, file in named.items())
    return Snapshot(commit=hashlib.sha1(listing.encode()).hexdigest(), files=named)


def _file(path: str, content: bytes) -> File:
    if not path.endswith(LARGE):
        return File(content=content, oid=_blob(content))
    digest = hashlib.sha256(content).hexdigest()
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(content)}\n"
    return File(content=content, oid=_blob(pointer.encode()), sha256=digest)


def _blob(content: bytes) -> str:
    """Git's name for a blob."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
