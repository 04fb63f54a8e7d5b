"""What is bounded besides throughput, and how it is held against a candidate."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from paceline.core import Gate, Limit, Measurement
from paceline.gate.interval import Interval, interval
from paceline.gate.rounds import Rounds

FIRST_TOKEN = ("meanTTFT", "p95TTFT")
AT_A_RATE = Limit(metric="meanTTFT", maximum_increase=0.25, at_a_rate=True)
"""Where requests arrive at a rate, the speed of one hardly tells how long it waited for its place. The mean, as the
p95 of some hundred requests varies by a tenth and more between rounds, and would decide nothing in eight; a quarter,
since a draft head has its own prefill: a first token after 200 ms may come after 250."""
OF_THE_SERVER = frozenset({"kvTokens"})
"""Metrics that a server has once, whatever it is measured on."""
RETRACTED = "Retracted"


def limits(gate: Gate, rated: Collection[str]) -> tuple[Limit, ...]:
    """The gate's and, where there are workloads at a rate and nothing else bounds the time to their first token, its
    own."""
    named = {limit.metric for limit in gate.limits}
    return gate.limits if not rated or named & set(FIRST_TOKEN) else (*gate.limits, AT_A_RATE)


def counted(measurements: Sequence[Measurement], bounds: Sequence[Limit]) -> list[Measurement]:
    """A point that exceeds a count is no evidence, and its server one that did not get through the round."""
    most = {limit.metric: limit.maximum for limit in bounds if limit.maximum is not None}

    def beyond(m: Measurement) -> bool:
        return any(m.metrics.get(metric, 0) > maximum for metric, maximum in most.items())

    return [replace(m, valid=False, ended=m.ended or RETRACTED) if beyond(m) else m for m in measurements]


def unknown(rounds: Rounds, bound: Limit, arm: str, numbers: Sequence[int]) -> dict[str, Interval | None]:
    """Workload → None, where a count that is bounded is not known of some round: what nobody counted is not kept."""
    return {
        w: None
        for w in rounds.workloads
        if not all(rounds.cells[n, arm, w].metrics.get(bound.metric, -1) >= 0 for n in numbers)
    }


def changes(
    rounds: Rounds, bound: Limit, arm: str, numbers: Sequence[int], rated: Collection[str], error: float, floor: float
) -> dict[str, Interval | None]:
    """Workload, or "" for a metric of the server, → bounds of the metric over the baseline's; None where a round lacks
    it."""
    workloads = [w for w in rounds.workloads if w in rated or not bound.at_a_rate]
    places = {"": workloads[0]} if bound.metric in OF_THE_SERVER else dict(zip(workloads, workloads, strict=True))
    found = {place: rounds.changes(arm, numbers, w, bound.metric) for place, w in places.items()}
    return {place: interval(logs, error=error, floor=floor) if logs else None for place, logs in found.items()}
