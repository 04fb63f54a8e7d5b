"""The examples by what they ask for."""

from pathlib import Path

import yaml

EXAMPLES = Path(__file__).parents[2] / "examples"


def _of(kind: str) -> tuple[Path, ...]:
    files = sorted(EXAMPLES.glob("*.yaml"))
    return tuple(path for path in files if yaml.safe_load(path.read_text())["kind"] == kind)


DEPLOYMENTS = _of("SpeculativeDeployment")
RUNS = _of("BenchmarkRun")
