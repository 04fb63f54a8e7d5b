"""Evidence that no longer holds: what was measured is no longer what the spec renders, or not what its image's tag is.
It is said at once and measured again; what serves meanwhile follows decisions 0032 and 0050. As test_stories."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.campaigns import BASELINE_1
from tests.support.messages import Says
from tests.support.runs import made_by
from tests.support.stories import promoted, told
from tests.support.world import World

Edit = Callable[[dict[str, Any]], object]
MEASURED, MOVED = (f"docker.io/lmsysorg/sglang@sha256:{digit * 64}" for digit in "ab")
SLOWER = {"baseline": BASELINE_1, "wide": {name: 0.9 * speed for name, speed in BASELINE_1.items()}}


@pytest.mark.parametrize(
    "edit",
    [
        lambda spec: spec["target"].update(revision="v2"),
        lambda spec: spec["draft"].update(revision="v2"),
        lambda spec: spec["engine"].update(image="another"),
        lambda spec: spec["accelerator"].update(product="NVIDIA-H100"),
    ],
    ids=["target", "head", "image", "product"],
)
def test_another_server_is_said_at_once_and_measured(edit: Edit, says: Says) -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another server", edit)
    if world.under_way("fetch"):
        world.prefetch_ends()
    assert world.condition("Decided").startswith("False")
    says(world.message("Decided"))
    world.servers_ready()
    assert len(world.runs("latency")) == 2
    because = world.memory("latency")["progress"]["because"]
    events = [event for shown in world.told for event in shown.events]
    assert any(event.startswith("Normal Measuring: ") and because in event for event in events)


def moved() -> World:
    """In production, on the image that was measured; then its tag is moved and a server is replaced."""
    world = World()
    world.image = MEASURED
    promoted(world, "latency")
    world.servers_run(MEASURED)
    assert len(world.runs("latency")) == 1
    world.told.clear()
    world.servers_run(MOVED)
    return world


def test_a_tag_that_was_moved_is_said_and_measured_and_takes_nothing_down(says: Says) -> None:
    world = moved()
    assert world.serving("latency") == "wide"
    assert world.condition("Promoted") == "True StillPromoted"
    assert "sha256:aaaaaaaaaaaa" in world.message("Decided")
    assert "sha256:bbbbbbbbbbbb" in world.message("Decided")
    asked = world.runs("latency")[-1]
    assert made_by(asked) == {"attempt": "2", "trigger": "Stale", "token": f"sha256:{'b' * 64}"}
    assert "roundsOf" not in asked["spec"]["gate"], "rounds of the other image are not judged again"
    says(world.memory("latency")["progress"]["because"])


def test_its_verdict_counts_then() -> None:
    world = moved()
    world.image = MOVED
    for _ in range(3):
        world.round_ends()
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True AllPromoted")
    assert world.memory("latency")["target"]["evidence"]["run"] == world.runs("latency")[-1]["metadata"]["name"]
    assert len(world.runs("latency")) == 2


def test_a_new_image_that_is_slower_is_taken_off() -> None:
    world = moved()
    world.image = MOVED
    while world.under_way("round"):
        world.round_ends(truth=SLOWER)
    world.servers_ready()
    assert world.serving("latency") == "baseline"


def test_nodes_that_keep_the_old_image_are_measured_once_and_told(says: Says) -> None:
    """Another run would find no more; the way out is a digest."""
    world = moved()
    for _ in range(3):
        world.round_ends()
    world.wait(60)
    assert len(world.runs("latency")) == 2
    says(*world.status()["notes"])


@pytest.mark.parametrize("image", ["", "sha256:" + "c" * 64])
def test_what_cannot_be_compared_is_not_taken_for_another_image(image: str) -> None:
    """A node on which it was loaded by hand reports its own id."""
    world = World()
    world.image = MEASURED
    promoted(world, "latency")
    world.servers_run(image)
    assert len(world.runs("latency")) == 1
    assert world.condition("Decided") == "True AllDecided"


@told
def test_the_tag_of_the_image_was_moved(world: World) -> None:
    """Below a promoted arm, which serves on while the new image is measured."""
    world.image = MEASURED
    promoted(world, "latency")
    world.servers_run(MOVED)
    world.image = MOVED
    for _ in range(3):
        world.round_ends()
