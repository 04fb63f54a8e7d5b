"""Back to what has served: a person asks, nothing is measured for it, and it stays until somebody says otherwise."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.plan.test_earned import longer, served
from tests.support.down import OLD, at_once, hold
from tests.support.edits_of_specs import in_production, loosened
from tests.support.messages import Says
from tests.support.stories import measuring, promoted, told
from tests.support.world import World

KEY = "rollback.paceline.dev/latency"
PROMOTE, RETRY = "promote.paceline.dev/latency", "retry.paceline.dev/latency"


def revision(world: World) -> str:
    return str(world.memory("latency")["target"]["revision"])


def rolled_back() -> World:
    """From the winner to the baseline."""
    world = in_production("latency")
    world.annotate(KEY, "@monday")
    world.servers_ready()
    assert world.serving("latency") == "baseline"
    return world


def with_another_image() -> tuple[World, str]:
    """The winner's image was replaced, so the new baseline serves and a run has begun; and the winner's revision."""
    world = in_production("latency")
    wide = revision(world)
    world.edit("another image", at_once("another"))
    world.servers_ready()
    assert (world.serving("latency"), len(world.under_way("round"))) == ("baseline", 1)
    return world, wide


@told
def test_a_person_rolls_back(world: World) -> None:
    """To what served before; the verdict is what it is, and promotes nothing until the hold is released."""
    promoted(world, "latency")
    world.annotate(KEY, "@monday")
    world.servers_ready()
    world.wait(24 * 60)
    assert world.serving("latency") == "baseline"
    world.annotate(RETRY, "mended")
    world.servers_ready()
    assert world.serving("latency") == "wide"


def test_it_goes_back_to_what_served_before_and_measures_nothing() -> None:
    world = in_production("latency")
    wide = revision(world)
    world.annotate(KEY, "@monday")
    entry = world.pool("latency")
    assert entry["internal"]["handled"] == {"rollback": "@monday"}
    assert (entry["internal"]["target"]["arm"], entry["internal"]["target"]["reason"]) == ("baseline", "RolledBack")
    (held,) = entry["holds"]
    assert (held["reason"], held["revision"], held["arm"]) == ("RolledBack", wide, "wide")
    assert held["internal"]["request"] == "rollback=@monday"
    world.servers_ready()
    latest = world.pool("latency")["history"][0]
    assert (latest["arm"], latest["reason"], latest["request"]) == ("baseline", "RolledBack", "rollback=@monday")
    world.wait(24 * 60)
    assert (world.serving("latency"), len(world.runs("latency"))) == ("baseline", 1)


def test_a_revision_of_an_earlier_spec_serves_on_its_evidence() -> None:
    """Its arm is no arm of the spec any more; what is kept is its rendering. The run under way ends."""
    world, wide = with_another_image()
    world.annotate(KEY, f"{wide}@monday")
    world.servers_ready()
    assert served(world) == {wide}
    first, second = world.runs("latency")
    serving = world.pool("latency")["serving"]
    assert (serving["arm"], serving["evidence"]["run"]) == ("wide", first["metadata"]["name"])
    assert first["metadata"]["name"] in world.memory("latency")["target"]["message"]
    assert world.condition("Failed", second) == "True Aborted"
    assert "rollback=" in next(one["message"] for one in second["status"]["conditions"] if one["type"] == "Failed")
    assert (world.condition("Ready"), world.condition("Promoted")) == ("True Serving", "True StillPromoted")
    assert (world.condition("Measuring"), world.condition("Decided")) == ("False Held", "False Held")
    world.wait(24 * 60)
    assert (served(world), len(world.runs("latency"))) == ({wide}, 2)


def test_the_hold_says_how_to_get_out() -> None:
    world = rolled_back()
    assert world.condition("Promoted") == "False Held"
    message = world.message("Promoted")
    assert "RolledBack since" in message
    assert "retry.paceline.dev/latency=TOKEN" in message
    ((key, value),) = world.requests("promote")
    world.annotate(key, value)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True AllPromoted")


def test_another_revision_is_refused_with_those_that_can_be_had(says: Says) -> None:
    world, wide = with_another_image()
    world.annotate(KEY, "0123456789@monday")
    (said,) = world.status()["refused"]
    run = world.runs("latency")[0]["metadata"]["name"]
    assert f"write {wide}@TOKEN (wide; its evidence is {run} " in said
    says(said)
    assert "handled" not in world.memory("latency") or "rollback" not in world.memory("latency")["handled"]
    world.annotate(KEY, f"{wide}@monday")
    assert "refused" not in world.status()


def test_where_nothing_has_served_before_a_revision_is_refused(says: Says) -> None:
    world = World()
    measuring(world, "latency")
    world.annotate(KEY, "0123456789@monday")
    says(*world.status()["refused"])


@pytest.mark.parametrize("value", ["monday", "@monday"])
def test_where_nothing_has_served_before_it_is_handled_and_does_not_lie_in_wait(value: str, says: Says) -> None:
    """It would undo the first promotion."""
    world = World()
    measuring(world, "latency")
    world.annotate(KEY, value)
    assert ("refused" in world.status(), world.memory("latency")["handled"]) == (False, {"rollback": value})
    says(*(event for one in world.told for event in one.events if f"rollback={value}" in event))
    for _ in range(3):
        world.round_ends()
    world.servers_ready()
    assert (world.serving("latency"), "holds" in world.pool("latency")) == ("wide", False)


RELEASES: dict[str, Callable[[World], object]] = {
    "retry": lambda world: world.annotate(RETRY, "tuesday"),
    "promote": lambda world: world.annotate(PROMOTE, "@tuesday"),
}


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_the_winner_serves_again_once_a_person_has_released_it(release: Callable[[World], object]) -> None:
    world = rolled_back()
    release(world)
    assert "holds" not in world.pool("latency")
    world.servers_ready()
    assert (world.serving("latency"), len(world.runs("latency"))) == ("wide", 1)


def test_another_question_releases_it() -> None:
    world = rolled_back()
    world.edit("longer answers", longer)
    assert "holds" not in world.pool("latency")
    assert len(world.under_way("round")) == 1


def test_neither_another_gate_nor_its_verdict_does() -> None:
    """What was measured is the same."""
    world = rolled_back()
    world.edit("a looser gate", loosened)
    assert world.pool("latency")["holds"][0]["reason"] == "RolledBack"
    assert (world.serving("latency"), world.condition("Measuring")) == ("baseline", "False Held")


def test_a_second_one_does_not_go_forth_again() -> None:
    """Not to what a person has just gone back from, but to what served before both."""
    world, wide = with_another_image()
    world.annotate(KEY, "@monday")
    world.servers_ready()
    assert served(world) == {wide}
    world.annotate(KEY, "@tuesday")
    world.servers_ready()
    oldest = world.pool("latency")["history"][-1]
    assert (oldest["reason"], served(world)) == ("Started", {oldest["revision"]})
    assert world.pool("latency")["holds"][0]["revision"] == wide


def test_what_does_not_start_gives_way_to_the_baseline_and_the_hold_stays() -> None:
    """Without it the winner would be promoted again, from which a person went back."""
    world = in_production("latency")
    baseline = world.pool("latency")["history"][-1]["revision"]
    image = world.spec()["engine"]["image"]
    world.edit("another image", at_once("another"))
    world.servers_ready()
    world.edit("the old image", at_once(image))
    world.servers_ready()
    other = world.pool("latency")["history"][1]["revision"]
    world.annotate(KEY, f"{other}@monday")
    world.server_exits("latency", 2, "error: unrecognized arguments")
    world.servers_ready()
    assert served(world) == {baseline}
    assert world.pool("latency")["history"][0]["reason"] == "TakenDown"
    assert hold(world) == "NotReady, RolledBack"
    world.wait(24 * 60)
    assert served(world) == {baseline}


@pytest.mark.parametrize("surge", ["Auto", "Never"])
def test_the_baseline_takes_the_place_of_what_does_not_run_although_it_was_rolled_back_from(surge: str) -> None:
    """It ran. It is the spec's, and the hold stays."""
    world, wide = with_another_image()
    world.edit("surge", lambda spec: spec.update(promotion={"surge": surge}))
    was = revision(world)
    world.annotate(KEY, f"{wide}@monday")
    world.server_exits("latency", 2, "error: unrecognized arguments")
    world.servers_ready()
    world.wait(24 * 60)
    assert (served(world), hold(world)) == ({was}, "NotReady, RolledBack")
    assert "unrecognized arguments" in world.memory("latency")["target"]["message"]
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "")
    world.edit("an argument that is not allowed", lambda spec: spec["engine"].update(args=["--host=1"]))
    assert served(world) == {was}


def test_that_baseline_is_served_also_if_the_spec_becomes_invalid() -> None:
    """And not again what did not run."""
    world, wide = with_another_image()
    was = revision(world)
    world.annotate(KEY, f"{wide}@monday")
    world.servers_ready()
    assert served(world) == {wide}
    world.server_exits("latency", 2, "error: unrecognized arguments")
    assert revision(world) == was
    world.edit("an argument that is not allowed", lambda spec: spec["engine"].update(args=["--host=1"]))
    world.servers_ready()
    assert served(world) == {was}


def test_an_image_that_is_gone_takes_nothing_down() -> None:
    world, wide = with_another_image()
    world.cluster.pulling[OLD] = {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}
    world.annotate(KEY, f"{wide}@monday")
    world.wait(24 * 60)
    assert (world.condition("Ready"), world.condition("Stalled")) == ("True Serving", "True ImageNotPulled")
    assert world.cluster.of("Deployment")[0]["spec"]["template"]["spec"]["containers"][0]["image"] == "another"
    world.cluster.pulling.clear()
    world.wait(0)
    world.servers_ready()
    assert served(world) == {wide}


def test_it_does_not_wait_while_suspended() -> None:
    world = in_production("latency")
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.annotate(KEY, "@monday")
    world.servers_ready()
    assert world.serving("latency") == "baseline"
    world.edit("resume", lambda spec: spec.update(suspend=False))
    world.servers_ready()
    assert world.serving("latency") == "baseline"


def test_a_crash_between_status_and_actions_goes_back_once() -> None:
    world = in_production("latency")
    world.crash = lambda actions: ()
    with pytest.raises(AssertionError, match="never come to rest"):
        world.annotate(KEY, "@monday")
    world.crash = lambda actions: actions
    world.settle("the operator lives", 0)
    world.servers_ready()
    kinds = [change["reason"] for change in world.pool("latency")["history"]]
    assert (world.serving("latency"), kinds) == ("baseline", ["RolledBack", "Promoted", "Started"])


def test_what_served_last_is_kept_longest() -> None:
    """Of revisions beyond the limit those go first that have not served for longest."""
    world = in_production("latency")
    wide = revision(world)

    def limit(spec: dict[str, Any]) -> None:
        spec["promotion"]["revisionHistoryLimit"] = 1

    world.edit("one revision is kept", limit)
    for image in ("a", "b"):
        world.edit(f"image {image}", at_once(image))
        world.servers_ready()
    world.annotate(KEY, f"{wide}@monday")
    assert wide in world.status()["refused"][0]
    world.annotate(KEY, "@monday")
    world.servers_ready()
    assert world.pool("latency")["serving"]["revision"] == world.pool("latency")["history"][2]["revision"]


def test_a_pool_that_waits_for_its_verdict_is_served_what_a_person_went_back_to() -> None:
    """`untilDecided: Nothing` is about a baseline that nobody has asked for."""
    world = in_production("latency")

    def nothing(spec: dict[str, Any]) -> None:
        spec["promotion"]["untilDecided"] = "Nothing"
        at_once("another")(spec)

    world.edit("another image, and nothing until it is decided", nothing)
    assert world.pool("latency")["history"][0]["reason"] == "Stopped"
    oldest = world.pool("latency")["history"][-1]
    assert oldest["arm"] == "baseline"
    world.annotate(KEY, f"{oldest['revision']}@monday")
    world.servers_ready()
    assert served(world) == {oldest["revision"]}
