"""The series of one object: what its status says, and nothing that an earlier status said."""

from typing import Any

from prometheus_client import REGISTRY

from paceline.controller import metrics
from paceline.controller.kinds import BENCHMARK_RUN, SPECULATIVE_DEPLOYMENT
from paceline.core.names import DEPLOYMENT_LABEL
from paceline.watch import Judgement, JudgementKind
from paceline.watch.model import WindowNumbers

DEPLOYMENT = {"metadata": {"namespace": "models", "name": "coder"}}
RUN = {
    "metadata": {
        "namespace": "models",
        "name": "coder-latency-1",
        "creationTimestamp": "1970-01-01T00:00:00Z",
        "labels": {DEPLOYMENT_LABEL: "coder"},
    },
    "spec": {"pool": "latency"},
}


def series(metric: str, name: str) -> dict[tuple[str, ...], float]:
    """Other labels than namespace and name → value."""
    found = (sample for family in REGISTRY.collect() for sample in family.samples if sample.name == metric)
    return {
        tuple(value for label, value in sample.labels.items() if label not in ("namespace", "name")): sample.value
        for sample in found
        if sample.labels["name"] == name
    }


def pool(*history: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"pools": [{"name": "latency", "history": list(history), **more}]}


def change(second: int, arm: str, reason: str) -> dict[str, Any]:
    return {"time": f"1970-01-01T00:00:{second:02}Z", "arm": arm, "reason": reason}


def shown(status: dict[str, Any]) -> dict[tuple[str, ...], float]:
    metrics.show(SPECULATIVE_DEPLOYMENT.plural, DEPLOYMENT, status)
    return series("paceline_pool_changed_timestamp_seconds", "coder")


def test_a_pools_latest_change_takes_the_place_of_the_one_before() -> None:
    started = change(10, "baseline", "Started")
    assert shown(pool(started)) == {("latency", "baseline", "Started"): 10}
    promoted = change(50, "wide", "Promoted")
    assert shown(pool(promoted, started)) == {("latency", "wide", "Promoted"): 50}
    assert shown(pool(change(55, "", "Stopped"), promoted)) == {("latency", "nothing", "Stopped"): 55}
    assert shown({"pools": []}) == {}


def test_how_many_of_a_pools_servers_are_ready() -> None:
    shown(pool(readyReplicas=2))
    assert series("paceline_pool_ready_servers", "coder") == {("latency",): 2}
    metrics.forget(SPECULATIVE_DEPLOYMENT.plural, "models", "coder")
    assert series("paceline_pool_ready_servers", "coder") == {}


def run_says(metric: str, status: dict[str, Any], **spec: Any) -> dict[tuple[str, ...], float]:
    metrics.show(BENCHMARK_RUN.plural, RUN | {"spec": RUN["spec"] | spec}, status)
    return series(metric, "coder-latency-1")


def test_a_run_has_no_outcome_until_there_is_one() -> None:
    assert run_says("paceline_run_info", {}) == {("coder", "latency", "Gate", ""): 1}
    decided = {"verdict": {"outcome": "Promote"}}
    assert run_says("paceline_run_info", decided) == {("coder", "latency", "Gate", "Promote"): 1}
    metrics.forget(BENCHMARK_RUN.plural, "models", "coder-latency-1")
    assert series("paceline_run_info", "coder-latency-1") == {}


def test_what_a_run_has_found_and_cost() -> None:
    rows = [
        {"arm": "wide", "workload": "mean", "ratio": 1.4, "lower": 1.3, "upper": 1.5},
        {"arm": "wide", "workload": "code@1", "ratio": 1.5},
        {"arm": "tall", "workload": "mean"},
    ]
    status = {"results": rows, "cost": {"gpuSeconds": 4800, "idleGpuSeconds": 300}}
    assert run_says("paceline_run_speedup_ratio", status) == {("wide",): 1.4}
    assert series("paceline_run_speedup_lower_ratio", "coder-latency-1") == {("wide",): 1.3}
    assert series("paceline_run_speedup_upper_ratio", "coder-latency-1") == {("wide",): 1.5}
    assert series("paceline_run_accelerator_seconds", "coder-latency-1") == {(): 4800}
    assert series("paceline_run_idle_accelerator_seconds", "coder-latency-1") == {(): 300}
    assert run_says("paceline_run_speedup_ratio", status, search={}) == {}, "dozens of arms, none of them decided"


def test_one_judgement_at_a_time() -> None:
    of = "models", "coder", "latency"

    def found(kind: JudgementKind | None) -> dict[tuple[str, ...], float]:
        numbers = WindowNumbers(accept_length=1.6, least_accept_length=2.1)
        judged = kind and Judgement(kind=kind, message="", revision="a", since="", numbers=numbers)
        metrics.export_watched(*of, judged)
        return series("paceline_pool_judgement", "coder")

    assert found(JudgementKind.IDLE) == {("latency", "Idle"): 1}
    assert found(JudgementKind.ACCEPTANCE_DROPPED) == {("latency", "AcceptanceDropped"): 1}
    assert series("paceline_pool_accept_length_least", "coder") == {("latency",): 2.1}
    assert found(None) == {}
    assert series("paceline_pool_accept_length_least", "coder") == {}
