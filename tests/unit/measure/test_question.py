"""A file's question is the operator's: the same arms, the same fingerprint."""

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from tests.support import example
from tests.support.messages import Says

from paceline.core import RunSpec
from paceline.evidence import fingerprint, question
from paceline.measure.question import QuestionError, asked, paths, run_to_measure
from paceline.plan.objects import finished
from paceline.plan.simulation import controllers, kubelet, reconciler
from paceline.plan.simulation.answers import fetch_request, fetched, invented_commit
from paceline.plan.simulation.cluster import Cluster

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def deployment() -> dict[str, Any]:
    manifest: dict[str, Any] = yaml.safe_load(example.FILE.read_text())
    return manifest


def of_the_operator() -> dict[str, dict[str, Any]]:
    """Pool → the run that the operator makes for it, once models are there and baselines serve."""
    cluster = Cluster(now=NOW, nodes={"gpu": 64.0})
    manifest = deployment()
    cluster.apply({**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}})
    key = ("SpeculativeDeployment", manifest["metadata"]["name"])
    for _ in range(30):
        plan = reconciler.plan_of(cluster, key)
        cluster.objects[key]["status"] = plan.status
        for action in plan.actions:
            reconciler.apply_action(cluster, action)
        controllers.step(cluster)
        for job in cluster.of("Job", component="fetch"):
            if not finished(job):
                kubelet.end_job(cluster, job, "fetch", 0, fetched(fetch_request(job)))
        for pod in cluster.of("Pod", component="server"):
            kubelet.mark_ready(pod)
    return {run["spec"]["pool"]: run for run in cluster.of("BenchmarkRun")}


@pytest.mark.parametrize("pool", ["latency", "throughput"])
def test_a_pool_is_measured_as_by_the_operator(pool: str) -> None:
    theirs, ask = of_the_operator()[pool], asked(deployment(), pool)
    commits = {(m.source, m.revision): invented_commit(f"{m.source}@{m.revision}") for m in ask.models}
    ours = run_to_measure(ask, commits, NOW)
    assert question(ours["spec"]) == question(theirs["spec"])
    assert fingerprint(ours["spec"]) == fingerprint(theirs["spec"])
    assert [arm["name"] for arm in ours["spec"]["arms"]] == [arm["name"] for arm in theirs["spec"]["arms"]]
    assert ours["metadata"]["name"] == f"{theirs['metadata']['name'].removesuffix('-1')}-20261122-1200"


def test_a_run_is_measured_as_it_is() -> None:
    manifest = yaml.safe_load((example.FILE.parent / "benchmark-only.yaml").read_text())
    ask = asked(manifest, None)
    assert isinstance(ask.spec, RunSpec)
    assert run_to_measure(ask, {}, NOW)["spec"] == manifest["spec"]


def test_a_measured_file_is_measured_anew() -> None:
    """What it brings along is no part of the question."""
    manifest = yaml.safe_load((example.FILE.parent / "benchmark-only.yaml").read_text())
    measured = {**manifest["spec"], "measured": {"machine": "desk", "rounds": 1}}
    assert run_to_measure(asked({**manifest, "spec": measured}, None), {}, NOW)["spec"] == manifest["spec"]
    assert question(measured) == question(manifest["spec"])


def test_a_model_on_a_claim_is_where_it_is_here() -> None:
    manifest = yaml.safe_load((example.FILE.parent / "benchmark-only.yaml").read_text())
    ask = asked(manifest, None)
    places = {(m.source, m.revision): example.FILE.parent / m.address.path for m in ask.models}
    found = paths(ask, dict.fromkeys(places, "0" * 40), places)
    assert found["/models/qwen/Qwen3-8B"] == str(example.FILE.parent / "qwen" / "Qwen3-8B")


@pytest.mark.parametrize("pool", [None, "batch"])
def test_one_pool_is_measured(pool: str | None, says: Says) -> None:
    with pytest.raises(QuestionError, match=r"--pool: .* latency, throughput") as refused:
        asked(deployment(), pool)
    says(refused.value)


def test_servers_of_several_nodes_cannot_be_measured() -> None:
    manifest = deployment()
    manifest["spec"]["accelerator"] |= {"nodes": 2, "tensorParallelSize": 8}
    with pytest.raises(QuestionError, match=r"accelerator\.nodes is 2"):
        asked(manifest, "latency")
