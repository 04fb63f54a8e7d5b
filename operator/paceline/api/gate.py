"""What decides a run and what bounds it: its gate, its budget, whether outputs are compared, how much it may hold."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from paceline.api.model import SchemaModel
from paceline.api.rules import Rule
from paceline.core import Limit
from paceline.core.types import Amount, Confidence, PercentageBelow100, Unique

BOUNDS = {"cacheHitRate": "maxDecrease", "kvTokens": "maxDecrease", "retractions": "max"}
"""Metric → the field that bounds it; maxIncrease bounds all others: latencies and energyPerToken."""


def _bounded_by(bound: str, metrics: str, description: str) -> Rule:
    others = (name for name in ("maxIncrease", "maxDecrease", "max") if name != bound)
    return Rule(
        cel=f"!({metrics}) || (has(self.{bound}) && {' && '.join(f'!has(self.{other})' for other in others)})",
        message=f"{description} must be bounded by {bound}, and by it only",
        field=f".{bound}",
    )


RULES: Mapping[type[Any], tuple[Rule, ...]] = {
    Limit: (
        *(_bounded_by(bound, f"self.metric == '{metric}'", metric) for metric, bound in BOUNDS.items()),
        _bounded_by("maxIncrease", f"!(self.metric in {list(BOUNDS)})", "a latency or energyPerToken"),
    ),
}


class GateSpec(SchemaModel):
    """The rule from rounds to a verdict. Absent fields come from the deployment's gate, then from its
    profile's, then from the defaults."""

    rules = (
        Rule(
            cel="!has(self.decideAfterRounds) || self.decideAfterRounds.isSorted()",
            message="decideAfterRounds must rise, for example [4, 6, 8]",
            field=".decideAfterRounds",
        ),
    )

    min_improvement: PercentageBelow100 | None = None
    """A candidate must be shown to be faster than the baseline by more than this on average; 5% if absent."""
    max_regression: PercentageBelow100 | None = None
    """On every workload a candidate must be shown to be slower than the baseline by less than this; 3% if absent."""
    max_slowdown: PercentageBelow100 | None = None
    """What replaces a pool's servers after an edit must be shown to be slower than these by less than this, on average
    and on every workload; 3% if absent."""
    confidence: Confidence | None = None
    """Confidence of the whole decision, over all candidates and looks; 95% if absent."""
    limits: Annotated[tuple[Limit, ...], Field(max_length=10), Unique(("metric",))] | None = None
    """Bounds on latencies, energy and memory."""
    decide_after_rounds: (
        Annotated[tuple[Annotated[int, Field(ge=2, le=50)], ...], Field(min_length=1, max_length=8), Unique()] | None
    ) = None
    """Round counts at which the gate decides; the last one is the maximum. If absent: [4, 6, 8] for two arms, [3, 6, 9]
    for three, [4, 8] for more, so that each arm comes first in a round equally often."""


class BudgetSpec(SchemaModel):
    """Limit of what a run may use. At the limit the run ends with the verdict that its rounds support."""

    gpu_hours: Amount
    """Accelerators times hours, as a decimal string."""


MOST_POINTS = 48
"""Points of a round; an object with so many is below 110 kB (docs/limits.md)."""
MOST_SEARCHED = 12
"""Workloads of a search: a quarter of a round's points, because the gate after a search compares up to four arms: the
baseline, the best tree, adaptive mode and what the pool serves."""
