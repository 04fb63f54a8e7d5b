"""The gate's limits on metrics besides throughput."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from paceline.core import Gate, Limit, Measurement
from paceline.gate.interval import Interval, interval
from paceline.gate.rounds import Rounds
from paceline.gate.server_failures import RETRACTED, worst

FIRST_TOKEN = ("meanTTFT", "p95TTFT")
AT_A_RATE = Limit(metric="meanTTFT", max_increase=0.25)
"""The default limit at a request rate, where a request's speed hardly shows how long it waited for its slot. It bounds
the mean: the p95 of some hundred requests varies by 10 % and more between rounds, too much for eight rounds to decide.
It is 25 %, because a draft head has its own prefill: with it, a first token that took 200 ms may take 250 ms."""
OF_A_CHANGE = Limit(metric="meanTTFT", max_increase=0.25)
"""The same bound beside the incumbent, at every load: what replaces it may have another engine, hence another
prefill."""
_LATENCIES = (*FIRST_TOKEN, "meanTPOT", "p95TPOT", "p99ITL", "meanE2E", "p95E2E")
BOUNDED_BY: Mapping[str, str] = {
    **dict.fromkeys(_LATENCIES, "maxIncrease"),
    "energyPerToken": "maxIncrease",
    "cacheHitRate": "maxDecrease",
    "kvTokens": "maxDecrease",
    "retractions": "max",
}
"""Metric → the field of a limit that bounds it."""
OF_THE_SERVER = frozenset({"kvTokens"})
"""Metrics of a server as a whole, not of a workload."""


def limits(gate: Gate, rated: Collection[str]) -> tuple[Limit, ...]:
    """The gate's limits, and `AT_A_RATE` if there are workloads at a rate and no limit bounds their time to the first
    token."""
    named = {limit.metric for limit in gate.limits}
    return gate.limits if not rated or named & set(FIRST_TOKEN) else (*gate.limits, AT_A_RATE)


def beside_incumbent(gate: Gate) -> Gate:
    """The rule of a comparison with the incumbent: not slower by more than `max_slowdown`, on any mean or workload."""
    bounded = {limit.metric for limit in gate.limits} & set(FIRST_TOKEN)
    return replace(
        gate,
        min_improvement=-gate.max_slowdown,
        max_regression=gate.max_slowdown,
        limits=gate.limits if bounded else (*gate.limits, OF_A_CHANGE),
    )


def enforce_maxima(measurements: Sequence[Measurement], bounds: Sequence[Limit]) -> list[Measurement]:
    """Invalidate points that exceed a `max`; their server counts as failed in the round (Retracted, or worse)."""
    most = {limit.metric: limit.max for limit in bounds if limit.max is not None}
    if not most:
        return list(measurements)

    def beyond(m: Measurement) -> bool:
        return any(m.metrics.get(metric, 0) > max for metric, max in most.items())

    return [replace(m, valid=False, ended=worst((m.ended, RETRACTED))) if beyond(m) else m for m in measurements]


def unknown(rounds: Rounds, bound: Limit, arm: str, numbers: Sequence[int]) -> dict[str, Interval | None]:
    """Workload → None for each workload whose bounded count is missing in a round: that blocks promotion."""
    return {
        w: None
        for w in rounds.workloads
        if not all(rounds.cells[n, arm, w].metrics.get(bound.metric, -1) >= 0 for n in numbers)
    }


def metric_ratios(
    rounds: Rounds, bound: Limit, arm: str, numbers: Sequence[int], rated: Collection[str], error: float, floor: float
) -> dict[str, Interval | None]:
    """Workload ("" for a metric of the server) → bounds of the metric as a ratio to the baseline's; None if a round
    lacks it."""
    workloads = [w for w in rounds.workloads if w in rated or bound is not AT_A_RATE]
    logs_by_place = (
        {"": _weakest(rounds, bound.metric, arm, numbers)}
        if bound.metric in OF_THE_SERVER
        else {w: rounds.changes(arm, numbers, w, bound.metric) for w in workloads}
    )
    return {place: interval(logs, error=error, floor=floor) if logs else None for place, logs in logs_by_place.items()}


def _weakest(rounds: Rounds, metric: str, arm: str, numbers: Sequence[int]) -> list[float] | None:
    """The smallest ratio of a server metric in each round, over the workloads that recorded it on both arms.

    A server's capacity is constant while it lives, so the ratios are equal if one server answered all workloads. If
    each workload had its own server, the limit must hold on the worst of them. None if a round recorded it on no
    workload.
    """
    least = (
        min((logs[0] for w in rounds.workloads if (logs := rounds.changes(arm, [n], w, metric))), default=None)
        for n in numbers
    )
    logs = [log for log in least if log is not None]
    return logs if len(logs) == len(numbers) else None
