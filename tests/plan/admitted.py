"""Whether the API server would take a status: a planner whose status is refused is silent for ever."""

import json
from collections.abc import Mapping
from typing import Any

from paceline.api.model import Model
from paceline.api.run_status import BenchmarkRunStatus
from paceline.api.status import SpeculativeDeploymentStatus

KINDS: Mapping[str, type[Model]] = {
    "BenchmarkRun": BenchmarkRunStatus,
    "SpeculativeDeployment": SpeculativeDeploymentStatus,
}
LARGEST = 2**63 - 1
"""Of an integer; what is beyond arrives as a number with a fraction, of which a status has none."""


def check(kind: str, status: Mapping[str, Any]) -> None:
    """Raises if the schema has it otherwise."""
    KINDS[kind].model_validate_json(json.dumps(status))
    odd = [number for number in _numbers(status) if isinstance(number, float) or abs(number) > LARGEST]
    assert not odd, f"no integers of 64 bits: {odd}"


def _numbers(value: Any) -> list[Any]:
    match value:
        case Mapping():
            return [number for one in value.values() for number in _numbers(one)]
        case list() | tuple():
            return [number for one in value for number in _numbers(one)]
        case bool():
            return []
        case int() | float():
            return [value]
    return []
