"""The examples by what they ask for."""

from pathlib import Path
from typing import Any

import yaml

EXAMPLES = Path(__file__).parents[2] / "examples"


def ours(path: Path) -> dict[str, Any]:
    """The first object of an example, which is ours; what may follow is what it names."""
    found: dict[str, Any] = next(yaml.safe_load_all(path.read_text()))
    return found


def _of(kind: str) -> tuple[Path, ...]:
    return tuple(path for path in sorted(EXAMPLES.glob("*.yaml")) if ours(path)["kind"] == kind)


DEPLOYMENTS = _of("SpeculativeDeployment")
RUNS = _of("BenchmarkRun")
