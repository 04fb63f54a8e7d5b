"""What decides a run and what bounds it: its gate, its budget, whether outputs are compared, how much it may hold."""

from typing import Annotated, Literal

from pydantic import Field

from paceline.api.model import Model
from paceline.api.rules import Rule
from paceline.api.types import Amount, Confidence, Duration, Percentage, PercentageBelow100, Unique

BOUNDS = {"kvTokens": "maxDecrease", "retractions": "max"}
"""Metric → the field that bounds it; maxIncrease bounds all others, which are latencies."""


def _bounded_by(bound: str, metrics: str, description: str) -> Rule:
    others = (name for name in ("maxIncrease", "maxDecrease", "max") if name != bound)
    return Rule(
        cel=f"!({metrics}) || (has(self.{bound}) && {' && '.join(f'!has(self.{other})' for other in others)})",
        message=f"{description} must be bounded by {bound}, and by it only",
        field=f".{bound}",
    )


class LimitSpec(Model):
    """A bound on a metric other than throughput."""

    rules = (
        *(_bounded_by(bound, f"self.metric == '{metric}'", metric) for metric, bound in BOUNDS.items()),
        _bounded_by("maxIncrease", f"!(self.metric in {list(BOUNDS)})", "a latency"),
    )

    metric: Literal[
        "meanTTFT", "p95TTFT", "meanTPOT", "p95TPOT", "p99ITL", "meanE2E", "p95E2E", "kvTokens", "retractions"
    ]
    """Metric: a latency, kvTokens (capacity of the KV cache in tokens), or retractions (requests of a workload that a
    server takes back when memory runs out)."""
    max_increase: Percentage | None = None
    """How far a latency may exceed the baseline's. Where requests arrive at a rate and neither meanTTFT nor p95TTFT is
    listed, meanTTFT may rise by 25%."""
    max_decrease: PercentageBelow100 | None = None
    """How far kvTokens may fall below the baseline's."""
    max: Annotated[int, Field(ge=0, le=100000)] | None = None
    """Retractions allowed on any arm; 0 if retractions is not listed. A server with more fails its round; a second such
    round makes a candidate Unreliable."""


class GateSpec(Model):
    """The rule from rounds to a verdict. Absent fields come from the deployment's gate, then from the defaults."""

    rules = (
        Rule(
            cel="!has(self.decideAfterRounds) || self.decideAfterRounds.isSorted()",
            message="decideAfterRounds must rise, for example [4, 6, 8]",
            field=".decideAfterRounds",
        ),
    )

    min_improvement: PercentageBelow100 | None = None
    """A candidate must be shown to be faster than the baseline by more than this, as a mean over workloads; 5% if
    absent."""
    max_regression: PercentageBelow100 | None = None
    """A candidate must be shown not to be slower than the baseline by this much or more on any workload; 3% if
    absent."""
    confidence: Confidence | None = None
    """Confidence of the whole decision, over all candidates and looks; 95% if absent."""
    limits: Annotated[tuple[LimitSpec, ...], Field(max_length=9), Unique(("metric",))] | None = None
    """Bounds on latencies and memory."""
    decide_after_rounds: (
        Annotated[tuple[Annotated[int, Field(ge=2, le=50)], ...], Field(min_length=1, max_length=8), Unique()] | None
    ) = None
    """Round counts at which the gate decides; the last one is the maximum. If absent: [4, 6, 8] for two arms, [3, 6, 9]
    for three, [4, 8] for more, so that each arm comes first in a round equally often."""


class BudgetSpec(Model):
    """Limit of what a run may use. A run that reaches it ends with the verdict that its rounds support."""

    gpu_hours: Amount
    """Accelerators times hours, as a decimal string."""


class TimeoutsSpec(Model):
    """Time limits of a round."""

    start: Duration | None = None
    """Time from a server's start until it is ready; 30m if absent. A first start that compiles kernels (torch.compile,
    DeepGEMM, XLA) may take longer."""
    workload: Duration | None = None
    """Time for each workload of each arm. If absent, the time that all answers take at 5 tokens per second each, and at
    least 30m."""


class ParitySpec(Model):
    """Comparison of the candidates' outputs with the baseline's. Every arm of every round answers the first prompts of
    the first dataset, one at a time, at temperature 0. A candidate that differs by more than rounding explains is
    rejected; if the comparison is not possible, no candidate is promoted."""

    # No default: an empty `parity` would leave the fingerprint as it was. The bound is what the message has room for.
    samples: Annotated[int, Field(ge=1, le=32)]
    """Number of prompts."""
    max_tokens: Annotated[int, Field(ge=1, le=4096)] = 128
    """Maximum tokens per answer."""


MOST_POINTS = 48
"""Points of a round that fit into its termination message."""
MOST_SEARCHED = 16
"""Workloads of a search: a third of the points of a round, as its last rounds have three arms."""
MOST_COMPARED = 16
"""Arms whose answers fit there, too; a pool has no more."""
MOST_MEASURED = 480
"""Points of a run, over all of its rounds. Its status holds them all, each at up to 1.5 kB with what is told of its
server, and etcd takes no object of more than 1.5 MiB: the rest is for the spec and for rounds that are tried again. Ten
rounds of as many points as a message holds, forty of three arms on four sets."""
