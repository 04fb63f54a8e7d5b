"""The operator's own metrics."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from prometheus_client import Counter, Gauge, Histogram

from paceline.api.reasons import ORDER, Reason
from paceline.controller import status_series
from paceline.controller.busiest import Busiest
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.controller.status_series import OF_OBJECT, OF_POOL
from paceline.kube import Manifest, Ref, Reflector, WorkQueue
from paceline.plan.step import parse_time
from paceline.watch import Judgement, JudgementKind

OF_RUNS = ("Complete", "Failed")
CONDITIONS: Mapping[str, tuple[str, ...]] = {
    SPECULATIVE_DEPLOYMENT.plural: tuple(kind for kind in ORDER if kind not in OF_RUNS),
    BENCHMARK_RUN.plural: OF_RUNS,
}
"""Kind → its conditions. A condition absent from the status is exported as 0, so that its alert clears."""

_SECONDS = Histogram("paceline_reconcile_seconds", "Time of one reconcile", ["kind"])
_FAILURES = Counter("paceline_reconcile_failures", "Reconciles that raised, by class of error", ["kind", "error"])
_REQUESTS = Counter("paceline_api_requests", "Answers of the API server; code 0: there was none", ["method", "code"])
STATUS_REFUSALS = Counter("paceline_status_refusals", "Statuses that the API server refused for good", ["kind"])
WRITES = Counter("paceline_writes", "Writes that the API server accepted, without Events and the Lease", ["resource"])
BUSIEST = Busiest()
MOST_WRITES = Gauge(
    "paceline_busiest_object_writes", "Writes of the object that was written most often within ten minutes"
)
MOST_WRITES.set_function(lambda: BUSIEST.most)
QUEUE = Gauge("paceline_queue_keys", "Objects that wait to be looked at")
OLDEST = Gauge("paceline_queue_oldest_seconds", "How long the one that waits longest has waited")
STUCK = Gauge(
    "paceline_queue_stuck_seconds", "Time without a finished reconcile although there is work; 300 fail the probe"
)
_SILENT = Gauge(
    "paceline_watch_silent_seconds",
    "When a kind of objects was last heard of; a healthy watch ends within 75 s, which counts",
    ["resource"],
)
LEADING = Gauge("paceline_leading", "1 if this process holds the Lease and works, 0 if it stands by")
CONDITION = Gauge("paceline_condition", "1 if the condition is True", ["kind", "namespace", "name", "type"])
_WATCHED: Mapping[str, Gauge] = {
    "accept_length": Gauge(
        "paceline_pool_accept_length",
        "Tokens per verify step of a pool's servers over the last window; 1 accepts no draft",
        OF_POOL,
    ),
    "expected_accept_length": Gauge(
        "paceline_pool_accept_length_expected", "What the pool's evidence expects of it at that load", OF_POOL
    ),
    "least_accept_length": Gauge(
        "paceline_pool_accept_length_least", "Below it the guard finds a drop (spec.guard.acceptanceDrop)", OF_POOL
    ),
    "running_requests": Gauge(
        "paceline_pool_running_requests", "Requests under way per server, mean of the last window", OF_POOL
    ),
    "speculates_up_to": Gauge(
        "paceline_pool_crossover_requests",
        "Requests under way per server above which the pool's evidence shows the baseline to be faster",
        OF_POOL,
    ),
    "ttft_seconds": Gauge("paceline_pool_ttft_seconds", "Mean time to the first token over the last window", OF_POOL),
    "expected_ttft_seconds": Gauge(
        "paceline_pool_ttft_seconds_expected", "What the evidence measured of it at that load; never judged", OF_POOL
    ),
    "itl_seconds": Gauge(
        "paceline_pool_inter_token_latency_seconds",
        "Mean time per token after the first, over the last window",
        OF_POOL,
    ),
    "expected_itl_seconds": Gauge(
        "paceline_pool_inter_token_latency_seconds_expected",
        "What the evidence measured of it at that load; never judged",
        OF_POOL,
    ),
}
"""Field of `WindowNumbers` → its gauge; absent if the number is unknown."""
JUDGEMENT = Gauge(
    "paceline_pool_judgement", "1 for what the guard finds of a pool; the others are absent", [*OF_POOL, "judgement"]
)
_CLOSED = Gauge(
    "paceline_namespace_closed",
    "1 if a namespace that the installation names does not exist, or the operator may not read it",
    ["namespace"],
)
ROUNDS = Gauge("paceline_run_rounds", "Rounds that a run has measured", OF_OBJECT)
PROGRESS = Gauge(
    "paceline_run_progress_timestamp_seconds",
    "When a run last measured a round, or was made; absent at its end, while suspended, and outside its window",
    OF_OBJECT,
)
WAITS_BY_WISH = {Reason.RunSuspended.text, Reason.RunOutsideWindow.text}
_STALE = Gauge("paceline_evidence_stale", "1 if a pool serves on evidence for an earlier question", OF_OBJECT)


@contextmanager
def reconciling(kind: str) -> Iterator[None]:
    """Count and time one reconcile."""
    with _SECONDS.labels(kind).time():
        try:
            yield
        except Exception as error:
            _FAILURES.labels(kind, type(error).__name__).inc()
            raise


def of_namespaces(named: Iterable[str], closed: Callable[[str], bool]) -> None:
    """Export the gauge of each namespace that the installation names. Each scrape calls `closed`."""
    for namespace in named:
        _CLOSED.labels(namespace).set_function(partial(closed, namespace))


def of_queue(queue: WorkQueue[Any]) -> None:
    """Export the queue's gauges; each scrape reads them."""
    QUEUE.set_function(lambda: len(queue))
    OLDEST.set_function(lambda: queue.oldest)
    STUCK.set_function(lambda: queue.stuck)


def of_watches(reflectors: Iterable[Reflector]) -> None:
    """Export the longest silence of each kind, over all namespaces; each scrape computes it."""
    kinds: dict[str, list[Reflector]] = {}
    for reflector in reflectors:
        kinds.setdefault(reflector.resource.plural, []).append(reflector)
    for plural, watches in kinds.items():
        _SILENT.labels(plural).set_function(partial(_longest_silence, watches))


def _longest_silence(watches: Iterable[Reflector]) -> float:
    return max(watch.age for watch in watches)


def answered(method: str, status: int) -> None:
    """Count a request to the API server."""
    _REQUESTS.labels(method, str(status)).inc()


def wrote(ref: Ref) -> None:
    """Count a write that the API server accepted."""
    WRITES.labels(ref.resource.plural).inc()
    BUSIEST.wrote(ref)


def status_refused(kind: str) -> None:
    """Count a status that the API server refused for good."""
    STATUS_REFUSALS.labels(kind).inc()


def forget(kind: str, namespace: str, name: str) -> None:
    """Remove all metrics of a deleted object."""
    for condition in CONDITIONS[kind]:
        _remove(CONDITION, kind, namespace, name, condition)
    for gauge in (ROUNDS, PROGRESS, _STALE):
        _remove(gauge, namespace, name)
    status_series.drop_series(kind, namespace, name)


def export_watched(namespace: str, name: str, pool: str, judgement: Judgement | None) -> None:
    """Export a pool's current counters and judgement; None removes them."""
    labels = namespace, name, pool
    for field, gauge in _WATCHED.items():
        number = getattr(judgement.numbers, field) if judgement else None
        if number is None:
            _remove(gauge, *labels)
        else:
            gauge.labels(*labels).set(number)
    for kind in JudgementKind:
        if judgement and judgement.kind is kind:
            JUDGEMENT.labels(*labels, kind).set(1)
        else:
            _remove(JUDGEMENT, *labels, kind)


def _remove(gauge: Gauge, *labels: str) -> None:
    with suppress(KeyError):
        gauge.remove(*labels)


def show(kind: str, manifest: Manifest, status: Mapping[str, Any]) -> None:
    """Export the metrics of one object from its status."""
    namespace, name = manifest["metadata"]["namespace"], manifest["metadata"]["name"]
    true = {condition["type"] for condition in status.get("conditions", ()) if condition["status"] == "True"}
    for condition in CONDITIONS[kind]:
        CONDITION.labels(kind, namespace, name, condition).set(condition in true)
    if (rounds := (status.get("progress") or {}).get("round")) is not None and kind == BENCHMARK_RUN.plural:
        ROUNDS.labels(namespace, name).set(rounds)
    reasons = {condition["type"]: condition["reason"] for condition in status.get("conditions", ())}
    if kind == BENCHMARK_RUN.plural:
        _progress(manifest, status, ended=bool(true & {*OF_RUNS}) or reasons.get("Complete") in WAITS_BY_WISH)
    if kind == SPECULATIVE_DEPLOYMENT.plural:
        _STALE.labels(namespace, name).set(reasons.get("Promoted") == Reason.StillPromoted.text)
    status_series.export_series(kind, manifest, status)


def _progress(manifest: Manifest, status: Mapping[str, Any], *, ended: bool) -> None:
    metadata = manifest["metadata"]
    labels = metadata["namespace"], metadata["name"]
    if ended:
        _remove(PROGRESS, *labels)
        return
    last = max(metadata["creationTimestamp"], status.get("lastMeasuredTime", ""))
    PROGRESS.labels(*labels).set(parse_time(last).timestamp())
