"""What a later edit, a crash, a lost status or a request does beside a changed spec: none lets a rejected one through.

As test_stories."""

from tests.plan.test_changes import NEXT, by, moved, revisions, rounds, upgraded
from tests.support.campaigns import BASELINE_1, LATENCY
from tests.support.guard import dropped, guarded
from tests.support.stories import promoted
from tests.support.world import World, example


def rejected(world: World, **promotion: str) -> None:
    """`wide` serves on the old image; half as fast a release was rejected."""
    guarded(world=world)
    world.edit("promotion", lambda spec: spec.update(promotion=promotion))
    world.edit("another release", upgraded)
    rounds(world, by(0.5))
    assert world.condition("ChangePending") == "True Rejected"


def images(world: World) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in world.cluster.of("Pod", component="server")}


def test_what_was_moved_still_has_a_baseline_of_its_own() -> None:
    """Its record says what serves, not what the spec asks for."""
    world = World()
    rejected(world)
    world.edit("another place", moved)
    world.servers_ready()
    rounds(world, by(0.5))
    dropped(world)
    world.servers_ready()
    assert (world.serving("latency"), images(world) & {NEXT}) == ("baseline", set())


def test_a_lost_status_lets_no_rejected_change_through() -> None:
    world = World()
    rejected(world)
    before = revisions(world)
    world._deployed().pop("status")
    world.settle("its status is lost", 1)
    assert (revisions(world), world.memory("latency")["target"]["revision"]) == (before, *before)


def test_a_crash_lets_no_rejected_change_through() -> None:
    """Its own baseline takes the place of what serves."""
    world = World()
    rejected(world)
    world.server_loops("latency", 1, "draft: CUDA error")
    world.servers_ready()
    assert (world.memory("latency")["target"]["arm"], images(world) & {NEXT}) == ("baseline", set())


def test_after_a_rollback_only_the_verdict_that_was_undone_stands() -> None:
    """And not one that an older question has beside another incumbent."""
    world = World()
    promoted(world, "latency")
    for release in (1, 2):
        world.edit(f"release {release}", lambda spec, release=release: spec["engine"].update(image=f"sglang:{release}"))
        rounds(world, by(1.2))
        world.servers_ready()
    world.edit("release 3", lambda spec: spec["engine"].update(image="sglang:3"))
    rounds(world, by(1.2))
    world.servers_ready()
    world.annotate("rollback.paceline.dev/latency", "@monday")
    world.servers_ready()
    assert images(world) == {"sglang:2"}
    world.edit("release 1", lambda spec: spec["engine"].update(image="sglang:1"))
    assert (images(world), world.condition("ChangePending")) == ({"sglang:2"}, "True Measuring")


def test_by_hand_the_new_baseline_is_no_way_back_from_what_serves() -> None:
    """Nothing asks for it, and a request for it is refused."""
    world = World()
    rejected(world, mode="Manual")
    assert world.requests("promote") == []
    (baseline,) = (value.partition("@")[0] for _, value in world.requests("promote-anyway"))
    world.annotate("promote.paceline.dev/latency", f"{baseline}@monday")
    assert "no winner waits" in world.status()["refused"][0] or "waits to be served" in world.status()["refused"][0]
    assert world.serving("latency") == "wide"


def test_what_serves_until_it_is_decided_serves_on_beside_a_change() -> None:
    """`untilDecided: Nothing` is about a pool that has not been decided."""
    world, manifest = World(), example("latency")
    manifest["spec"]["promotion"] = {"untilDecided": "Nothing"}
    world.apply(manifest)
    world.prefetch_ends()
    rounds(world, {"baseline": BASELINE_1, "wide": {w: 0.9 * speed for w, speed in BASELINE_1.items()}})
    world.servers_ready()
    before = revisions(world)
    world.edit("another release", upgraded)
    assert before
    assert (revisions(world), world.condition("ChangePending")) == (before, "True Measuring")


def test_a_move_that_does_not_run_comes_back_beside_a_rejected_change() -> None:
    world = World()
    rejected(world, surge="Never")
    before = revisions(world)
    world.edit("another place", moved)
    world.server_loops("latency", 1, "no such device")
    world.servers_ready()
    assert (world.serving("latency"), revisions(world)) == ("wide", before)


def test_a_variable_less_restarts_nothing() -> None:
    """What serves keeps the order of its variables."""
    world, manifest = World(), example("latency")
    manifest["spec"]["engine"]["env"] = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    rounds(world, LATENCY)
    world.servers_ready()
    before = revisions(world)
    world.edit("without A", lambda spec: spec["engine"]["env"].pop(0))
    assert (revisions(world), world.condition("ChangePending")) == (before, "True Measuring")


def test_a_change_that_is_taken_back_in_its_roll_out_goes_no_further() -> None:
    world = World()
    promoted(world, "latency")
    before = revisions(world)
    world.edit("another release", upgraded)
    rounds(world, by(1.08))
    assert world.condition("Reconciling") == "True RollingOut"
    world.edit("taken back", lambda spec: spec.update(example("latency")["spec"]))
    world.servers_ready()
    assert (world.serving("latency"), revisions(world), world.condition("ChangePending")) == ("wide", before, "")


def test_a_winner_that_does_not_start_is_told_with_its_own_way_out() -> None:
    world = World()
    promoted(world, "latency")
    before = revisions(world)
    world.edit("another release", upgraded)
    rounds(world, by(1.08))
    world.server_loops("latency", 1, "no such symbol")
    world.wait(75)
    world.servers_ready()
    assert (revisions(world), world.condition("ChangePending")) == (before, "True Rejected")
    assert "retry.paceline.dev/latency" in world.message("ChangePending")


def test_while_suspended_a_person_lets_the_changed_baseline_through_and_nothing_else() -> None:
    world = World()
    rejected(world)
    before = revisions(world)
    world.edit("suspended, and again another release", lambda spec: (upgraded(spec), spec.update(suspend=True)))
    assert revisions(world) == before
    world.annotate("promote-anyway.paceline.dev/latency", "nonsense@monday")
    valid = world.status()["refused"][0]
    baseline = valid.partition("write ")[2].partition("@")[0]
    world.annotate("promote-anyway.paceline.dev/latency", f"{baseline}@tuesday")
    world.servers_ready()
    assert (world.serving("latency"), images(world)) == ("baseline", {NEXT})


def test_a_person_stops_the_roll_out_of_an_accepted_baseline() -> None:
    """What served before comes back, and nothing more is measured."""
    world = World()
    promoted(world, "latency")
    before = revisions(world)
    world.edit("another release", upgraded)
    rounds(world, {**by(0.5), "baseline": {w: 1.2 * speed for w, speed in by(1.0)["incumbent"].items()}})
    assert (world.memory("latency")["target"]["arm"], world.serving("latency")) == ("baseline", "wide")
    world.annotate("abort.paceline.dev/latency", "monday")
    world.servers_ready()
    assert (world.serving("latency"), revisions(world)) == ("wide", before)
    assert not world.under_way("round")
