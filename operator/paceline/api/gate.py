"""What decides a run and what bounds it: its gate, its budget, whether outputs are compared, how much it may hold."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from paceline import core
from paceline.api.model import Finding, Model, Rule, Unique
from paceline.api.words import Amount, Confidence, Fraction, NearTie, Positive, Tolerance

BOUNDS = {"kvTokens": "maximumDecrease", "retractions": "maximum"}
"""Of metrics that are no latency: by which field they are bounded."""


def _other_bound(limit: "LimitSpec") -> Iterator[Finding]:
    given = {
        "maximumIncrease": limit.maximum_increase,
        "maximumDecrease": limit.maximum_decrease,
        "maximum": limit.maximum,
    }
    right = BOUNDS.get(limit.metric, "maximumIncrease")
    said = [name for name, value in given.items() if value is not None]
    if said != [right]:
        yield f".{right}", f"{limit.metric} must be bounded by {right} alone; got {', '.join(said) or 'nothing'}"


class LimitSpec(Model):
    """A metric other than throughput that may not get much worse."""

    rules = (
        Rule(
            cel="self.metric == 'kvTokens'"
            " ? has(self.maximumDecrease) && !has(self.maximumIncrease) && !has(self.maximum)"
            " : self.metric == 'retractions'"
            " ? has(self.maximum) && !has(self.maximumIncrease) && !has(self.maximumDecrease)"
            " : has(self.maximumIncrease) && !has(self.maximumDecrease) && !has(self.maximum)",
            message="a latency must be bounded by maximumIncrease alone, kvTokens by maximumDecrease, retractions by "
            "maximum",
            field=".metric",
            broken=_other_bound,
        ),
    )

    metric: Literal[
        "meanTTFT", "p95TTFT", "meanTPOT", "p95TPOT", "p99ITL", "meanE2E", "p95E2E", "kvTokens", "retractions"
    ]
    """Which one: a latency, how many tokens the KV cache holds, or how many requests of a workload a server may take
    back for want of memory."""
    maximum_increase: Fraction | None = None
    """By which fraction of the baseline's a latency may rise. Where requests arrive at a rate, and neither meanTTFT nor
    p95TTFT is named here, meanTTFT may rise by "0.25" there."""
    maximum_decrease: Tolerance | None = None
    """By which fraction of the baseline's kvTokens may fall."""
    maximum: Annotated[int, Field(ge=0, le=100000)] | None = None
    """How many retractions there may be, on any arm; none if retractions is not named here. A server with more is one
    that did not get through its round: the second such round makes a candidate Unreliable."""


class GateSpec(Model):
    """The rule from rounds to a verdict; what is absent is taken from the wider gate, then from the defaults."""

    minimum_improvement: Fraction | None = None
    """A candidate must be shown to be faster by more than this, as a mean over workloads; "0.05" if absent."""
    regression_tolerance: Tolerance | None = None
    """On no workload may it be slower by this or more; "0.03" if absent."""
    confidence: Confidence | None = None
    """Of the whole decision, over all candidates and looks; "0.95" if absent."""
    variance_floor: Positive | None = None
    """Smallest standard deviation of ln(ratio) that is believed; "0.002" if absent."""
    limits: Annotated[tuple[LimitSpec, ...], Field(max_length=9), Unique(("metric",))] | None = None
    """Latencies and memory that are bounded as well."""


class BudgetSpec(Model):
    """What a run may take; at its end the verdict is what has been shown so far."""

    gpu_hours: Amount
    """Accelerators times hours, as a decimal string."""


class ParitySpec(Model):
    """Whether candidates answer what the baseline answers: the first prompts of the first dataset are asked of every
    arm of every round, one after another at temperature 0. A candidate that differs further than rounding explains is
    rejected; where that cannot be told, none is promoted."""

    # No default: an empty `parity` would leave the fingerprint as it was. The bound is what the message has room for.
    samples: Annotated[int, Field(ge=1, le=32)]
    """How many prompts."""
    max_tokens: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Cap of an answer; 128 if absent."""
    near_tie: NearTie | None = None
    """By how many nats, in the baseline's own logprobs, its token may be likelier than the one that the candidate goes
    on with, for the difference to be put down to rounding; "0.25" if absent, which is Paceline's choice."""


MOST_POINTS = 48
"""Points of a round that fit into its termination message."""
MOST_COMPARED = 16
"""Arms whose answers fit there, too; a pool has no more."""
MOST_MEASURED = 480
"""Points of a run, over all of its rounds. Its status holds them all, each at up to 1.5 kB with what is told of its
server, and etcd takes no object of more than 1.5 MiB: the rest is for the spec and for rounds that are tried again. Ten
rounds of as many points as a message holds, forty of three arms on four sets."""


def last_round(looks: Sequence[int] | None, arms: int) -> int:
    """How many rounds a run of so many arms with these `decideAfterRounds` has at most, if none has to be replaced."""
    return (looks or core.default_looks(arms))[-1]


def _disordered(gate: Any) -> Iterator[Finding]:
    rounds = list(gate.decide_after_rounds or ())
    if rounds != sorted(rounds):
        yield ".decideAfterRounds", f"decideAfterRounds must rise: {sorted(rounds)}"


RISING = Rule(
    cel="!has(self.decideAfterRounds) || self.decideAfterRounds.isSorted()",
    message="decideAfterRounds must rise, for example [4, 6, 8]",
    field=".decideAfterRounds",
    broken=_disordered,
)
