"""What the operator's own metrics say: of what is no more, of its queue, of the API server."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import REGISTRY
from tests.support.answered import talking_to

from paceline.controller import metrics
from paceline.controller.busiest import MANY, WINDOW, Busiest
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.kube import Conflict, Ref, WorkQueue
from paceline.kube.resources import POD

MODEL = {"metadata": {"namespace": "models", "name": "served"}}


def status(**speedups: str) -> dict[str, Any]:
    pools = ({"name": name, "serving": {"evidence": {"speedup": speedup}}} for name, speedup in speedups.items())
    return {"pools": list(pools)}


def shown(pool: str) -> float | None:
    labels = {"namespace": "models", "name": "served", "pool": pool}
    return REGISTRY.get_sample_value("paceline_pool_speedup_ratio", labels)


def test_a_pool_that_is_no_more_has_no_speedup() -> None:
    kind = SPECULATIVE_DEPLOYMENT.plural
    metrics.show(kind, MODEL, status(latency="1.36", throughput="1.08"))
    assert (shown("latency"), shown("throughput")) == (1.36, 1.08)
    metrics.show(kind, MODEL, status(latency="1.36"))
    assert (shown("latency"), shown("throughput")) == (1.36, None)
    metrics.forget(kind, "models", "served")
    assert shown("latency") is None


def test_how_long_the_queue_is_how_old_and_for_how_long_nothing_has_moved() -> None:
    now = 0.0
    queue = WorkQueue[str](clock=lambda: now)
    metrics.of_queue(queue)
    read = lambda name: REGISTRY.get_sample_value(f"paceline_queue_{name}")  # noqa: E731
    assert (read("keys"), read("oldest_seconds"), read("stuck_seconds")) == (0, 0, 0)
    for key in "abc":
        queue.add(key)
    now = 5.0
    queue.take()
    now = 12.0
    assert (read("keys"), read("oldest_seconds"), read("stuck_seconds")) == (2, 12, 12)
    queue.done("a")
    assert (read("keys"), read("oldest_seconds"), read("stuck_seconds")) == (2, 12, 0)


def ref(name: str) -> Ref:
    return Ref(POD, "models", name)


def test_the_busiest_object_is_told_and_named_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    busiest = Busiest(clock=lambda: now)
    for _ in range(MANY - 1):
        busiest.wrote(ref("a"))
    busiest.wrote(ref("b"))
    assert (busiest.most, caplog.messages) == (MANY - 1, [])
    busiest.wrote(ref("a"))
    busiest.wrote(ref("a"))
    assert caplog.messages == [f"{ref('a')} was written 100 times within 600 s"]
    now = WINDOW + 1
    busiest.wrote(ref("b"))
    assert busiest.most == MANY + 1, "of the last window"
    now = 2 * WINDOW + 1
    assert busiest.most == 1
    now = 9 * WINDOW
    assert busiest.most == 0


def run_of(status: dict[str, Any]) -> float | None:
    """When it last made progress, as exported; None if that is not."""
    made = {"metadata": {"namespace": "models", "name": "run", "creationTimestamp": "1970-01-01T00:01:40Z"}}
    metrics.show(BENCHMARK_RUN.plural, made, status)
    return REGISTRY.get_sample_value("paceline_run_progress_timestamp_seconds", {"namespace": "models", "name": "run"})


def complete(reason: str, status: str = "False") -> dict[str, Any]:
    return {"conditions": [{"type": "Complete", "status": status, "reason": reason}]}


def test_a_run_makes_progress_with_each_round_until_it_ends() -> None:
    rounds = {"lastMeasuredTime": "1970-01-01T00:10:00Z", "progress": {"round": 1}}
    assert run_of({}) == 100
    assert run_of(complete("WaitingForCapacity")) == 100
    assert run_of(complete("Measuring") | rounds) == 600
    assert run_of(complete("Suspended") | rounds) is None, "by wish"
    assert run_of(complete("Measuring") | rounds) == 600
    assert run_of(complete("WaitingForWindow") | rounds) is None, "by wish"
    assert run_of(complete("Promote", "True") | rounds) is None
    assert run_of(complete("Measuring") | rounds) == 600
    metrics.forget(BENCHMARK_RUN.plural, "models", "run")
    assert REGISTRY.get_sample_value("paceline_run_rounds", {"namespace": "models", "name": "run"}) is None


def test_evidence_for_an_earlier_question_is_told() -> None:
    def stale() -> float | None:
        return REGISTRY.get_sample_value("paceline_evidence_stale", {"namespace": "models", "name": "served"})

    for reason, value in (("AllPromoted", 0), ("StillPromoted", 1), ("NotDecided", 0)):
        promoted = {"type": "Promoted", "status": "True", "reason": reason}
        metrics.show(SPECULATIVE_DEPLOYMENT.plural, MODEL, {"conditions": [promoted]})
        assert stale() == value
    metrics.forget(SPECULATIVE_DEPLOYMENT.plural, "models", "served")
    assert stale() is None


def test_a_failure_is_counted_by_its_class() -> None:
    def failures(error: str) -> float:
        labels = {"kind": "benchmarkruns", "error": error}
        return REGISTRY.get_sample_value("paceline_reconcile_failures_total", labels) or 0.0

    before = failures("Conflict"), failures("ValueError")
    for error in (Conflict(409, "Conflict", "another version"), ValueError("odd"), ValueError("odd")):
        with pytest.raises(type(error)), metrics.reconciling("benchmarkruns"):
            raise error
    assert (failures("Conflict"), failures("ValueError")) == (before[0] + 1, before[1] + 2)


async def test_what_the_api_server_answers_is_counted(tmp_path: Path) -> None:
    async def nothing_there(_: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "code": 404}, status=404)

    before = counted("GET", 404)
    async with talking_to(nothing_there, tmp_path) as api:
        api._answered = metrics.answered
        assert await api.get(Ref(POD, "models", "a")) is None
    assert counted("GET", 404) == before + 1


def counted(method: str, code: int) -> float:
    return REGISTRY.get_sample_value("paceline_api_requests_total", {"method": method, "code": str(code)}) or 0.0
