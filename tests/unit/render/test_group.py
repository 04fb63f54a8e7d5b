"""Servers of several nodes: golden/leaderworkerset.yaml, and what it promises its controller and its pods."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.support import golden
from tests.support.example import DEPLOYED, SETTINGS, arm
from tests.support.several_nodes import over

from paceline.core import Server
from paceline.render import Owner, group_name, rendering, revision_of, servers, service

GOLDEN = Path(__file__).with_name("golden")


def served(asked: Server, replicas: int | None = 1) -> dict[str, Any]:
    kept = rendering(DEPLOYED, "latency", asked, arm("wide"), revision_of(asked, arm("wide")), SETTINGS)
    return servers(
        DEPLOYED, "latency", kept, replicas, timedelta(minutes=30), {"paceline.dev/why": "it was shown"}, True
    )


def test_leader_worker_set() -> None:
    golden.check(GOLDEN / "leaderworkerset.yaml", served(over(2)))


def test_leader_and_workers_run_the_same_and_only_the_leader_is_asked() -> None:
    """A rank above 0 answers /health whatever becomes of it, and /ready not at all."""
    group = served(over(2))["spec"]["leaderWorkerTemplate"]
    leader, worker = (group[name]["spec"]["containers"][0] for name in ("leaderTemplate", "workerTemplate"))
    asked = {"startupProbe", "readinessProbe", "livenessProbe", "lifecycle"}
    assert set(leader) - set(worker) == asked
    assert {field: leader[field] for field in worker} == worker
    assert group["leaderTemplate"]["metadata"] == group["workerTemplate"]["metadata"]


def test_patience_with_the_leader_is_not_said_of_workers() -> None:
    """A probe without a question would be refused by the API server."""
    patient = {"spec": {"containers": [{"name": "server", "startupProbe": {"failureThreshold": 9}, "tty": True}]}}
    group = served(over(2, **patient))["spec"]["leaderWorkerTemplate"]
    leader, worker = (group[name]["spec"]["containers"][0] for name in ("leaderTemplate", "workerTemplate"))
    assert leader["startupProbe"]["failureThreshold"] == 9
    assert (worker["tty"], "startupProbe" in worker) == (True, False)


def test_the_address_leads_to_leaders_alone() -> None:
    several = service(DEPLOYED, "latency", nodes=2)["spec"]["selector"]
    one = service(DEPLOYED, "latency", nodes=1)["spec"]["selector"]
    assert several == {**one, "leaderworkerset.sigs.k8s.io/worker-index": "0"}
    labels = served(over(2))["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["metadata"]["labels"]
    assert one.items() <= labels.items()


def test_the_number_left_to_an_autoscaler_is_not_said() -> None:
    assert "replicas" not in served(over(2), replicas=None)["spec"]


def test_one_node_is_a_deployment_and_another_number_is_another_revision() -> None:
    assert served(over(1))["kind"] == "Deployment"
    assert len({revision_of(over(nodes), arm("wide")) for nodes in (1, 2, 4)}) == 3


def test_a_name_leaves_room_for_what_is_made_of_it() -> None:
    """NAME-GROUP-WORKER is a host name, NAME-GROUP and a hash a label: at most 63 characters each."""
    assert group_name("qwen3", "latency") == "qwen3-latency"
    assert len(group_name("a" * 63, "throughput")) <= 48
    assert group_name("a" * 63, "latency") != group_name("a" * 63, "throughput")
    owner: Owner = replace(DEPLOYED, name="a" * 63)
    kept = rendering(owner, "latency", over(2), arm("wide"), "0123456789", SETTINGS)
    made = servers(owner, "latency", kept, 1, timedelta(minutes=30), {}, surge=True)
    assert made["metadata"]["name"] == group_name(owner.name, "latency")
