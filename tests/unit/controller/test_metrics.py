"""What the operator's own metrics say of what is no more."""

from typing import Any

from prometheus_client import REGISTRY

from paceline.controller import metrics
from paceline.controller.kinds import SPECULATIVE_DEPLOYMENT

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
