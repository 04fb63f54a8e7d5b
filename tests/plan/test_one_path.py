"""What blocks one step stops nothing that does not need it: there is one way by which a pool serves."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.down import NAME
from tests.support.edits_of_specs import CODE_ALONE, in_production
from tests.support.stories import measuring
from tests.support.world import World, example

from paceline.plan.simulation.reconciler import SETTINGS

DAY = 24 * 60
POOL = f"{NAME}-latency"


def another_head(spec: dict[str, Any]) -> None:
    spec["draft"]["revision"] = "f" * 40


def unreadable(spec: dict[str, Any]) -> None:
    spec["engine"]["args"] = ["--no-such-flag"]


def there(world: World) -> set[tuple[str, str]]:
    kinds = ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
    return {(kind, one["metadata"]["name"]) for kind in kinds for one in world.cluster.of(kind)}


@pytest.mark.parametrize("edit", [another_head, unreadable])
@pytest.mark.parametrize("kind", ["Service", "Deployment"])
def test_what_is_deleted_while_a_step_blocks_is_made_again(edit: Any, kind: str) -> None:
    world = in_production("latency")
    before = there(world)
    world.edit("what cannot be carried out yet", edit)
    world.delete(kind, POOL)
    assert there(world) == before


def test_a_head_that_one_pool_cannot_have_keeps_no_dead_candidate_of_another() -> None:
    world = World()
    world.apply(example())
    world.prefetch_ends()
    world.servers_ready()
    for _ in range(8):
        if world.under_way("round"):
            world.round_ends()
    world.servers_ready()
    world.servers_ready()
    assert world.serving("latency") == "wide"
    world.edit("another pool's head", lambda spec: missing_head(spec, "throughput"))
    world.prefetch_fails("404 not found", source="hf://nobody/nothing")
    world.server_loops("latency", 1, "Segmentation fault")
    world.wait(DAY)
    world.servers_ready()
    assert world.memory("latency")["target"]["arm"] == "baseline"
    assert world.serving("latency") == "baseline"


def missing_head(spec: dict[str, Any], pool: str) -> None:
    names = [candidate["name"] for candidate in spec["candidates"]]
    other = {"source": "hf://nobody/nothing", "algorithm": "EAGLE3"}
    spec["candidates"].append({"name": "other", "draft": other, "tree": {"numSteps": 3}})
    for one in spec["pools"]:
        one["candidates"] = [*one.get("candidates", names), *(["other"] if one["name"] == pool else [])]


def test_suspended_nothing_but_what_serves_is_served_whatever_is_deleted() -> None:
    world = in_production("latency")
    serves = world.pool("latency")["serving"]["revision"]

    def edit(spec: dict[str, Any]) -> None:
        spec["suspend"] = True
        spec["engine"]["args"] = [*spec["engine"].get("args", ()), "--schedule-conservativeness=1.1"]

    world.edit("suspended, with another argument", edit)
    for one in world.cluster.of("ControllerRevision"):
        if one["metadata"]["name"].endswith(serves):
            world.delete("ControllerRevision", one["metadata"]["name"])
    servers = world.cluster.objects["Deployment", POOL]
    assert servers["spec"]["template"]["metadata"]["labels"]["paceline.dev/revision"] == serves
    assert world.memory("latency")["target"]["revision"] == serves


def taken_back(spec: dict[str, Any]) -> None:
    spec["draft"].pop("revision", None)


def test_what_crashed_while_a_step_blocked_is_not_served_again_once_the_edit_is_taken_back() -> None:
    world = in_production("latency")
    world.edit("another head", another_head)
    world.server_loops("latency", 1, "Segmentation fault")
    world.wait(DAY)
    world.servers_ready()
    world.edit("the head of before", taken_back)
    assert world.memory("latency")["target"]["arm"] == "baseline"
    assert [hold["reason"] for hold in world.pool("latency")["holds"]] == ["Crashed"]


def test_a_dead_candidate_gives_way_to_the_baseline_as_it_served_if_the_spec_has_another() -> None:
    world = in_production("latency")
    (before,) = [one["revision"] for one in world.pool("latency")["history"] if one["arm"] == "baseline"]

    def edit(spec: dict[str, Any]) -> None:
        unreadable(spec)
        spec["engine"]["env"] = [*spec["engine"]["env"], {"name": "OTHER", "value": "1"}]

    world.edit("what cannot be carried out, and another baseline", edit)
    world.server_loops("latency", 1, "Segmentation fault")
    world.wait(DAY)
    world.servers_ready()
    assert world.memory("latency")["target"]["revision"] == before
    assert world.serving("latency") == "baseline"


def test_until_decided_nothing_serves_on_what_served_where_no_verdict_can_come() -> None:
    world = World()
    manifest = example("latency")
    manifest["spec"]["promotion"] = {"untilDecided": "Nothing"}
    world.apply(manifest)
    world.prefetch_ends()
    while world.under_way("round"):
        world.round_ends()
    world.servers_ready()
    world.edit("other prompts", lambda spec: spec.update(benchmark={"datasets": CODE_ALONE}))
    world.edit("a head that does not exist", another_head)
    world.prefetch_fails("404")
    world.server_loops("latency", 1, "Segmentation fault")
    world.wait(DAY)
    assert world.cluster.objects["Deployment", POOL]["spec"]["replicas"] == 1
    assert world.memory("latency")["target"]["arm"] == "baseline"


def test_a_status_that_is_lost_while_suspended_changes_no_server() -> None:
    world = in_production("latency")
    world.annotate("rollback.paceline.dev/latency", "@monday")
    world.servers_ready()
    before = world.cluster.objects["Deployment", POOL]["spec"]
    world.edit("suspended", lambda spec: spec.update(suspend=True))
    world.cluster.objects["SpeculativeDeployment", NAME].pop("status")
    world.settle("the status is lost", 1)
    assert world.cluster.objects["Deployment", POOL]["spec"] == before


def test_the_network_of_servers_stays_with_them_while_the_spec_waits() -> None:
    world = in_production("latency", settings=replace(SETTINGS, network_policies=frozenset({"servers"})))
    before = world.cluster.objects["NetworkPolicy", POOL]["spec"]

    def two_nodes(spec: dict[str, Any]) -> None:
        spec["accelerator"]["nodes"] = 2

    world.absent = frozenset({"LeaderWorkerSet"})
    world.edit("over two nodes, without LeaderWorkerSet", two_nodes)
    assert world.condition("Stalled") == "True NoLeaderWorkerSet"
    assert world.cluster.objects["NetworkPolicy", POOL]["spec"] == before


def test_a_rollback_while_suspended_holds_although_the_edit_is_taken_back() -> None:
    world = in_production("latency")
    world.edit("suspended, with another head", lambda spec: (another_head(spec), spec.update(suspend=True)))
    world.annotate("rollback.paceline.dev/latency", "@monday")
    world.servers_ready()
    world.edit("resumed, with the head of before", lambda spec: (taken_back(spec), spec.pop("suspend")))
    assert world.memory("latency")["target"]["arm"] == "baseline"
    assert [hold["reason"] for hold in world.pool("latency")["holds"]] == ["RolledBack"]


def test_a_roll_out_that_is_ended_while_suspended_stays_ended_although_the_edit_is_taken_back() -> None:
    world = World()
    measuring(world, "latency")
    while world.under_way("round"):
        world.round_ends()
    assert world.memory("latency")["target"]["arm"] == "wide", "being rolled out"
    world.edit("suspended, other prompts", lambda spec: spec.update(suspend=True, benchmark={"datasets": CODE_ALONE}))
    world.annotate("abort.paceline.dev/latency", "monday")
    world.servers_ready()
    world.edit("resumed, the prompts of before", lambda spec: (spec.pop("suspend"), spec.pop("benchmark")))
    assert world.memory("latency")["target"]["arm"] == "baseline"
    assert [hold["reason"] for hold in world.pool("latency")["holds"]] == ["Aborted"]
