"""A pool that is taken out of the spec, and comes back."""

from copy import deepcopy

from tests.support.stories import promoted
from tests.support.world import World

ABORT = "abort.paceline.dev/latency"


def test_what_is_still_asked_of_a_dropped_pool_is_told() -> None:
    """The way out is to remove the annotation: a pool that comes back is asked again."""
    world = World()
    promoted(world, "latency", "throughput")
    world.annotate(ABORT, "monday")
    before = deepcopy(world.spec()["pools"])
    world.edit("drop", lambda spec: spec.update(pools=[one for one in spec["pools"] if one["name"] != "latency"]))
    (refused,) = world.status()["refused"]
    assert refused.startswith(f"{ABORT}=monday: ")
    assert refused.endswith("remove it")
    world.edit("as before", lambda spec: spec.update(pools=before))
    assert world.memory("latency")["handled"] == {"abort": "monday"}
