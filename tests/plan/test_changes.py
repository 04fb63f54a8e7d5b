"""A changed spec is compared with what serves, and serves once it was shown not to be slower.

As test_stories."""

from typing import Any

import pytest
from tests.support.answers import died, noisy, nothing_accepted
from tests.support.campaigns import BASELINE_1, LATENCY, THROUGHPUT, WIDE_1
from tests.support.guard import dropped, guarded, operator_restarts
from tests.support.messages import Says
from tests.support.stories import promoted, told
from tests.support.world import World, example

from paceline.render.serving import REVISION_LABEL

SERVED, MOVED = (f"docker.io/lmsysorg/sglang@sha256:{digit * 64}" for digit in "ab")
NEXT = "lmsysorg/sglang:v0.5.24"


def upgraded(spec: dict[str, Any]) -> None:
    spec["engine"] |= {"version": "0.5.24", "image": NEXT}


def flagged(spec: dict[str, Any]) -> None:
    spec["engine"]["args"] = [*spec["engine"].get("args", ()), "--schedule-conservativeness", "0.8"]


def with_another_head(spec: dict[str, Any]) -> None:
    spec["draft"] |= {"revision": "v2"}


def on_vllm(spec: dict[str, Any]) -> None:
    spec["engine"] |= {"type": "vLLM", "version": "0.33.0", "image": "vllm/vllm-openai:v0.33.0", "args": []}
    spec["candidates"] = [{"name": "chain", "tree": {"numSteps": 3}}]


def moved(spec: dict[str, Any]) -> None:
    spec["nodeSelector"] = {"zone": "b"}


def by(factor: float, incumbent: dict[str, float] = WIDE_1) -> dict[str, dict[str, float]]:
    """What the changed spec's servers would do, as a multiple of what the present ones did."""
    arms = {name: {workload: factor * speed for workload, speed in speeds.items()} for name, speeds in LATENCY.items()}
    return {**arms, "incumbent": incumbent}


def rounds(world: World, truth: dict[str, dict[str, float]], **spoiled: Any) -> None:
    while world.under_way("round"):
        world.round_ends(truth=truth, **spoiled)


def revisions(world: World) -> set[str]:
    return {pod["metadata"]["labels"][REVISION_LABEL] for pod in world.cluster.of("Pod", component="server")}


@told
def test_an_upgrade_that_halves_the_speed_stays_off(world: World) -> None:
    """Not for a moment does it serve; the condition has the numbers and the way out."""
    promoted(world, "latency")
    before = revisions(world)
    world.edit("another release", upgraded)
    rounds(world, by(0.5))
    assert (world.serving("latency"), revisions(world)) == ("wide", before)
    assert (world.outcome("latency"), world.condition("ChangePending")) == ("Reject", "True Rejected")
    assert world.condition("Promoted") == "True StillPromoted"


@told
def test_an_upgrade_that_is_faster_arrives_by_one_roll_out(world: World) -> None:
    """From what serves to the winner: the new baseline serves at no time. Afterwards nothing is measured."""
    promoted(world, "latency")
    before = revisions(world)
    world.edit("another release", upgraded)
    rounds(world, by(1.08))
    world.servers_ready()
    assert (world.serving("latency"), revisions(world) & before) == ("wide", set())
    assert (world.condition("ChangePending"), world.condition("Promoted")) == ("", "True AllPromoted")
    assert not world.under_way("round")
    assert [change["arm"] for change in world.pool("latency")["history"]] == ["wide", "wide", "baseline"]


@told
def test_acceptance_stuck_at_one_after_an_upgrade_keeps_the_old_image(world: World) -> None:
    """And its speculation: the new baseline is slower than that."""
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(1.0), wide=nothing_accepted)
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Rejected")


@told
def test_a_flag_that_is_slower_stays_off(world: World) -> None:
    promoted(world, "latency")
    world.edit("another flag", flagged)
    rounds(world, by(0.9))
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Rejected")


@told
def test_another_tensor_parallelism_is_compared_on_the_same_accelerators(world: World) -> None:
    promoted(world, "latency")
    world.edit("over two of four", lambda spec: spec["accelerator"].update(tensorParallelSize=2))
    (run,) = (run for run in world.runs("latency") if world.condition("Complete", run) == "False Measuring")
    assert run["spec"]["arms"][-1]["engine"]["tensorParallelSize"] == 4
    rounds(world, by(0.6))
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Rejected")


@told
def test_another_revision_of_the_head_is_compared_with_the_one_that_serves(world: World) -> None:
    promoted(world, "latency")
    world.edit("the head's new revision", with_another_head)
    world.prefetch_ends()
    assert world.serving("latency") == "wide"
    rounds(world, {**LATENCY, "wide": {w: 1.1 * speed for w, speed in WIDE_1.items()}, "incumbent": WIDE_1})
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "")


@told
def test_from_sglang_to_vllm(world: World) -> None:
    promoted(world, "latency")
    world.edit("another engine", on_vllm)
    arms = by(1.2)
    rounds(world, {"baseline": arms["baseline"], "chain": arms["wide"], "incumbent": WIDE_1})
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("chain", "")


@told
def test_the_new_baseline_never_starts(world: World) -> None:
    """It is rejected where what serves lived; the candidate is compared with what serves alone."""
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(0.5), baseline=died)
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Rejected")


@told
def test_what_serves_fails_where_the_changed_spec_lives(world: World) -> None:
    """Then it is no bar: the change serves at once, and is measured by itself."""
    promoted(world, "latency")
    world.edit("another release", upgraded)
    for _ in range(2):
        world.round_ends(truth=by(1.0), incumbent=died)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "")


@told
def test_the_image_of_what_serves_is_gone(world: World) -> None:
    """No server of it starts any more, so the edit mends, and mends at once."""
    promoted(world, "latency")
    world.wait(600)
    world.server_is_refused("latency", "ImagePullBackOff", "manifest unknown")
    world.edit("another release", upgraded)
    world.until_wake()
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "")


@told
def test_a_change_is_taken_back_while_it_is_measured(world: World) -> None:
    """Everything is as it was."""
    promoted(world, "latency")
    before, (first,) = revisions(world), world.runs("latency")
    world.edit("another release", upgraded)
    world.round_ends(truth=by(1.0))
    world.edit("taken back", lambda spec: spec.update(example("latency")["spec"]))
    assert (world.serving("latency"), revisions(world)) == ("wide", before)
    assert (world.condition("Promoted"), world.condition("ChangePending")) == ("True AllPromoted", "")
    assert not world.under_way("round")
    assert world.pool("latency")["benchmarkRun"] == first["metadata"]["name"]


@told
def test_of_two_changes_the_newest_counts(world: World) -> None:
    promoted(world, "latency")
    world.edit("another release", upgraded)
    world.round_ends(truth=by(1.0))
    world.edit("and a flag", flagged)
    _, superseded, running = world.runs("latency")
    assert world.condition("Failed", superseded) == "True Superseded"
    assert world.condition("Complete", running) == "False Measuring"
    assert world.serving("latency") == "wide"


@told
def test_another_target_takes_the_whole_edit_along(world: World) -> None:
    """A new model is not started on the old engine."""
    promoted(world, "latency")

    def edited(spec: dict[str, Any]) -> None:
        upgraded(spec)
        spec["target"]["revision"] = "v2"

    world.edit("another target and another release", edited)
    world.prefetch_ends()
    world.servers_ready()
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "")
    (server,) = world.cluster.of("Pod", component="server")
    assert server["spec"]["containers"][0]["image"] == NEXT


@told
def test_a_later_edit_of_the_place_does_not_let_a_rejected_change_through(world: World) -> None:
    """It moves what serves."""
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(0.5))
    world.edit("another place", moved)
    world.servers_ready()
    (server,) = world.cluster.of("Pod", component="server")
    assert server["spec"]["nodeSelector"]["zone"] == "b"
    assert server["spec"]["containers"][0]["image"] != NEXT
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Measuring")


@told
def test_a_person_lets_one_change_through(world: World) -> None:
    """On one full GPU no round ever finds room: a fix of a CVE does not wait for one."""
    world.cluster.nodes = {"gpu-0": 4}
    manifest = example("latency")
    manifest["spec"]["benchmark"] = {"capacityPolicy": "Borrow", "minServing": 0}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    world.edit("another release", upgraded)
    assert world.condition("ChangePending") == "True Waiting"
    (request,) = world.requests("promote-anyway")
    world.annotate(*request)
    world.servers_ready()
    (server,) = world.cluster.of("Pod", component="server")
    assert (server["spec"]["containers"][0]["image"], world.condition("ChangePending")) == (NEXT, "")


@told
def test_it_is_not_shown_that_a_change_is_not_slower(world: World) -> None:
    """On a crowded machine: what serves goes on."""
    promoted(world, "latency")
    world.edit("another release", upgraded)
    rounds(world, by(1.0), wide=noisy, baseline=noisy, incumbent=noisy)
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Inconclusive")


@told
def test_a_change_that_could_not_be_measured(world: World) -> None:
    promoted(world, "latency")
    world.edit("another release", upgraded)
    while world.under_way("round"):
        world.round_dies("latency", 1, "CUDA error")
        world.wait(11)
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Error")


@told
def test_speculation_stops_paying_while_a_change_is_measured(world: World) -> None:
    """Down to the baseline of what serves, not to that of the changed spec, of which nothing was shown."""
    guarded(world=world)
    world.edit("another release", upgraded)
    world.round_ends(truth=by(1.0))
    dropped(world)
    world.servers_ready()
    (server,) = world.cluster.of("Pod", component="server")
    assert server["spec"]["containers"][0]["image"] != NEXT
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "True Measuring")
    rounds(world, {**by(1.0), "incumbent": BASELINE_1})
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "")


@told
def test_what_an_upgraded_operator_measures_goes_on(world: World) -> None:
    """Another rendering by a newer Paceline is no change of the spec."""
    promoted(world, "latency")
    before = revisions(world)
    world.edit("another release", upgraded)
    world.round_ends(truth=by(1.08))
    operator_restarts(world)
    rounds(world, by(1.08))
    assert len(world.runs("latency")) == 2
    world.servers_ready()
    assert (world.serving("latency"), revisions(world) & before) == ("wide", set())


@told
def test_many_small_losses_wait_for_a_person(world: World) -> None:
    """Each is within the tolerance, and was accepted; together they are not."""
    promoted(world, "latency")
    for release in (1, 2):
        world.edit(f"release {release}", lambda spec, release=release: spec["engine"].update(image=f"sglang:{release}"))
        rounds(world, by(0.98))
        world.servers_ready()
    assert world.memory("latency")["keptSpeed"] == "0.9810"
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True AwaitingPromote")
    (request,) = world.requests("promote")
    world.annotate(*request)
    world.servers_ready()
    assert world.condition("ChangePending") == ""


@told
def test_an_adapter_is_added_after_a_reject(world: World) -> None:
    """It is an argument: the whole edit is compared, and the rejected release does not come along."""
    promoted(world, "latency")
    before = revisions(world)
    world.edit("another release", upgraded)
    rounds(world, by(0.5))
    world.edit(
        "an adapter", lambda spec: spec["engine"]["args"].extend(["--enable-lora", "--lora-paths", "law=/models/law"])
    )
    assert (world.condition("ChangePending"), revisions(world)) == ("True Measuring", before)
    rounds(world, by(0.5))
    assert (world.condition("ChangePending"), revisions(world)) == ("True Rejected", before)


@told
def test_the_tag_of_what_serves_was_moved(world: World) -> None:
    """What a round measured as the incumbent is not what serves: it says nothing, and is measured again, by digest."""
    world.image = SERVED
    promoted(world, "latency")
    world.servers_run(SERVED)
    world.image = MOVED
    world.edit("another release", upgraded)
    for _ in range(3):
        world.round_ends(truth=by(1.08))
    assert world.outcome("latency") == ""
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True Measuring")
    assert "the image changed" in world.message("Decided")
    incumbent = world.runs("latency")[-1]["spec"]["arms"][-1]
    assert incumbent["engine"]["image"] == SERVED
    world.image = SERVED
    rounds(world, by(1.08))
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "")


@told
def test_one_pool_accepts_a_change_and_the_other_rejects_it(world: World) -> None:
    promoted(world, "latency", "throughput")
    world.edit("another release", upgraded)
    slower = {name: {w: 0.5 * speed for w, speed in arm.items()} for name, arm in THROUGHPUT.items()}
    while world.under_way("round"):
        world.round_ends("latency", truth=by(1.08))
        world.round_ends("throughput", truth={**slower, "incumbent": THROUGHPUT["narrow"]})
    world.servers_ready()
    images = {
        pod["metadata"]["labels"]["paceline.dev/pool"]: pod["spec"]["containers"][0]["image"]
        for pod in world.cluster.of("Pod", component="server")
    }
    assert (images["latency"], images["throughput"] != NEXT) == (NEXT, True)
    assert world.condition("ChangePending") == "True Rejected"


@told
def test_an_accepted_change_waits_for_a_person_who_promotes_by_hand(world: World) -> None:
    promoted(world, "latency")
    world.edit("by hand from now on", lambda spec: spec.update(promotion={"mode": "Manual"}))
    world.edit("another release", upgraded)
    rounds(world, by(1.08))
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "True AwaitingPromote")
    (request,) = world.requests("promote")
    world.annotate(*request)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("wide", "")


@told
def test_a_change_without_a_round_for_an_hour_is_told(world: World) -> None:
    world.cluster.nodes = {"gpu-0": 4}
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    world.edit("another release", upgraded)
    world.wait(61)
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "True WithoutRound")


def test_immediate_serves_an_edit_at_once(says: Says) -> None:
    world = World()
    promoted(world, "latency")
    world.edit("at once from now on", lambda spec: spec.update(promotion={"changes": "Immediate"}))
    world.edit("another release", upgraded)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "")
    says(world.memory("latency")["target"]["message"])


@pytest.mark.parametrize("edit", [upgraded, flagged])
def test_a_changed_baseline_arrives_without_a_candidate_that_is_faster(edit: Any) -> None:
    """It was shown not to be slower than the baseline that served."""
    world = World()
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    slower = {"baseline": BASELINE_1, "wide": {w: 0.9 * speed for w, speed in BASELINE_1.items()}}
    rounds(world, slower)
    world.edit(edit.__name__, edit)
    rounds(world, {**slower, "incumbent": BASELINE_1})
    world.servers_ready()
    assert (world.serving("latency"), world.condition("ChangePending")) == ("baseline", "")
    assert world.condition("Promoted") == "False BaselineFaster"
    assert not world.under_way("round")
