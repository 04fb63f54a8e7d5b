"""What blocks one step stops nothing that does not need it: there is one way by which a pool serves."""

from typing import Any

import pytest
from tests.support.down import NAME
from tests.support.edits_of_specs import in_production
from tests.support.world import World, example

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
