"""A person ends what is under way, and it stays ended."""

import pytest
from tests.plan.test_earned import longer
from tests.support.answers import half_failed
from tests.support.down import another_image, hold
from tests.support.edits_of_specs import BETTER, added, in_production, loosened
from tests.support.messages import Says
from tests.support.runs import made_by
from tests.support.stories import measuring, promoted, told
from tests.support.world import World

KEY, RETRY = "abort.paceline.dev/latency", "retry.paceline.dev/latency"


def aborted() -> World:
    """In the second round of the first run."""
    world = World()
    measuring(world, "latency")
    world.round_ends()
    world.annotate(KEY, "monday")
    return world


@told
def test_a_person_aborts_a_run(world: World) -> None:
    """Its round ends, no other begins; a retry measures anew."""
    measuring(world, "latency")
    world.round_ends()
    world.annotate(KEY, "monday")
    world.wait(24 * 60)
    world.annotate(RETRY, "tuesday")
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_the_run_ends_and_no_other_begins() -> None:
    world = aborted()
    (run,) = world.runs("latency")
    assert world.condition("Failed", run) == "True Aborted"
    assert world.memory("latency")["handled"] == {"abort": "monday"}
    assert (world.condition("Measuring"), world.condition("Decided")) == ("False Held", "False Held")
    assert (world.condition("Promoted"), world.condition("Ready")) == ("False Held", "True Serving")
    assert "annotate retry.paceline.dev/latency=TOKEN" in world.message("Decided")
    world.wait(24 * 60)
    assert (world.under_way("round"), len(world.runs("latency"))) == ([], 1)


def test_retry_measures_anew_and_uses_no_round_of_it() -> None:
    """Who aborts and asks again doubts what was measured."""
    world = aborted()
    world.annotate(RETRY, "tuesday")
    _, second = world.runs("latency")
    assert made_by(second) == {"attempt": "2", "trigger": "Retry", "token": "tuesday"}
    assert "roundsOf" not in second["spec"]["gate"]
    assert "holds" not in world.pool("latency")


def test_another_question_is_measured() -> None:
    world = aborted()
    world.edit("longer answers", longer)
    assert len(world.under_way("round")) == 1
    assert "holds" not in world.pool("latency")


def test_another_gate_asks_for_no_run() -> None:
    world = aborted()
    world.edit("a looser gate", loosened)
    assert (world.under_way("round"), len(world.runs("latency"))) == ([], 1)


def test_a_candidate_that_is_rolled_out_gives_way_to_the_baseline() -> None:
    world = World()
    measuring(world, "latency")
    for _ in range(3):
        world.round_ends()
    assert world.memory("latency")["target"]["arm"] == "wide"
    world.annotate(KEY, "monday")
    world.servers_ready()
    entry = world.pool("latency")
    assert (entry["serving"]["arm"], entry["holds"][0]["reason"], entry["holds"][0]["arm"]) == (
        "baseline",
        "Aborted",
        "wide",
    )
    assert (entry["history"][0]["reason"], world.condition("Promoted")) == ("Aborted", "False Held")
    world.wait(24 * 60)
    assert world.serving("latency") == "baseline"
    ((key, value),) = world.requests("promote")
    world.annotate(key, value)
    world.servers_ready()
    assert (world.serving("latency"), len(world.runs("latency"))) == ("wide", 1)


def test_it_gives_way_to_what_was_promoted_before() -> None:
    """The baseline is not what served."""
    world = in_production("latency")
    world.edit("another candidate", added)
    while world.under_way("round"):
        world.round_ends(truth=BETTER)
    assert world.memory("latency")["target"]["arm"] == "narrow"
    world.annotate(KEY, "monday")
    world.servers_ready()
    assert (world.serving("latency"), world.pool("latency")["holds"][0]["arm"]) == ("wide", "narrow")
    assert world.condition("Promoted") == "True StillPromoted"
    world.annotate(RETRY, "tuesday")
    world.servers_ready()
    assert world.serving("latency") == "narrow"


def test_a_second_one_does_not_undo_the_way_back_of_the_first(says: Says) -> None:
    """What serves on would be held, and its roll-out, which nobody has begun, undone."""
    world = in_production("latency")
    world.edit("in place", lambda spec: spec.update(promotion={"surge": "Never"}))
    world.edit("another candidate", added)
    while world.under_way("round"):
        world.round_ends(truth=BETTER)
    world.annotate(KEY, "monday")
    world.annotate(KEY, "again")
    entry = world.pool("latency")
    assert (entry["internal"]["target"]["arm"], entry["holds"][0]["arm"], entry["internal"]["handled"]["abort"]) == (
        "wide",
        "narrow",
        "again",
    )
    says(*world.told[-1].events)
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_that_it_was_carried_out_is_told_beside_a_rollback_that_came_with_it() -> None:
    """The hold is the second one's; so only that would be known of what the first has ended."""
    world = in_production("latency")
    world.edit("another candidate", added)
    (deployed,) = world.cluster.of("SpeculativeDeployment")
    deployed["metadata"]["annotations"] = {KEY: "both", "rollback.paceline.dev/latency": "both"}
    world.settle("a person asks for two things at once", 0)
    (event,) = (event for one in world.told for event in one.events if "abort=both" in event)
    assert "rollback=both" in event


def test_the_way_back_from_a_baseline_that_does_not_run_is_not_undone() -> None:
    world = in_production("latency")
    world.edit("in place", lambda spec: spec.update(promotion={"surge": "Never"}))
    world.edit("another image", another_image)
    world.server_exits("latency", 2, "error: bad image")
    target = world.memory("latency")["target"]
    assert (target["arm"], target["reason"]) == ("wide", "TakenDown")
    world.annotate(KEY, "monday")
    entry = world.pool("latency")
    assert (entry["internal"]["target"]["arm"], entry["holds"][0]["reason"], entry["holds"][0]["arm"]) == (
        "wide",
        "NotReady",
        "baseline",
    )
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_with_nothing_under_way_it_is_handled_all_the_same(says: Says) -> None:
    """It does not lie in wait for the next run."""
    world = World()
    promoted(world, "latency")
    world.annotate(KEY, "monday")
    assert world.memory("latency")["handled"] == {"abort": "monday"}
    assert "holds" not in world.pool("latency")
    says(*(event for one in world.told for event in one.events if "abort=monday" in event))
    world.edit("longer answers", longer)
    assert len(world.under_way("round")) == 1


def test_a_run_that_rests_while_suspended_ends() -> None:
    world = World()
    measuring(world, "latency")
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.annotate(KEY, "monday")
    (run,) = world.runs("latency")
    assert world.condition("Failed", run) == "True Aborted"
    world.edit("resume", lambda spec: spec.update(suspend=False))
    world.wait(60)
    assert (world.under_way("round"), len(world.runs("latency"))) == ([], 1)


def test_a_crash_between_status_and_actions_ends_it_all_the_same() -> None:
    world = World()
    measuring(world, "latency")
    world.crash = lambda actions: ()
    with pytest.raises(AssertionError, match="never come to rest"):
        world.annotate(KEY, "monday")
    world.crash = lambda actions: actions
    world.settle("the operator lives", 0)
    (run,) = world.runs("latency")
    assert (world.condition("Failed", run), world.under_way("round")) == ("True Aborted", [])


def test_a_candidate_that_crashes_meanwhile_gives_way_and_nothing_is_measured() -> None:
    """The hold of the question outlives what happens to the servers."""
    world = in_production("latency")
    world.edit("longer answers", longer)
    world.annotate(KEY, "monday")
    world.server_exits("latency", 2, "error")
    world.servers_ready()
    assert (world.serving("latency"), hold(world)) == ("baseline", "Crashed, Aborted")
    world.wait(24 * 60)
    assert world.under_way("round") == []


def test_a_run_in_whose_place_another_is_asked_for_does_not_go_on() -> None:
    """Both came before the operator had acted on the first."""
    world = World()
    measuring(world, "latency")
    world.round_ends(wide=half_failed)
    world.away = True
    world.annotate(KEY, "monday")
    world.away = False
    world.annotate(RETRY, "monday")
    assert [world.condition("Failed", run)[:4] for run in world.runs("latency")] == ["True", ""]
