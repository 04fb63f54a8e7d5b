"""Current traffic of a pool's servers, from two readings of their counters, next to the values of its evidence."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paceline.api.round import rounds_of
from paceline.cli.live.deployment import ObservedDeployment, ObservedPool
from paceline.core.manifest import Object
from paceline.core.record import decimal, to_camel
from paceline.engines import ENGINES, Counts
from paceline.report import measured, read
from paceline.watch.windows import add_reading as one_more
from paceline.watch.windows import window_increase

LONG_AGO = 1e9
"""Seconds: any two readings make a window, however far apart."""
_METRICS = {
    "acceptLength": "accept_length",
    "outputThroughput": "tokens_per_second",
    "meanTTFT": "ttft_seconds",
    "meanTPOT": "itl_seconds",
}
"""A run's metric → field of Speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Speeds of one server; None if unknown or without traffic."""

    requests_under_way: float | None = None
    tokens_per_second: float | None = None
    accept_length: float | None = None
    ttft_seconds: float | None = None
    itl_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficMeasured:
    workload: str
    speed: Speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """`now`: mean of the readable servers. `errors`: why the others could not be read."""

    pool: str
    arm: str
    servers: int
    now: Speed | None
    measured: tuple[TrafficMeasured, ...]
    evidence: str
    emulated: bool
    errors: tuple[str, ...]


Page = Counts | str
"""A server's counts, or why it could not be read."""


def traffic(
    deployment: ObservedDeployment,
    pool: ObservedPool,
    runs: Sequence[Object],
    before: Mapping[str, Page],
    after: Mapping[str, Page],
    seconds: float,
) -> Traffic:
    """`before` and `after`: the pool's servers by pod name, `seconds` apart."""
    serving = pool.status.serving
    arm, evidence = (serving.arm, serving.evidence.run) if serving else ("", "")
    run = next((run for run in runs if run["metadata"]["name"] == evidence), None)
    both = {name: (page, after[name]) for name, page in before.items() if name in after}
    errors = [page for pair in both.values() for page in pair if isinstance(page, str)]
    counted = [(one, other) for one, other in both.values() if isinstance(one, Counts) and isinstance(other, Counts)]
    return Traffic(
        pool=pool.name,
        arm=arm,
        servers=len(before),
        now=_now(deployment.engine_of(arm), counted, seconds) if counted else None,
        measured=tuple(_measured(run, arm) if run else _expected(pool)),
        evidence=evidence,
        emulated=evidence in pool.emulated,
        errors=tuple(dict.fromkeys(errors)),
    )


def _now(of: tuple[str, str], counted: Sequence[tuple[Counts, Counts]], seconds: float) -> Speed:
    """`of`: engine and version."""
    engine, version = of
    monitor = ENGINES[engine].monitor(version)
    windows = [
        one_more(one_more(None, monitor, one, 0.0, LONG_AGO), monitor, other, seconds, LONG_AGO)
        for one, other in counted
    ]
    grown = window_increase(window.readings for window in windows)
    return Speed(
        requests_under_way=grown.under_way,
        tokens_per_second=(grown.first_tokens + grown.later_tokens) / seconds / len(windows),
        accept_length=grown.accept_length,
        ttft_seconds=grown.ttft,
        itl_seconds=grown.itl,
    )


def _measured(run: Object, arm: str) -> Iterator[TrafficMeasured]:
    spec = run["spec"]
    rounds = rounds_of(run)
    arms, workloads = [each["name"] for each in spec["arms"]], [read.named_workload(each) for each in spec["workloads"]]
    values = measured.values(arms, workloads, rounds)
    typical = {(value.workload, value.metric): value.typical for value in values if value.arm == arm}
    for workload in spec["workloads"]:
        name = read.named_workload(workload)
        found = {field: typical[name, metric] for metric, field in _METRICS.items() if (name, metric) in typical}
        yield TrafficMeasured(workload=name, speed=Speed(requests_under_way=_load(workload), **found))


def _expected(pool: ObservedPool) -> Iterator[TrafficMeasured]:
    """What status keeps of a deleted run."""
    expected, serving = pool.status.expected, pool.status.serving
    if expected and serving and expected.revision == serving.revision:
        for load in expected.loads:
            speed = Speed(
                requests_under_way=load.concurrency,
                accept_length=load.accept_length,
                ttft_seconds=load.mean_ttft,
                itl_seconds=load.mean_tpot,
            )
            yield TrafficMeasured(workload=load.workload, speed=speed)


def _load(workload: Object) -> float | None:
    """The concurrency of a closed loop; None at a rate and on a ramp, where it varies."""
    return float(workload["concurrency"]) if read.at_one_load(workload) else None


def traffic_payload(deployment: ObservedDeployment, pools: Sequence[Traffic]) -> dict[str, Any]:
    return {
        "namespace": deployment.namespace,
        "name": deployment.name,
        "pools": [
            {
                "name": pool.pool,
                "arm": pool.arm,
                "servers": pool.servers,
                "now": _fields(pool.now) if pool.now else None,
                "measured": [{"workload": each.workload, **_fields(each.speed)} for each in pool.measured],
                "evidence": pool.evidence,
                "emulated": pool.emulated,
                "errors": list(pool.errors),
            }
            for pool in pools
        ],
    }


def _fields(speed: Speed) -> dict[str, str | None]:
    return {
        to_camel(name): None if (value := getattr(speed, name)) is None else decimal(value) for name in Speed.__slots__
    }
