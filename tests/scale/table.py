"""The table of docs/performance.md, from what the bench has found."""

from collections.abc import Sequence
from typing import Any


def markdown(found: Sequence[dict[str, float]]) -> str:
    return ""


def write(found: Any) -> None: ...
