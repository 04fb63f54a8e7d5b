"""The spec of a BenchmarkProfile: how a team's models are measured and decided, for many deployments."""

from typing import Annotated, Literal

from pydantic import Field

from paceline.api.deployment import MeasuringSpec
from paceline.api.gate import GateSpec
from paceline.api.model import SchemaModel
from paceline.core.types import Unique

ProfiledField = Literal[
    "gate",
    "datasets",
    "capacityPolicy",
    "window",
    "budget",
    "parity",
    "timeouts",
    "podLabels",
    "queueName",
    "maxEvidenceAge",
]


class BenchmarkProfileSpec(SchemaModel):
    """Fields of a deployment, at the same places, for all deployments of the namespace that name the profile."""

    benchmark: MeasuringSpec | None = None
    """How candidates are measured. Each whole field applies to deployments that do not write it."""
    gate: GateSpec | None = None
    """The rule from rounds to a verdict. Each field applies if neither spec.gate nor a pool's gate has it."""
    locked: Annotated[tuple[ProfiledField, ...], Field(max_length=10), Unique()] = ()
    """Fields of spec.benchmark, or gate, that no deployment may write with another value; if the profile leaves such a
    field out, the default stays. capacityPolicy includes minServing; gate includes pools' gates."""
