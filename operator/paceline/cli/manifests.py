"""What a file has of our two kinds, for commands that go on with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from paceline.cli.validate import Loader, check

Manifest = dict[str, Any]
DEPLOYMENT = "SpeculativeDeployment"
RUN = "BenchmarkRun"


class RefusedError(ValueError):
    """A file that cannot be gone on with; the lines that `paceline validate` would print."""


def ours(file: str) -> tuple[Manifest, ...]:
    """At least one, and all are good. Raises RefusedError."""
    if Path(file).is_dir():
        raise RefusedError(f"{file}: must be a file, not a directory")
    if problems := [f"{name}: {problem}" for name, problem in check(file)]:
        raise RefusedError("\n".join(problems))
    found = tuple(one for one in documents(file) if one.get("kind") in (DEPLOYMENT, RUN))
    if not found:
        raise RefusedError(f"{file}: there is neither a SpeculativeDeployment nor a BenchmarkRun in it")
    return found


def documents(file: str) -> Iterator[Manifest]:
    """All objects of a file, those of a List too. Raises OSError, yaml.YAMLError."""
    for document in yaml.load_all(Path(file).read_text(), Loader):
        if isinstance(document, dict):
            yield from document["items"] if document.get("kind") == "List" else (document,)
