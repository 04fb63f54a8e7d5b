"""A server that says what cannot be costs its arm, not the run: a status with such a thing in it would be refused, and
nobody would ever hear of the run again (every status of these stories is held against the schema)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.support.answers import Spoiled
from tests.support.stories import measuring
from tests.support.world import World

from paceline.evidence import Replicate
from paceline.evidence.result import Parts


def says(**of_server: Any) -> Spoiled:
    return lambda found: replace(found, **of_server)


def every_point(**numbers: Any) -> Spoiled:
    return lambda found: replace(found, points=tuple(replace(point, **numbers) for point in found.points))


@pytest.mark.parametrize(
    "odd",
    [
        says(kv_tokens=10**30),
        says(kv_tokens=-1),
        says(start_seconds=1e300),
        says(seconds=Parts(imports=-1.0, weights=1e300, graphs=5e-324, warm_up=0.0, loads=1e308, end=float("inf"))),
        says(exit_code=10**30, error="it ended"),
        every_point(verify_calls=-5),
        every_point(verify_calls=10**30),
        every_point(retractions=-1),
        every_point(accept_length=1e308),
        every_point(draft_tokens=5e-324),
        every_point(mean_ttft=1e-300),
        every_point(accepted_at=(0.5,) * 300),
        every_point(accepted_at=(1e308,)),
        every_point(output_tokens=10**30),
    ],
)
@pytest.mark.parametrize("arm", ["wide", "baseline"])
def test_a_server_says_what_cannot_be(arm: str, odd: Callable[[Replicate], Replicate]) -> None:
    world = World()
    measuring(world, "latency")
    for _ in range(8):
        if world.under_way("round"):
            world.round_ends(**{arm: odd})
    assert not world.under_way("round")
    assert world.outcome("latency") in ("Promote", "Reject", "Inconclusive", "Error")


def test_a_server_says_a_long_value() -> None:
    """Of an argument that is compared: the round is no evidence, and says so in as many words as fit."""
    world = World()
    measuring(world, "latency")
    world.round_ends(wide=lambda found: replace(found, resolved=found.resolved | {"model_path": "x" * 40_000}))
    (run,) = world.runs("latency")
    assert len(run["rounds"][0]["replicates"][1]["resolved"]["model_path"]) == 2048


def test_a_nodes_clock_was_put_back_while_a_round_ran() -> None:
    """The round is as long as nothing, and counts."""
    world = World()
    measuring(world, "latency")
    world.round_ends()
    (run,) = world.runs("latency")
    run["rounds"][0]["completionTime"] = "2025-11-21T10:00:00Z"
    world.settle("by a year", 0)
    (run,) = world.runs("latency")
    assert run["status"]["progress"]["secondsPerRound"] == 0
