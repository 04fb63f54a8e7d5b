"""What the operator's own metrics say: of what is no more, of its queue, of the API server."""

from pathlib import Path
from typing import Any

from aiohttp import web
from prometheus_client import REGISTRY
from tests.support.answered import talking_to

from paceline.controller import metrics
from paceline.controller.kinds import SPECULATIVE_DEPLOYMENT
from paceline.kube import Ref, WorkQueue
from paceline.kube.resources import POD

MODEL = {"metadata": {"namespace": "models", "name": "served"}}


def status(**speedups: str) -> dict[str, Any]:
    pools = [
        {"name": name, "serving": {"evidence": "run"}, "verdict": {"speedup": speedup}}
        for name, speedup in speedups.items()
    ]
    return {"pools": pools}


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
