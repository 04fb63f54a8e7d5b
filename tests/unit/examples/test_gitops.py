"""The health checks for Argo CD, run by the Lua that Argo CD runs, on statuses that the planners have written. Every
state of every story: tests/plan/test_states.py."""

from typing import Any

import pytest
import yaml
from tests.support.answers import half_failed
from tests.support.health import GITOPS
from tests.support.health import argocd as health
from tests.support.stories import measuring, promoted
from tests.support.world import World, example

Manifest = dict[str, Any]


def deployed(world: World) -> Manifest:
    (found,) = world.cluster.of("SpeculativeDeployment")
    return dict(found)


def a_run(world: World, pool: str = "latency") -> Manifest:
    return dict(world.runs(pool)[-1])


def test_a_deployment_that_the_operator_has_not_seen() -> None:
    assert health(example()) == ("Progressing", "waiting for the operator")


def test_a_deployment_from_prefetch_to_promotion() -> None:
    world = World()
    world.apply(example())
    assert health(deployed(world))[0] == "Progressing"
    world.prefetch_ends()
    assert health(deployed(world))[0] == "Progressing"
    world.servers_ready()
    assert health(deployed(world)) == ("Healthy", "latency=baseline throughput=baseline")
    for _ in range(3):
        world.round_ends()
    assert health(deployed(world))[0] == "Progressing"  # the winners are rolled out
    world.servers_ready()
    assert health(deployed(world)) == ("Healthy", "latency=wide 1.36x throughput=narrow 1.03x")


def test_a_changed_deployment_that_the_operator_has_not_seen() -> None:
    world = World()
    promoted(world, "latency")
    found = deployed(world)
    found["metadata"] = {**found["metadata"], "generation": found["metadata"]["generation"] + 1}
    assert health(found) == ("Progressing", "the operator has not seen this generation yet")


def test_a_candidate_that_fails_is_no_fault_of_the_deployment() -> None:
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        if world.under_way("round"):
            world.round_ends(wide=half_failed, baseline=half_failed)
    assert health(deployed(world))[0] == "Healthy"
    assert health(a_run(world))[0] == "Degraded"


def test_where_a_person_must_act() -> None:
    world = World()
    world.apply(example("latency"))
    world.prefetch_fails("gated; give a token in cache.tokenSecretRef", source="hf://Qwen/Qwen3-Coder-Next")
    status, message = health(deployed(world))
    assert status == "Degraded"
    assert "gated; give a token" in message


def test_suspended() -> None:
    world = World()
    measuring(world, "latency")
    run = a_run(world)
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    assert health(deployed(world)) == ("Suspended", "latency=baseline")
    assert health({**run, **a_run(world)})[0] == "Suspended"


def test_a_run_until_its_verdict() -> None:
    world = World()
    measuring(world, "latency")
    assert health(a_run(world))[0] == "Progressing"
    for _ in range(3):
        world.round_ends()
    status, message = health(a_run(world))
    assert (status, message.partition(" ")[0]) == ("Healthy", "Promote:")


def test_a_run_that_nobody_has_seen() -> None:
    assert health({"kind": "BenchmarkRun", "spec": {}}) == ("Progressing", "waiting for the operator")


@pytest.mark.parametrize("path", sorted(GITOPS.rglob("*.yaml")), ids=lambda path: path.name)
def test_its_files_are_yaml_with_a_kind(path: Any) -> None:
    assert all({"apiVersion", "kind"} <= one.keys() for one in yaml.safe_load_all(path.read_text()))
