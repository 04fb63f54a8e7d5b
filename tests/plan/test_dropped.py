"""A pool that is taken out of the spec and comes back: what a person had asked is not done again."""

from copy import deepcopy
from typing import Any

import pytest
from tests.support.down import hold
from tests.support.stories import promoted
from tests.support.world import World

ABORT, RETRY = "abort.paceline.dev/latency", "retry.paceline.dev/latency"


def drop(world: World) -> dict[str, Any]:
    """Latency is taken out; its entry of the spec."""
    spec = deepcopy(dict(world.spec()))
    (latency,) = (pool for pool in spec["pools"] if pool["name"] == "latency")
    world.edit("drop", lambda now: now.update(pools=[pool for pool in now["pools"] if pool["name"] != "latency"]))
    return dict(latency)


def bring_back(world: World, pool: dict[str, Any]) -> None:
    world.edit("as before", lambda now: now["pools"].append(pool))
    world.servers_ready()


@pytest.fixture
def world() -> World:
    """Both pools serve, and a person has asked latency to stop its run, and to go on."""
    world = World()
    promoted(world, "latency", "throughput")
    world.annotate(ABORT, "monday")
    world.annotate(RETRY, "tuesday")
    return world


def test_a_request_that_was_carried_out_does_not_act_again(world: World) -> None:
    pool = drop(world)
    assert world.status()["internal"]["dropped"] == [
        {"name": "latency", "handled": {"abort": "monday", "retry": "tuesday"}}
    ]
    assert "refused" not in world.status()
    world.told.clear()
    bring_back(world, pool)
    assert (hold(world), world.condition("Measuring")) == (None, "True Measuring")
    assert world.memory("latency")["handled"] == {"abort": "monday", "retry": "tuesday"}
    assert "dropped" not in world.status()
    assert [event for one in world.told for event in one.events if "abort" in event.lower() or "Retried" in event] == []


def test_another_request_does(world: World) -> None:
    pool = drop(world)
    world.annotate(ABORT, "wednesday")
    (refused,) = world.status()["refused"]
    assert refused.startswith("abort.paceline.dev/latency=wednesday: pool latency does not exist")
    bring_back(world, pool)
    assert (hold(world), world.memory("latency")["handled"]["abort"]) == ("Aborted", "wednesday")


def test_a_request_is_forgotten_with_its_annotation(world: World) -> None:
    drop(world)
    for key in (ABORT, RETRY):
        world.annotate(key, "")
    assert "dropped" not in world.status()


def test_it_is_remembered_while_the_spec_is_invalid(world: World) -> None:
    pool = drop(world)
    world.edit("an argument of ours", lambda spec: spec["engine"]["args"].append("--port=1"))
    world.edit("as before", lambda spec: spec["pools"].append(pool))
    assert "refused" not in world.status()
    world.edit("none of ours", lambda spec: spec["engine"]["args"].pop())
    world.servers_ready()
    assert hold(world) is None
