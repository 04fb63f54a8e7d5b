"""Every change of what serves has a line, once, whoever or whatever asked for it."""

from datetime import timedelta

from tests.plan.test_earned import SLOWER, longer
from tests.plan.test_requests import RETRY, held
from tests.support.down import NAME, at_once
from tests.support.edits_of_specs import in_production
from tests.support.stories import measuring
from tests.support.world import World

from paceline.api.status import MOST_CHANGES


def kinds(world: World) -> list[str]:
    return [change["reason"] for change in world.pool("latency")["history"]]


def test_a_promotion_has_its_evidence_and_its_speed() -> None:
    world = in_production("latency")
    latest, first = world.pool("latency")["history"]
    (run,) = world.runs("latency")
    assert latest.keys() == {"time", "revision", "arm", "reason", "message", "evidence"}
    assert (latest["reason"], latest["arm"]) == ("Promoted", "wide")
    assert latest["evidence"] == {"run": run["metadata"]["name"], "speedup": "1.3650", "caveats": ["Emulated"]}
    assert latest["time"] == world.pool("latency")["serving"]["startTime"]
    assert first.keys() == {"time", "revision", "arm", "reason", "message"}
    assert (first["reason"], first["arm"]) == ("Started", "baseline")


def test_a_verdict_that_rejects_demotes_and_another_server_updates() -> None:
    world = in_production("latency")
    world.edit("longer answers", longer)
    while world.under_way("round"):
        world.round_ends(truth=SLOWER)
    world.servers_ready()
    world.edit("another image", at_once("another"))
    world.servers_ready()
    assert kinds(world) == ["Updated", "Demoted", "Promoted", "Started"]


def test_a_candidate_that_never_came_up_is_told_and_so_is_who_tried_again() -> None:
    world = World()
    held(world)
    assert kinds(world) == ["TakenDown", "Started"]
    world.annotate(RETRY, "monday")
    world.servers_ready()
    latest = world.pool("latency")["history"][0]
    assert (latest["reason"], latest["request"]) == ("Promoted", "retry=monday")


def test_a_person_who_promotes_is_named() -> None:
    world = in_production("latency", "Manual")
    latest, _ = world.pool("latency")["history"]
    assert latest["request"].startswith("promote=")


def test_a_spec_that_cannot_be_read_keeps_it() -> None:
    world = in_production("latency")
    before = world.pool("latency")["history"]
    good = world.spec()["target"]
    world.edit("nonsense", lambda spec: spec.update(target={"nonsense": 1}))
    assert world.pool("latency")["history"] == before
    world.edit("the old target", lambda spec: spec.update(target=good))
    world.servers_ready()
    assert world.pool("latency")["history"] == before


def test_servers_that_are_lost_and_come_back_change_nothing() -> None:
    world = in_production("latency")
    before = world.pool("latency")["history"]
    world.server_lost("latency")
    world.servers_ready()
    assert world.pool("latency")["history"] == before


def test_it_is_bounded_and_the_oldest_goes() -> None:
    world = in_production("latency")
    for number in range(MOST_CHANGES + 2):
        world.edit(f"image {number}", at_once(f"{number}"))
        world.servers_ready()
    assert kinds(world) == ["Updated"] * MOST_CHANGES


def test_a_leader_whose_clock_was_ahead_leaves_no_line_for_every_pass() -> None:
    """It has chosen wide; the next leader sees wide's servers ready at a time before that."""
    world = World()
    measuring(world, "latency")
    world.round_ends()
    world.round_ends()
    world.cluster.now += timedelta(minutes=10)
    world.round_ends()
    world.cluster.now -= timedelta(minutes=10)
    world.servers_ready()
    world.wait(1)
    assert kinds(world) == ["Promoted", "Started"]
    assert world.serving("latency") == "wide"
    assert world.plan(("SpeculativeDeployment", NAME)).watched.keys() == {"latency"}
