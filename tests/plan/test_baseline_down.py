"""A baseline that does not run goes back to what served; without that it stays, and is held."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.support.down import (
    NOT_FOUND,
    a_small_limit,
    another_dataset,
    another_image,
    arm,
    at_once,
    hold,
    the_old_image,
)
from tests.support.stories import measuring, promoted, told
from tests.support.world import World, example


@told
def test_an_image_that_is_not_there_in_a_promoted_pool(world: World) -> None:
    """A wrong tag: two minutes later what served serves again, and Stalled says why for as long as it is so."""
    promoted(world, "latency")
    world.wait(600)
    served, began = world.pool("latency")["serving"]["revision"], world.cluster.now
    world.edit("an image that is not there", another_image)
    world.server_is_refused("latency", "ImagePullBackOff", NOT_FOUND)
    world.until_wake()
    assert world.cluster.now - began <= timedelta(minutes=7)  # five of them an edit takes in these stories
    assert (hold(world), world.memory("latency")["target"]["revision"]) == ("NotReady", served)

    world.servers_ready()
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "True NotReady")
    assert NOT_FOUND in world.message("Stalled")
    assert (world.serving("latency"), world.condition("Measuring")) == ("wide", "False BaselineHeld")

    world.wait(24 * 60)
    assert (world.condition("Stalled"), len(world.runs("latency"))) == ("True NotReady", 1)

    world.edit("the old image", the_old_image)
    world.servers_ready()
    assert (world.condition("Stalled"), world.serving("latency")) == ("", "wide")


def wrong_image(world: World) -> None:
    world.edit("an image that is not there", another_image)
    world.server_is_refused("latency", "ErrImagePull", NOT_FOUND)
    world.wait(2)


def small_limit(world: World) -> None:
    world.edit("a small memory limit", a_small_limit)
    world.server_loops("latency", 137, "OOMKilled")


def never_ready(world: World) -> None:
    world.edit("another image", another_image)
    world.until_wake()


@pytest.mark.parametrize("start", [promoted, measuring])
@pytest.mark.parametrize("change", [wrong_image, small_limit, never_ready])
def test_a_baseline_that_does_not_start_goes_back_to_what_served(
    start: Callable[..., None], change: Callable[[World], None]
) -> None:
    world = World()
    start(world, "latency")
    before = world.pool("latency")["serving"]
    change(world)
    world.servers_ready()
    now = world.pool("latency")["serving"]
    assert (now["arm"], now["revision"]) == (before["arm"], before["revision"])
    assert world.condition("Stalled") == "True NotReady"
    assert world.condition("Ready") == "True Serving"


def test_a_quota_that_a_changed_spec_exceeds() -> None:
    """What served before did not exceed it. Until the deadline somebody may raise it."""
    world = World()
    promoted(world, "latency")
    world.faults.refuses["server"] = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=4"
    world.edit("another image", another_image)
    world.wait(20)
    assert (arm(world), hold(world)) == ("baseline", None)
    world.wait(10)
    world.faults.refuses.clear()
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")
    assert "exceeded quota" in world.message("Stalled")


def test_a_quota_that_a_promoted_candidate_exceeds_by_now() -> None:
    """The baseline would exceed it, too."""
    world = World()
    promoted(world, "latency")
    world.faults.refuses["server"] = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=4"
    world.delete("Pod", world.cluster.of("Pod", component="server")[0]["metadata"]["name"])
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("wide", None, "True PodRefused")


def test_what_keeps_a_baseline_held_and_what_releases_it() -> None:
    """Another question asks nothing of the servers; `retry` tries it again, once."""
    world = World()
    promoted(world, "latency")
    wrong_image(world)
    world.servers_ready()
    world.edit("another dataset", another_dataset)
    assert (world.serving("latency"), hold(world)) == ("wide", "NotReady")

    (request,) = set(world.requests("retry"))
    world.annotate(request[0], "the image is there now")
    assert (arm(world), hold(world)) == ("baseline", None)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("baseline", "")


def test_what_it_goes_back_to_fails_too() -> None:
    """Then the node is broken, or the driver: it does not go to and fro, and Stalled says so."""
    world = World()
    promoted(world, "latency")
    wrong_image(world)
    before = world.memory("latency")["target"]
    world.server_loops("latency", 1, "no CUDA-capable device is detected")
    world.wait(24 * 60)
    after = world.memory("latency")["target"]
    assert {**after, "standsSince": ""} == {**before, "standsSince": ""}
    assert (world.condition("Stalled"), world.condition("Ready")) == ("True ServerFailed", "False Crashing")


def test_a_first_baseline_that_does_not_start() -> None:
    """There is nothing to go back to. A person is told, at once or at the deadline."""
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.server_is_refused("latency", "ErrImagePull", NOT_FOUND)
    world.until_wake()
    assert (world.condition("Stalled"), hold(world)) == ("True ServerFailed", None)

    slow = World()
    slow.apply(example("latency"))
    slow.prefetch_ends()
    slow.until_wake()
    assert (slow.condition("Stalled"), hold(slow)) == ("True ServerFailed", None)
    assert "promotion.progressDeadline" in slow.message("Stalled")
    slow.servers_ready()
    assert (slow.condition("Stalled"), slow.serving("latency")) == ("", "baseline")


def test_a_baseline_that_has_served_stays() -> None:
    """Nothing better is known than what it is."""
    world = World()
    measuring(world, "latency")
    world.server_loops("latency", 1, "CUDA error")
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("baseline", None, "True ServerFailed")


def test_a_taken_off_candidate_is_nothing_to_go_back_to() -> None:
    """The node is broken: neither the candidate nor the baseline starts, and they do not take turns."""
    world = World()
    promoted(world, "latency")
    world.server_loops("latency", 1, "no CUDA-capable device is detected")
    world.server_loops("latency", 1, "no CUDA-capable device is detected")
    world.wait(24 * 60)
    assert (arm(world), hold(world), world.condition("Stalled")) == ("baseline", "Crashed", "True ServerFailed")


def test_what_served_last_is_kept_for_as_long_as_its_successor_has_not_served() -> None:
    """However few old renderings are to be kept, and however often the spec is changed meanwhile."""
    world = World()
    promoted(world, "latency")
    world.edit("a short history", lambda spec: spec.update(promotion={"revisionHistoryLimit": 1}))
    for tag in "abc":
        world.edit("another image", at_once(f"lmsysorg/sglang:{tag}"))
    wrong_image(world)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")


def test_servers_of_two_nodes_that_do_not_start() -> None:
    """Another kind of servers gives way to the one before, and the pool's address leads there."""
    world = World()
    promoted(world, "latency")
    world.edit("two nodes", lambda spec: spec["accelerator"].update(nodes=2))
    world.until_wake()
    assert [kind for kind in ("Deployment", "LeaderWorkerSet") if world.cluster.of(kind)] == ["Deployment"]
    (address,) = world.cluster.of("Service")
    (servers,) = world.cluster.of("Deployment")
    labels = servers["spec"]["template"]["metadata"]["labels"]
    assert address["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize("change", [wrong_image, never_ready])
def test_a_crash_between_status_and_actions_goes_back_all_the_same(change: Callable[[World], None]) -> None:
    """Hold and target are one write; what follows from them follows again."""
    world = World()
    promoted(world, "latency")
    survived = iter([False] * 2)
    world.crash = lambda actions: actions if not held(world) or next(survived, True) else ()

    def held(world: World) -> bool:
        return hold(world) is not None

    change(world)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Stalled")) == ("wide", "True NotReady")
