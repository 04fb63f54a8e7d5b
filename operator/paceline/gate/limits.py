"""What is bounded besides throughput, and how it is held against a candidate."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from paceline.core import Gate, Limit, Measurement
from paceline.gate.interval import Interval, interval
from paceline.gate.own_ends import RETRACTED, worst
from paceline.gate.rounds import Rounds

FIRST_TOKEN = ("meanTTFT", "p95TTFT")
AT_A_RATE = Limit(metric="meanTTFT", maximum_increase=0.25, at_a_rate=True)
"""Where requests arrive at a rate, the speed of one hardly tells how long it waited for its place. The mean, as the
p95 of some hundred requests varies by a tenth and more between rounds, and would decide nothing in eight; a quarter,
since a draft head has its own prefill: a first token after 200 ms may come after 250."""
LATENCIES = (*FIRST_TOKEN, "meanTPOT", "p95TPOT", "p99ITL", "meanE2E", "p95E2E")
BOUNDED_BY: Mapping[str, str] = {
    **dict.fromkeys(LATENCIES, "maximumIncrease"),
    "kvTokens": "maximumDecrease",
    "retractions": "maximum",
}
"""What may be limited, and by which of the three bounds."""
OF_THE_SERVER = frozenset({"kvTokens"})
"""Metrics that a server has once, whatever it is measured on."""


def limits(gate: Gate, rated: Collection[str]) -> tuple[Limit, ...]:
    """The gate's and, where there are workloads at a rate and nothing else bounds the time to their first token, its
    own."""
    named = {limit.metric for limit in gate.limits}
    return gate.limits if not rated or named & set(FIRST_TOKEN) else (*gate.limits, AT_A_RATE)


def counted(measurements: Sequence[Measurement], bounds: Sequence[Limit]) -> list[Measurement]:
    """A point that exceeds a count is no evidence, and its server one that did not get through the round: for that,
    unless it came to worse."""
    most = {limit.metric: limit.maximum for limit in bounds if limit.maximum is not None}

    def beyond(m: Measurement) -> bool:
        return any(m.metrics.get(metric, 0) > maximum for metric, maximum in most.items())

    return [replace(m, valid=False, ended=worst((m.ended, RETRACTED))) if beyond(m) else m for m in measurements]


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
    found = (
        {"": _weakest(rounds, bound.metric, arm, numbers)}
        if bound.metric in OF_THE_SERVER
        else {w: rounds.changes(arm, numbers, w, bound.metric) for w in workloads}
    )
    return {place: interval(logs, error=error, floor=floor) if logs else None for place, logs in found.items()}


def _weakest(rounds: Rounds, metric: str, arm: str, numbers: Sequence[int]) -> list[float] | None:
    """Of a metric of the server: the least ratio of a round, over the workloads that recorded it on both arms.

    A server has one capacity for as long as it lives, so they are all the same where one server answered all workloads.
    Where they are not, each workload had a server of its own, and what is promised of the capacity is to hold on the
    worst of them, as a limit on a latency is to hold on every workload. None if a round has it on no workload.
    """
    least = (
        min((logs[0] for w in rounds.workloads if (logs := rounds.changes(arm, [n], w, metric))), default=None)
        for n in numbers
    )
    found = [log for log in least if log is not None]
    return found if len(found) == len(numbers) else None
