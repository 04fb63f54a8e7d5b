"""What people and crashes do after a changed spec was decided, and what an earlier change leaves behind.

As test_stories."""

from dataclasses import replace

import pytest
from tests.plan.test_changed_answers import fewer_bits
from tests.plan.test_changes import NEXT, by, revisions, rounds, upgraded
from tests.plan.test_rejected_changes import images
from tests.plan.test_search_edits import POOL, SMALL, Fixed, ended
from tests.support.answers import _points, died, otherwise
from tests.support.campaigns import BASELINE_1, LATENCY
from tests.support.imported import allow, apply, file
from tests.support.searched import answered, begun, searching
from tests.support.stories import promoted
from tests.support.world import World, example

from paceline.core import purpose_of
from paceline.evidence import Replicate

SEARCHED = "sglang:v0.5.24"


def slow_first(found: Replicate) -> Replicate:
    return _points(found, lambda point: replace(point, mean_ttft=0.06, p95_ttft=0.06))


def baseline_let_through(world: World) -> None:
    """By its revision, which a request that cannot be carried out is told."""
    world.annotate("promote-anyway.paceline.dev/latency", "nonsense@monday")
    revision = world.status()["refused"][0].partition("write ")[2].partition("@")[0]
    world.annotate("promote-anyway.paceline.dev/latency", f"{revision}@tuesday")
    world.servers_ready()
    world.servers_ready()


def small_losses(world: World, *releases: int) -> None:
    promoted(world, "latency")
    for release in releases:
        world.edit(f"release {release}", lambda spec, release=release: spec["engine"].update(image=f"sglang:{release}"))
        rounds(world, by(0.98))
        world.servers_ready()


def none_found(incumbent: float) -> tuple[World, str]:
    """A pool that searches; on the new release no tree is faster than its baseline, which is beside what serves."""
    world = begun(searching(POOL, **SMALL))
    ended(world, Fixed())
    served = world.serving(POOL)
    world.edit("another release", lambda spec: spec["engine"].update(version="0.5.24", image=SEARCHED))
    trees = [arm["name"] for arm in world.runs(POOL)[-1]["spec"]["arms"][1:]]
    slow = Fixed(**{name.replace("-", "_"): 0.8 for name in trees}, incumbent=incumbent)
    while world.under_way("round"):
        answered(world, {POOL: slow})
    return world, served


def test_a_failed_incumbent_lets_its_own_change_through_and_no_later_one() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    for _ in range(2):
        world.round_ends(truth=by(1.0), incumbent=died)
    world.servers_ready()
    assert images(world) == {NEXT}
    world.edit("taken back", lambda spec: spec.update(example("latency")["spec"]))
    rounds(world, {**LATENCY, "incumbent": BASELINE_1})
    world.servers_ready()
    world.edit("the next release", lambda spec: spec["engine"].update(version="0.5.25", image="sglang:v0.5.25"))
    assert (world.condition("ChangePending"), "sglang:v0.5.25" in images(world)) == ("True Measuring", False)


def test_a_crash_serves_nothing_that_waits_for_a_person() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("fewer bits", fewer_bits)
    rounds(world, by(1.3), incumbent=otherwise)
    world.server_loops("latency", 1, "draft: CUDA error")
    world.servers_ready()
    assert "fp8" not in str(world.cluster.of("Pod", component="server"))


def test_a_crash_beside_a_search_lets_no_rejected_change_through() -> None:
    world, _ = none_found(incumbent=2.0)
    assert world.condition("ChangePending") == "True Rejected"
    world.server_loops(POOL, 1, "draft: CUDA error")
    world.servers_ready()
    assert SEARCHED not in images(world)


def test_a_person_takes_the_new_baseline_because_the_candidate_answers_otherwise() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(1.1), wide=otherwise)
    baseline_let_through(world)
    assert (world.serving("latency"), images(world)) == ("baseline", {NEXT})


def test_so_they_do_where_small_losses_have_added_up() -> None:
    world = World()
    small_losses(world, 1, 2)
    baseline_let_through(world)
    assert (world.serving("latency"), images(world)) == ("baseline", {"sglang:2"})


def test_losses_that_a_person_has_accepted_or_rolled_back_count_no_more() -> None:
    world = World()
    small_losses(world, 1, 2)
    (request,) = world.requests("promote")
    world.annotate(*request)
    world.servers_ready()
    world.edit("release 3", lambda spec: spec["engine"].update(image="sglang:3"))
    rounds(world, by(0.99))
    world.servers_ready()
    assert world.condition("ChangePending") == ""
    world.annotate("rollback.paceline.dev/latency", "@monday")
    world.servers_ready()
    assert "keptSpeed" not in world.memory("latency")


def test_candidates_that_the_incumbent_kept_back_by_a_limit_are_judged_without_it() -> None:
    """Once a person has let the new baseline through, by the rounds that are there."""
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(1.0), wide=slow_first)
    assert world.condition("ChangePending") == "True Rejected"
    (request,) = world.requests("promote-anyway")
    world.annotate(*request)
    world.servers_ready()
    world.servers_ready()
    assert (world.serving("latency"), images(world)) == ("wide", {NEXT})


@pytest.mark.parametrize("promotion", [{}, {"mode": "Manual"}])
def test_a_change_taken_back_in_its_roll_out_leaves_what_served(promotion: dict[str, str]) -> None:
    world = World()
    promoted(world, "latency")
    before = revisions(world)
    world.edit("by whom", lambda spec: spec.update(promotion=promotion))
    world.edit("another release", upgraded)
    rounds(world, by(1.08))
    for request in world.requests("promote") if promotion else ():
        world.annotate(*request)
    assert world.condition("Reconciling") == "True RollingOut"
    world.edit("taken back", lambda spec: spec.update(example("latency")["spec"], promotion=promotion))
    world.servers_ready()
    assert (world.serving("latency"), revisions(world)) == ("wide", before)


def test_a_renamed_candidate_is_compared_under_its_name() -> None:
    world = World()
    promoted(world, "latency")

    def renamed(spec: dict[str, object]) -> None:
        spec["candidates"] = [{"name": "broad", "tree": {"numSteps": 3, "topK": 4, "numDraftTokens": 8}}]

    world.edit("another name", renamed)
    rounds(world, {**LATENCY, "broad": LATENCY["wide"]})
    world.servers_ready()
    world.edit("another release", upgraded)
    assert world.condition("ChangePending") == "True Measuring"


def test_an_image_without_a_digest_that_was_moved_waits_for_a_person() -> None:
    """Both rounds measured it by its tag, and what serves is another."""
    world = World()
    world.image = f"sha256:{'b' * 64}"
    promoted(world, "latency")
    world.servers_run(f"sha256:{'a' * 64}")
    world.edit("another release", upgraded)
    rounds(world, by(1.08))
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True AwaitingPromote")


def test_a_run_of_a_desk_says_that_what_serves_was_not_measured_beside_it() -> None:
    world = World()
    manifest = example("latency")
    manifest["spec"]["engine"]["args"] += ["--schedule-conservativeness", "0.8"]
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    rounds(world, LATENCY)
    world.servers_ready()
    allow(world)
    world.edit("as the desk has measured", lambda spec: spec.update(example("latency")["spec"]))
    apply(world, file())
    assert "what serves was not measured beside its arms" in world.status()["notes"][0]


def test_a_first_round_may_take_longer_than_an_hour() -> None:
    world = World()
    promoted(world, "latency")
    world.edit("another release", upgraded)
    world.rounds_placed()
    for job in world.under_way("round"):
        world.pod_of(job)["status"] |= {"phase": "Running"}
    world.wait(70)
    assert world.condition("ChangePending") == "True Measuring"


@pytest.mark.parametrize("verb", ["rollback", "abort"])
def test_an_accepted_baseline_beside_a_search_is_undone_and_stays_so(verb: str) -> None:
    """The question is a gate's beside what serves, and a search's without it: a hold covers both."""
    world, served = none_found(incumbent=0.9)
    if verb == "rollback":
        world.servers_ready()
        assert world.serving(POOL) == "baseline"
    world.annotate(f"{verb}.paceline.dev/latency", "@monday" if verb == "rollback" else "monday")
    for _ in range(3):
        world.servers_ready()
    assert (world.serving(POOL), SEARCHED in images(world)) == (served, False)
    assert not world.under_way("round")
    assert world.pool(POOL)["holds"]
    assert purpose_of(world.runs(POOL)[-1]["spec"]) == "Gate"
