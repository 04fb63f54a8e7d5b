"""The claim of the cache: it grows, it is shared, and what it has otherwise is told."""

from typing import Any

import pytest
from tests.support.messages import Says
from tests.support.stories import promoted
from tests.support.world import World, example

from paceline.plan.deployment.fetch import bytes_of
from paceline.plan.step import timestamp

NAME = "qwen3-coder-next"


def volume(world: World) -> Any:
    (volume,) = world.cluster.of("PersistentVolumeClaim")
    return volume["spec"]


def size(world: World) -> str:
    return str(volume(world)["resources"]["requests"]["storage"])


def asks(world: World, **claim: Any) -> None:
    world.edit(f"claim {claim}", lambda spec: spec["cache"]["claim"].update(claim))


def test_it_grows_when_more_is_asked_for() -> None:
    world = World()
    world.apply(example("latency"))
    before = volume(world) | {}
    asks(world, size="4Ti")
    assert size(world) == "4Ti"
    assert volume(world)["accessModes"] == before["accessModes"]


def test_what_cannot_change_goes_along_as_it_is(says: Says) -> None:
    """The API server would refuse another mode, and with it the size."""
    world = World()
    world.apply(example("latency"))
    asks(world, size="4Ti", accessModes=["ReadWriteOnce"])
    assert (size(world), volume(world)["accessModes"]) == ("4Ti", ["ReadWriteMany"])
    assert "spec.cache.claim.accessModes" in " ".join(world.status()["notes"])
    says(*world.status()["notes"])


def test_it_is_never_made_smaller_and_says_so(says: Says) -> None:
    """Another deployment may have asked for as much."""
    world = World()
    world.apply(example("latency"))
    before = size(world)
    asks(world, size="1Gi")
    assert size(world) == before
    says(*world.status()["notes"])


def test_that_it_may_not_grow_is_stalled_in_the_api_servers_words() -> None:
    world = World()
    world.apply(example("latency"))
    words = "only dynamically provisioned pvc can be resized"
    world.refusals = {("PersistentVolumeClaim", "models"): words}
    asks(world, size="4Ti")
    assert world.condition("Stalled") == "True Refused"
    assert f"PersistentVolumeClaim models: {words}" in world.message("Stalled")


def test_a_prefetch_that_had_no_room_is_made_again_once_there_is_more() -> None:
    """That a disk is full is for a person to end, and the person has."""
    world = World()
    world.apply(example("latency"))
    world.prefetch_fails("no space left on device")
    assert world.condition("Stalled") == "True PrefetchFailed"
    asks(world, size="4Ti")
    world.prefetch_ends()
    assert (world.condition("Stalled"), world.condition("CacheReady")) == ("", "True Cached")


@pytest.mark.parametrize(
    ("less", "more"), [("400Gi", "4Ti"), ("400G", "400Gi"), ("1000M", "1Gi"), ("999", "1k"), ("1.5Gi", "2Gi")]
)
def test_sizes_are_compared_in_bytes(less: str, more: str) -> None:
    assert bytes_of(less) < bytes_of(more)


def test_a_claim_that_was_deleted_is_filled_again_and_takes_no_arm_off() -> None:
    """Its servers end for want of a model, and are restarted until there is one: no revision is to blame."""
    world = World()
    promoted(world)
    before = world.memory("latency")["target"]["revision"]
    world.delete("PersistentVolumeClaim", "models")
    assert world.condition("CacheReady") == "False Prefetching"
    assert world.under_way("fetch")
    world.server_loops("latency", 1, "OSError: /models/hub/… is not a local folder")
    world.prefetch_ends()
    assert world.condition("CacheReady") == "True Cached"
    assert "holds" not in world.pool("latency")
    world.servers_ready()
    assert (world.condition("Ready"), world.serving("latency")) == ("True Serving", "wide")
    assert world.pool("latency")["serving"]["revision"] == before


def test_a_claim_that_is_being_deleted_is_told_with_the_way_out_and_kept_by_no_prefetch() -> None:
    """Kubernetes keeps it while pods name it, those that have ended too; meanwhile none of them starts anew. Once it
    has gone another one is made and filled, whatever status said of the first."""
    world = World()
    promoted(world)
    before = world.memory("latency")["target"]["revision"]
    (claim,) = world.cluster.of("PersistentVolumeClaim")
    claim["metadata"]["deletionTimestamp"] = timestamp(world.cluster.now)
    world.wait(1)
    assert world.condition("CacheReady") == "False PrefetchWaiting"
    for command in (f"delete pods -l paceline.dev/deployment={NAME}", "delete jobs -l paceline.dev/component=round"):
        assert f"kubectl {command}" in world.message("CacheReady")
    assert not world.cluster.of("Job", component="fetch")
    assert (world.condition("Ready"), world.serving("latency")) == ("True Serving", "wide")
    world.wait(30)
    assert world.condition("Stalled") == "True Unplaceable"
    assert not world.cluster.of("Job", component="fetch"), "none that would wait for it"

    world.delete("PersistentVolumeClaim", "models")
    assert (world.condition("CacheReady"), world.condition("Stalled")) == ("False Prefetching", "")
    world.prefetch_ends()
    assert (world.condition("CacheReady"), world.condition("Ready")) == ("True Cached", "True Serving")
    assert world.pool("latency")["serving"]["revision"] == before
