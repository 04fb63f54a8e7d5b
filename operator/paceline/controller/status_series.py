"""Exports the status of an object as series: what a pool serves; what a run found and cost."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import REGISTRY
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.core import Purpose, purpose_of
from paceline.core.names import DEPLOYMENT_LABEL
from paceline.kube import Manifest
from paceline.plan.run.searched import MEAN
from paceline.plan.step import parse_time

Status = Mapping[str, Any]
OF_OBJECT = ["namespace", "name"]
OF_POOL = [*OF_OBJECT, "pool"]


@dataclass(frozen=True, slots=True, eq=False)
class Gauge:
    """Like prometheus_client's Gauge in a seventh of the memory: thousands of objects have several series each."""

    name: str
    text: str
    labels: list[str]


GaugeValue = tuple[Gauge, tuple[str, ...], float]
"""Gauge, its labels after namespace and name, value."""

SPEEDUP = Gauge(
    "paceline_pool_speedup_ratio",
    "Output throughput of the served arm over the baseline's, as its evidence shows; 1 for the baseline",
    OF_POOL,
)
_READY = Gauge("paceline_pool_ready_servers", "Servers of a pool that are ready", OF_POOL)
CHANGED = Gauge(
    "paceline_pool_changed_timestamp_seconds",
    "When what a pool serves was last changed; arm is what it serves since, change how that was chosen",
    [*OF_POOL, "arm", "change"],
)
_NOTHING = "nothing"
"""Label instead of an arm, if nothing is served before a verdict."""
_INFO = Gauge(
    "paceline_run_info", "1; what a run is for, and its outcome, empty until then",
    [*OF_OBJECT, "deployment", "pool", "purpose", "outcome"],
)  # fmt: skip
_ACCELERATORS = Gauge("paceline_run_accelerator_seconds", "Accelerators times seconds that a run has held", OF_OBJECT)
_IDLE = Gauge(
    "paceline_run_idle_accelerator_seconds",
    "Part of it that was neither a server's start nor a measured workload",
    OF_OBJECT,
)
RATIOS: Mapping[str, Gauge] = {
    field: Gauge(f"paceline_run_speedup_{name}", text, [*OF_OBJECT, "arm"])
    for field, name, text in (
        ("ratio", "ratio", "Output throughput of a run's candidate over the baseline's, mean of all workloads so far"),
        ("lower", "lower_ratio", "Lower confidence bound of that"),
        ("upper", "upper_ratio", "Upper confidence bound of that"),
    )
}
"""Field of a result → its gauge."""

_SHOWN: dict[tuple[str, str, str], tuple[GaugeValue, ...]] = {}
"""Kind, namespace and name → exported series."""


class _Shown(Collector):
    """Called for each scrape on a separate thread, so it iterates over a copy."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families = {gauge: GaugeMetricFamily(gauge.name, gauge.text, labels=gauge.labels) for gauge in GAUGES}
        for (_, namespace, name), series in list(_SHOWN.items()):
            for gauge, labels, value in series:
                families[gauge].add_metric([namespace, name, *labels], value)
        yield from families.values()


def export_series(kind: str, manifest: Manifest, status: Status) -> None:
    """Export the series of this status, and drop those of earlier ones."""
    metadata = manifest["metadata"]
    _SHOWN[kind, metadata["namespace"], metadata["name"]] = tuple(OF_KIND[kind](manifest, status))


def drop_series(kind: str, namespace: str, name: str) -> None:
    """Drop the series of a deleted object."""
    _SHOWN.pop((kind, namespace, name), None)


def _of_deployment(_: Manifest, status: Status) -> Iterator[GaugeValue]:
    for pool in status.get("pools", ()):
        name = pool["name"]
        if "readyReplicas" in pool:
            yield _READY, (name,), pool["readyReplicas"]
        if pool.get("serving"):
            yield SPEEDUP, (name,), float((pool["serving"].get("evidence") or {}).get("speedup") or 1)
        if (change := next(iter(pool.get("history", ())), None)) and change.get("time"):
            labels = name, change.get("arm") or _NOTHING, change.get("reason") or ""
            yield CHANGED, labels, parse_time(change["time"]).timestamp()


def _of_run(manifest: Manifest, status: Status) -> Iterator[GaugeValue]:
    spec = manifest.get("spec") or {}
    purpose = purpose_of(spec).value
    deployment = (manifest["metadata"].get("labels") or {}).get(DEPLOYMENT_LABEL, "")
    outcome = (status.get("verdict") or {}).get("outcome") or ""
    yield _INFO, (deployment, spec.get("pool") or "", purpose, outcome), 1
    cost = status.get("cost") or {}
    for field, gauge in (("gpuSeconds", _ACCELERATORS), ("idleGpuSeconds", _IDLE)):
        if field in cost:
            yield gauge, (), cost[field]
    if purpose == Purpose.SEARCH:  # a search has dozens of arms and promotes none
        return
    for result in status.get("results") or ():
        if result["workload"] == MEAN:
            for field, gauge in RATIOS.items():
                if (value := result.get(field)) is not None:
                    yield gauge, (result["arm"],), float(value)


OF_KIND: Mapping[str, Callable[[Manifest, Status], Iterator[GaugeValue]]] = {
    SPECULATIVE_DEPLOYMENT.plural: _of_deployment,
    BENCHMARK_RUN.plural: _of_run,
}
GAUGES = (SPEEDUP, _READY, CHANGED, _INFO, _ACCELERATORS, _IDLE, *RATIOS.values())
REGISTRY.register(_Shown())
