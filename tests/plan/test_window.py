"""`benchmark.window`: rounds start while it is open; one that is under way is measured to its end."""

from typing import Any

import pytest
from tests.plan.test_borrow import borrowing, replicas
from tests.support.stories import told
from tests.support.world import World, example

from paceline.plan.step import parse_time

NIGHT = {"schedule": "30 10 * * *", "duration": "1h", "timeZone": "UTC"}
"""Stories begin at 10:00."""


def at(world: World, time: str) -> None:
    world.settle(f"it is {time}", 0, at=parse_time(f"2026-11-21T{time}:00Z"))


def with_window(world: World, window: Any = None, **benchmark: Any) -> World:
    manifest = example("latency")
    manifest["spec"]["benchmark"] |= {"window": window or NIGHT, **benchmark}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    return world


@told
def test_runs_measure_while_the_window_is_open(world: World) -> None:
    """No run is made before it opens. When it closes, the round under way ends, and the next one waits a day."""
    with_window(world)
    assert world.condition("Ready") == "True Serving"
    assert world.condition("Measuring") == "False WaitingForWindow"
    assert "2026-11-21T10:30:00Z" in world.message("Measuring")
    assert (world.runs("latency"), min(filter(None, world.wakes.values()))) == (
        [],
        parse_time("2026-11-21T10:30:00Z"),
    )

    world.until_wake()
    assert world.condition("Measuring") == "True Measuring"
    at(world, "11:31")
    assert len(world.under_way("round")) == 1, "it is measured to its end"
    world.round_ends()
    assert (world.condition("Measuring"), world.under_way("round")) == ("False WaitingForWindow", [])
    assert "2026-11-22T10:30:00Z" in world.message("Measuring")
    (run,) = world.runs("latency")
    assert world.condition("Complete", run) == "False WaitingForWindow"

    world.until_wake()
    for _ in range(2):
        world.round_ends()
    world.servers_ready()
    (run,) = world.runs("latency")
    assert (world.condition("Promoted"), len(run["rounds"])) == ("True AllPromoted", 3)


def test_a_round_without_a_node_does_not_get_one_after_the_window_has_closed() -> None:
    world = World(nodes={"gpu-0": 4})
    with_window(world)
    at(world, "10:30")
    assert world.condition("Measuring") == "False WaitingForCapacity"
    at(world, "11:30")
    assert (world.condition("Measuring"), world.under_way("round")) == ("False WaitingForWindow", [])
    world.cluster.nodes = {"gpu-0": 8}
    world.wait(60)
    assert world.under_way("round") == []
    (run,) = world.runs("latency")
    assert run["rounds"] == [], "it was no try"


def test_what_was_lent_comes_back_when_the_window_closes() -> None:
    world = World(nodes={"gpu-0": 8})
    manifest = borrowing()
    manifest["spec"]["benchmark"]["window"] = NIGHT
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    at(world, "10:30")
    at(world, "10:31")
    assert (replicas(world), world.condition("Measuring")) == (1, "True Measuring")
    at(world, "11:45")
    assert replicas(world) == 1, "its round is still measured"
    world.round_ends()
    assert (replicas(world), "borrowed" in world.memory("latency")) == (2, False)


def test_a_window_that_is_taken_away_or_moved_counts_at_once() -> None:
    world = with_window(World())
    world.edit("no window", lambda spec: spec["benchmark"].pop("window"))
    assert world.condition("Measuring") == "True Measuring"
    world.edit("a window", lambda spec: spec["benchmark"].update(window=NIGHT))
    assert world.condition("Measuring") == "True Measuring", "its round is under way"
    at(world, "11:40")
    world.round_ends()
    assert world.condition("Measuring") == "False WaitingForWindow"


def test_suspended_outside_the_window_it_waits_for_both() -> None:
    world = with_window(World())
    at(world, "10:30")
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    at(world, "11:40")
    assert world.condition("Measuring") == "False Suspended"
    world.edit("resume", lambda spec: spec.update(suspend=False))
    assert (world.condition("Measuring"), world.under_way("round")) == ("False WaitingForWindow", [])


@pytest.mark.parametrize("change", [{}, {"window": NIGHT}], ids=["without", "with"])
def test_it_is_no_part_of_the_question(change: Any) -> None:
    world = World()
    manifest = example("latency")
    manifest["spec"]["benchmark"] |= change
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    at(world, "10:30")
    (run,) = world.runs("latency")
    assert "window" not in str(run["spec"])
    assert run["metadata"]["name"] == "qwen3-coder-next-latency-e2673851e4-1"


def test_it_closes_while_the_spec_is_refused() -> None:
    """Nothing else tells the run, and it would measure on."""
    world = with_window(World())
    at(world, "10:30")
    assert len(world.under_way("round")) == 1
    world.edit("an argument of ours", lambda spec: spec["engine"]["args"].append("--port=1"))
    assert world.condition("Stalled") == "True InvalidSpec"
    assert min(filter(None, world.wakes.values())) <= parse_time("2026-11-21T11:30:00Z")
    at(world, "11:31")
    assert len(world.under_way("round")) == 1, "it is measured to its end"
    world.round_ends()
    assert world.under_way("round") == []
    world.edit("it is taken back", lambda spec: spec["engine"]["args"].remove("--port=1"))
    assert world.condition("Measuring") == "False WaitingForWindow"
