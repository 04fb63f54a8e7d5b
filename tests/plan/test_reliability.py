"""A candidate whose own server ends, in one pool's run (as test_stories)."""

from tests.support.answers import died, half_failed, out_of_memory
from tests.support.stories import measuring, told
from tests.support.world import World


def verdict(world: World) -> tuple[str, str]:
    said = world.runs("latency")[-1]["status"]["verdict"]
    return said["outcome"], said["reason"]


@told
def test_a_candidates_server_ends_in_every_other_round(world: World) -> None:
    """Fast as it is in the rounds between: it is not put live, and not measured again."""
    measuring(world, "latency")
    for spoiled in ({"wide": died}, {}, {"wide": died}):
        world.round_ends(**spoiled)
    assert verdict(world) == ("Reject", "Unreliable")
    assert "round 1 (ServerCrashed), round 3 (ServerCrashed)" in world.message("Promoted")
    assert not world.under_way("round")
    assert world.serving("latency") == "baseline"


def test_it_ends_once() -> None:
    """Which may be luck; the verdict says it."""
    world = World()
    measuring(world, "latency")
    world.round_ends(wide=out_of_memory)
    for _ in range(3):
        world.round_ends()
    assert verdict(world)[0] == "Promote"
    (said,) = world.runs("latency")[-1]["status"]["armVerdicts"]
    assert "(OutOfMemory)" in said["reason"]


def test_requests_to_it_fail_in_every_other_round() -> None:
    """Its server lives. One such round may be the client's doing; two, beside a baseline that answered all, are not."""
    world = World()
    measuring(world, "latency")
    for spoiled in ({"wide": half_failed}, {}, {"wide": half_failed}):
        world.round_ends(**spoiled)
    assert verdict(world) == ("Reject", "Unreliable")
    assert "round 1 (RequestsFailed), round 3 (RequestsFailed)" in world.message("Promoted")


def test_where_requests_to_the_baseline_fail_as_often_it_is_not_held_against_it() -> None:
    world = World()
    measuring(world, "latency")
    for spoiled in ({"baseline": half_failed}, {"wide": half_failed}, {}, {"wide": half_failed}, {}, {}):
        world.round_ends(**spoiled)
    assert verdict(world)[0] == "Promote"


def test_next_to_a_baseline_that_died_too_nobody_is_blamed() -> None:
    world = World()
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends(wide=died, baseline=died)
        world.round_ends()
    world.round_ends()
    assert verdict(world)[0] == "Promote"
