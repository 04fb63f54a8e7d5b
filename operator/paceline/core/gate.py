"""The rule that turns rounds into a verdict, and its defaults."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from paceline.core.model import model
from paceline.core.types import Percentage, PercentageBelow100


@model
class Limit:
    """A bound on a metric other than throughput."""

    metric: Literal[
        "meanTTFT",
        "p95TTFT",
        "meanTPOT",
        "p95TPOT",
        "p99ITL",
        "meanE2E",
        "p95E2E",
        "energyPerToken",
        "cacheHitRate",
        "kvTokens",
        "retractions",
    ]
    """Metric: a latency, energyPerToken (joules per output token), cacheHitRate (fraction of the prompt tokens that
    came from the prefix cache), kvTokens (capacity of the KV cache in tokens), or retractions (requests of a workload
    that a server takes back when memory runs out)."""
    max_increase: Percentage | None = None
    """How far a latency or energyPerToken may exceed the baseline's. At a request rate, if neither meanTTFT nor p95TTFT
    is listed, meanTTFT may rise by 25%. Energy has no limit unless it is listed; a round without it shows nothing."""
    max_decrease: PercentageBelow100 | None = None
    """How far cacheHitRate or kvTokens may fall below the baseline's."""
    max: Annotated[int, Field(ge=0, le=100000)] | None = None
    """Retractions allowed on any arm; 0 if retractions is not listed. A server with more fails its round; a second such
    round makes a candidate Unreliable."""


def default_looks(arms: int) -> tuple[int, ...]:
    """The default numbers of rounds after which the gate decides, for this number of arms, including the baseline.

    Every round starts with another arm, so after a multiple of the number of arms each was first equally often: with
    two, three, four or eight arms no look is biased by the first place (0024). With other numbers a full cycle would
    cost too much; each arm is first once or twice in eight rounds.
    """
    return {2: (4, 6, 8), 3: (3, 6, 9)}.get(arms, (4, 8))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The rule from rounds to a verdict; improvement and tolerance are fractions of the baseline."""

    min_improvement: float = 0.05
    max_regression: float = 0.03
    max_slowdown: float = 0.03
    """How much slower than the incumbent what replaces it may be, on the mean and on every workload."""
    confidence: float = 0.95
    variance_floor: float = 0.002
    limits: tuple[Limit, ...] = ()
    decide_after_rounds: tuple[int, ...] = default_looks(2)

    @property
    def retractions(self) -> int:
        """The number allowed on any arm."""
        return next((limit.max or 0 for limit in self.limits if limit.metric == "retractions"), 0)
