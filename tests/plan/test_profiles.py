"""A BenchmarkProfile: its values count as if the deployment had written them, and servers never depend on it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from tests.support.messages import Says
from tests.support.stories import measured, promoted, told
from tests.support.world import World, example

NAME = "house-rules"
BENCHMARK = {
    "datasets": [{"name": "code", "source": "builtin://code"}, {"name": "chat", "source": "builtin://chat"}],
    "budget": {"gpuHours": "40"},
    "maxEvidenceAge": "2160h",
}
GATE = {"decideAfterRounds": [3, 5, 8], "minImprovement": "5%"}


def profile(**spec: Any) -> dict[str, Any]:
    metadata = {"name": NAME, "namespace": "models"}
    spec = {"benchmark": BENCHMARK, "gate": GATE} | spec
    return {"apiVersion": "paceline.dev/v1alpha1", "kind": "BenchmarkProfile", "metadata": metadata, "spec": spec}


def naming(**benchmark: Any) -> dict[str, Any]:
    """The example without a gate and datasets of its own."""
    manifest = example("latency")
    del manifest["spec"]["gate"]
    manifest["spec"]["benchmark"] = {"profileRef": {"name": NAME}, **benchmark}
    return manifest


def begun(world: World, manifest: dict[str, Any], *profiles: dict[str, Any]) -> World:
    """Up to the first round, if there is one."""
    for one in (*profiles, manifest):
        world.apply(deepcopy(one))
    if world.under_way("fetch"):
        world.prefetch_ends()
        world.servers_ready()
    return world


def in_production(world: World, *profiles: dict[str, Any]) -> World:
    begun(world, naming(), *(profiles or (profile(),)))
    measured(world)
    assert world.serving("latency") == "wide"
    world.told.clear()
    return world


def edited(world: World, what: str, change: Callable[[dict[str, Any]], object]) -> None:
    change(world.cluster.objects["BenchmarkProfile", NAME]["spec"])
    world.settle(f"the profile is edited: {what}", 5)


def rounds(world: World) -> int:
    return len(world.cluster.of("Job", component="round"))


def servers(world: World) -> list[Any]:
    return [one["spec"] for one in world.cluster.of("Deployment")]


@told
def test_another_gate_of_a_profile_is_judged_on_the_rounds_there_are(world: World) -> None:
    """As an edit of spec.gate is (0033): a run more, and no round."""
    in_production(world)
    before = rounds(world), servers(world)
    edited(world, "minImprovement 4%", lambda spec: spec["gate"].update(minImprovement="4%"))
    assert len(world.runs("latency")) == 2
    assert (rounds(world), servers(world)) == before
    assert world.pool("latency")["gate"]["minImprovement"] == "4%"


@told
def test_without_its_profile_the_servers_stay_and_nothing_begins(world: World) -> None:
    """A changed question is not answered. When it is there again, what was measured counts."""
    in_production(world)
    before = servers(world), rounds(world), len(world.runs("latency"))
    world.delete("BenchmarkProfile", NAME)
    assert world.condition("Stalled") == "True ProfileNotFound"
    assert "spec.benchmark.profileRef.name: " in world.message("Stalled")
    world.edit("other tokens", lambda spec: spec["pools"][0]["load"][0].update(concurrency=[1, 2]))
    world.edit("as before", lambda spec: spec["pools"][0]["load"][0].update(concurrency=[1]))
    assert (servers(world), rounds(world), len(world.runs("latency"))) == before
    world.apply(profile())
    assert (world.condition("Stalled"), world.condition("Promoted")) == ("", "True AllPromoted")
    assert (servers(world), rounds(world), len(world.runs("latency"))) == before


def test_a_run_under_way_goes_on_without_the_profile_that_it_came_from() -> None:
    """It carries the values itself."""
    world = begun(World(), naming(), profile())
    world.delete("BenchmarkProfile", NAME)
    (run,) = world.runs("latency")
    while world.under_way("round"):
        world.round_ends()
    assert (world.outcome("latency"), world.serving("latency")) == ("Promote", "baseline")
    assert run["spec"]["budget"] == BENCHMARK["budget"]
    world.apply(profile())
    world.servers_ready()
    assert (world.serving("latency"), rounds(world)) == ("wide", 3)


@told
def test_a_lock_that_is_contradicted_is_named_and_nothing_is_measured(world: World) -> None:
    in_production(world, profile(locked=["gate", "budget"]))
    before = servers(world), rounds(world), len(world.runs("latency"))
    world.edit("an easier gate", lambda spec: spec["pools"][0].update(gate={"minImprovement": "1%"}))
    assert world.condition("Stalled") == "True ProfileLocked"
    assert "spec.pools[0].gate.minImprovement: " in world.message("Stalled")
    assert (servers(world), rounds(world), len(world.runs("latency"))) == before
    world.edit("the profile's own", lambda spec: spec["pools"][0].update(gate={"minImprovement": "5%"}))
    assert (world.condition("Stalled"), world.condition("Promoted")) == ("", "True AllPromoted")
    assert (servers(world), rounds(world), len(world.runs("latency"))) == before


def test_a_lock_that_comes_later_takes_no_server() -> None:
    world = begun(World(), naming(budget={"gpuHours": "60"}), profile())
    measured(world)
    edited(world, "locked", lambda spec: spec.update(locked=["budget"]))
    assert world.condition("Stalled") == "True ProfileLocked"
    assert world.serving("latency") == "wide"


def test_what_the_deployment_writes_wins_field_by_field() -> None:
    manifest = naming(budget={"gpuHours": "60"})
    manifest["spec"]["gate"] = {"minImprovement": "7%"}
    world = begun(World(), manifest, profile())
    (run,) = world.runs("latency")
    assert run["spec"]["budget"] == {"gpuHours": "60"}
    assert (run["spec"]["gate"]["minImprovement"], run["spec"]["gate"]["decideAfterRounds"]) == ("7%", [3, 5, 8])
    assert {workload["name"] for workload in run["spec"]["workloads"]} == {"code", "chat"}


def test_the_same_values_inline_are_the_same_question() -> None:
    """So that they can move to a profile, and back, without a round."""
    inline = naming()
    inline["spec"] |= {"benchmark": BENCHMARK, "gate": GATE}
    world, twin = begun(World(), inline), begun(World(), naming(), profile())
    assert [run["metadata"]["name"] for run in world.runs("latency")] == [
        run["metadata"]["name"] for run in twin.runs("latency")
    ]
    assert [run["spec"] for run in world.runs("latency")] == [run["spec"] for run in twin.runs("latency")]
    measured(world)
    before = servers(world), rounds(world), len(world.runs("latency"))
    world.apply(profile())
    world.edit("a profile", lambda spec: (spec.update(benchmark={"profileRef": {"name": NAME}}), spec.pop("gate")))
    assert (world.condition("Promoted"), world.condition("Stalled")) == ("True AllPromoted", "")
    assert (servers(world), rounds(world), len(world.runs("latency"))) == before


def required(world: World, *namespaces: str) -> None:
    world.settings = replace(world.settings, profile_required=frozenset(namespaces))
    world.wait(1)


@told
def test_a_namespace_that_requires_a_profile_takes_no_server_away(world: World) -> None:
    """From then on nothing is measured there without one; with one that has the values of before, nothing anew."""
    promoted(world, "latency")
    before = servers(world), rounds(world), len(world.runs("latency"))
    required(world, "models")
    assert (world.condition("Stalled"), world.serving("latency")) == ("True ProfileRequired", "wide")
    assert "spec.benchmark.profileRef: " in world.message("Stalled")
    world.edit("another gate", lambda spec: spec["gate"].update(minImprovement="1%"))
    assert (servers(world), rounds(world), len(world.runs("latency"))) == before
    world.apply(profile(benchmark={}, gate={"decideAfterRounds": [3, 5, 8]}))
    world.edit("a profile", lambda spec: (spec.pop("gate"), spec["benchmark"].update(profileRef={"name": NAME})))
    assert (world.condition("Stalled"), world.condition("Promoted")) == ("", "True AllPromoted")
    assert (servers(world), rounds(world), len(world.runs("latency"))) == before


@pytest.mark.parametrize(("namespaces", "stalled"), [(("*",), "True ProfileRequired"), (("others",), "")])
def test_all_namespaces_may_require_one_and_those_that_do_not_are_left_alone(
    namespaces: tuple[str, ...], stalled: str
) -> None:
    world = World()
    promoted(world, "latency")
    required(world, *namespaces)
    assert world.condition("Stalled") == stalled


def test_rules_hold_for_the_profiles_values_too(says: Says) -> None:
    """CEL sees only what the deployment writes: the operator says where the rest comes from."""
    manifest = naming()
    manifest["spec"]["pools"][0]["load"][0]["datasets"] = ["own"]
    world = begun(World(), manifest, profile())
    assert world.condition("Stalled") == "True InvalidSpec"
    assert "benchmark.datasets" in world.message("Stalled")
    says(world.message("Stalled"))
