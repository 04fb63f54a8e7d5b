"""What a file has of our two kinds, for commands that go on with it."""

from pathlib import Path
from typing import Any

from paceline import api
from paceline.api.problems import is_ours
from paceline.api.text import documents
from paceline.cli.options import reason
from paceline.cli.validate import NOTHING, line, of_text, read

Manifest = dict[str, Any]
DEPLOYMENT = "SpeculativeDeployment"
RUN = "BenchmarkRun"


class RefusedError(ValueError):
    """A file that cannot be gone on with; the lines that `paceline validate` would print."""


def ours(file: str) -> tuple[Manifest, ...]:
    """At least one, and all are good; `-` is stdin. Raises RefusedError."""
    return tuple(manifest for manifest in everything(file) if is_ours(manifest))


def everything(file: str) -> tuple[Manifest, ...]:
    """All objects, of which at least one is ours, and all of ours are good; `-` is stdin. Raises RefusedError."""
    if Path(file).is_dir():
        raise RefusedError(f"{file}: must be a file, not a directory")
    try:
        text = read(file)
    except (OSError, ValueError) as error:
        raise RefusedError(f"{file}: {reason(error)}") from error
    if problems := [line(file, problem) for problem in of_text(text) if not problem.note]:
        raise RefusedError("\n".join(problems))
    manifests = tuple(documents(text))
    if not any(map(is_ours, manifests)):
        raise RefusedError(f"{file}: {NOTHING}")
    return tuple(api.stored(one) if is_ours(one) else one for one in manifests)
