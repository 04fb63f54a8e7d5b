"""The operator's own metrics."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from paceline.kube import Manifest

SECONDS = Histogram("paceline_reconcile_seconds", "Time of one reconcile", ["kind"])
FAILURES = Counter("paceline_reconcile_failures", "Reconciles that raised", ["kind"])
SPEEDUP = Gauge(
    "paceline_pool_speedup_ratio",
    "Output throughput of the served arm over the baseline's, as its evidence shows; 1 for the baseline",
    ["namespace", "name", "pool"],
)
CONDITION = Gauge("paceline_condition", "1 where the condition is True", ["kind", "namespace", "name", "type"])
ROUNDS = Gauge("paceline_run_rounds", "Rounds of a run that are in its status", ["namespace", "name"])


@contextmanager
def reconciling(kind: str) -> Iterator[None]:
    with SECONDS.labels(kind).time(), FAILURES.labels(kind).count_exceptions():
        yield


def show(kind: str, manifest: Manifest, status: Mapping[str, Any]) -> None:
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    for condition in status.get("conditions", ()):
        CONDITION.labels(kind, namespace, name, condition["type"]).set(condition["status"] == "True")
    if "rounds" in status:
        ROUNDS.labels(namespace, name).set(len(status["rounds"]))
    for pool in status.get("pools", ()):
        serving = pool.get("serving")
        if serving:
            speedup = (pool.get("verdict") or {}).get("speedup") if serving.get("evidence") else None
            SPEEDUP.labels(namespace, name, pool["name"]).set(float(speedup or 1))
