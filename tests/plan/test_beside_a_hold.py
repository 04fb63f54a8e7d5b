"""The guard takes off what a person's request had left or promoted: their hold stays, and who is on call is told."""

from tests.plan.test_earned import longer, reshaped
from tests.support.down import NAME, RETRY, arm, hold
from tests.support.edits_of_specs import BETTER, added, in_production
from tests.support.guard import DAY, dropped, guarded, holds, hung, judged, promoted_anyway
from tests.support.messages import Says
from tests.support.stories import measured
from tests.support.world import World

from paceline.watch import JudgementKind

ROLLBACK = "rollback.paceline.dev/latency"


def warnings(world: World) -> list[str]:
    return [event for one in world.told for event in one.events if event.startswith("Warning")]


def rolled_back() -> World:
    """Narrow had replaced wide, and a person has gone back to wide."""
    world = in_production("latency")
    world.edit("guard", lambda spec: spec.update(guard={"action": "Fallback"}))
    world.edit("another candidate", added)
    while world.under_way("round"):
        world.round_ends(truth=BETTER)
    world.servers_ready()
    world.annotate(ROLLBACK, "@monday")
    world.servers_ready()
    assert (world.serving("latency"), hold(world)) == ("wide", "RolledBack")
    world.told.clear()
    return world


def test_what_a_person_went_back_to_stops_paying(says: Says) -> None:
    world = rolled_back()
    wide = world.pool("latency")["serving"]["revision"]
    dropped(world)
    world.servers_ready()
    assert (world.serving("latency"), hold(world)) == ("baseline", "Fallback, RolledBack")
    assert world.condition("SpeculationDegraded") == "True FellBack"
    says(world.message("SpeculationDegraded"), *warnings(world))
    (warning,) = warnings(world)
    assert wide in warning

    world.edit("an argument of ours", lambda spec: spec["engine"]["args"].append("--port=1"))
    assert world.condition("SpeculationDegraded") == "True FellBack"
    world.edit("none of ours", lambda spec: spec["engine"]["args"].pop())
    world.annotate(RETRY, "tuesday")
    world.servers_ready()
    assert (world.serving("latency"), world.condition("SpeculationDegraded")) == ("narrow", "")


def test_another_rollback_does_not_bring_back_what_stopped_paying() -> None:
    world = rolled_back()
    dropped(world)
    world.servers_ready()
    world.annotate(ROLLBACK, "@tuesday")
    world.servers_ready()
    assert (world.serving("latency"), world.status().get("refused")) == ("baseline", None)


def test_two_that_stopped_paying_do_not_take_turns() -> None:
    """Narrow fell, a person went back to wide, which stops paying as well. `retry` releases all, and both are held
    again once neither pays."""
    world = rolled_back()
    wide = world.pool("latency")["serving"]["revision"]
    world.annotate(RETRY, "tuesday")
    world.servers_ready()
    assert world.serving("latency") == "narrow"
    dropped(world)
    world.servers_ready()
    world.annotate(ROLLBACK, f"{wide}@wednesday")
    world.servers_ready()
    dropped(world)
    world.annotate(RETRY, "thursday")
    world.servers_ready()
    assert world.serving("latency") == "narrow"
    dropped(world)
    world.servers_ready()
    assert (world.serving("latency"), hold(world)) == ("baseline", "Fallback")
    world.wait(DAY)
    assert len(holds(world)) == 0, "the second time in a row"
    world.wait(DAY)
    assert len(holds(world)) == 1


def test_what_a_person_went_back_to_does_not_run() -> None:
    world = rolled_back()
    world.server_exits("latency", 1, "error")
    world.wait(60)
    world.servers_ready()
    assert (world.serving("latency"), hold(world), world.condition("SpeculationDegraded")) == (
        "baseline",
        "Crashed, RolledBack",
        "",
    )
    (warning,) = (warning for warning in warnings(world) if "is no longer served" in warning)
    assert warning.startswith("Warning Crashed: ")


def test_what_serves_beside_an_aborted_run_stops_paying() -> None:
    world = guarded()
    world.edit("longer answers", longer)
    world.annotate("abort.paceline.dev/latency", "monday")
    dropped(world)
    assert (arm(world), hold(world), world.condition("SpeculationDegraded")) == (
        "baseline",
        "Fallback, Aborted",
        "True FellBack",
    )


def test_what_a_person_promoted_beside_a_held_candidate_stops_paying(says: Says) -> None:
    """Both are told, and what the baseline serves for is the last."""
    world = promoted_anyway()
    hung(world)
    world.servers_ready()
    assert (world.serving("latency"), hold(world)) == ("baseline", "Fallback, Fallback")
    said = world.message("SpeculationDegraded")
    assert [reason in said for reason in ("AcceptanceDropped", "Hung")] == [True, True]
    says(said)
    assert "Hung" in world.memory("latency")["target"]["message"]
    assert [warning.partition(":")[0] for warning in warnings(world)] == ["Warning FellBack"]


def test_how_often_one_candidate_was_taken_down_is_not_forgotten_for_another() -> None:
    """Wide was held first: it is measured again after a day, whatever becomes of narrow, then after two."""
    world = promoted_anyway()
    hung(world)
    world.servers_ready()
    entry = world.pool("latency")
    assert [one["arm"] for one in entry["internal"]["takenDown"]] == ["narrow", "wide"]
    world.wait(DAY)
    assert len(holds(world)) == 1
    measured(world)
    assert world.serving("latency") == "wide"
    dropped(world)
    world.servers_ready()
    assert tuple(world.memory("latency")["takenDown"][0][name] for name in ("arm", "times")) == ("wide", 2)


def test_a_shape_that_serves_until_another_is_decided_stops_paying() -> None:
    """It is held like any other, although the spec no longer renders it; the new one is promoted by its own rounds."""
    world = guarded()
    old = world.pool("latency")["serving"]["revision"]
    world.edit("numDraftTokens 7", reshaped)
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True StillPromoted")
    dropped(world)
    world.servers_ready()
    entry = world.pool("latency")
    assert (entry["holds"][0]["reason"], entry["holds"][0]["revision"]) == ("Fallback", old)
    assert (entry["internal"]["target"]["reason"], entry["history"][0]["reason"]) == ("Fallback", "Fallback")
    assert world.condition("SpeculationDegraded") == "True FellBack"
    assert [warning.partition(":")[0] for warning in warnings(world)] == ["Warning FellBack"]

    judged(world, JudgementKind.AS_EXPECTED)
    assert world.condition("SpeculationDegraded") == "True FellBack"
    measured(world)
    assert (world.serving("latency"), hold(world), world.condition("SpeculationDegraded")) == ("wide", None, "")
    assert world.pool("latency")["serving"]["revision"] != old


def test_its_hold_ends_with_the_question() -> None:
    world = guarded()
    world.edit("numDraftTokens 7", reshaped)
    dropped(world)
    world.servers_ready()
    assert hold(world) == "Fallback"
    world.edit("longer answers", longer)
    assert (hold(world), world.condition("SpeculationDegraded")) == (None, "")
    assert world.plan(("SpeculativeDeployment", NAME)).watched.keys() == {"latency"}


def test_what_a_person_went_back_to_from_the_baseline_stays_and_says_why(says: Says) -> None:
    world = guarded()
    wide = world.pool("latency")["serving"]["revision"]
    for request in ("@monday", f"{wide}@tuesday"):
        world.annotate(ROLLBACK, request)
        world.servers_ready()
    dropped(world)
    assert (arm(world), world.condition("SpeculationDegraded")) == ("wide", "True AcceptanceDropped")
    said = world.message("SpeculationDegraded")
    says(said)
    assert f"annotate {RETRY}=TOKEN" in said
    world.annotate(RETRY, "wednesday")
    assert (arm(world), hold(world)) == ("baseline", "Fallback")
