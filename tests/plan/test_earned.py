"""What was earned stays (0032): a promoted arm serves on while what is asked now is measured beside it.

As test_stories."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.answers import noisy
from tests.support.campaigns import BASELINE_1, LATENCY
from tests.support.edits_of_specs import (
    BETTER,
    CODE_ALONE,
    NARROW,
    THREE,
    added,
    in_production,
    loosened,
    removed,
)
from tests.support.messages import Says
from tests.support.stories import measured, measuring, promoted, told
from tests.support.world import World

from paceline.render.serving import ARM_LABEL, REVISION_LABEL

Edit = Callable[[dict[str, Any]], object]
SLOWER = {"baseline": BASELINE_1, "wide": {name: 0.9 * speed for name, speed in BASELINE_1.items()}}
EVEN = {"baseline": BASELINE_1, "wide": {name: 1.06 * speed for name, speed in BASELINE_1.items()}}


def tolerant(spec: dict[str, Any]) -> None:
    spec["gate"] |= {"maxRegression": "5%"}


def longer(spec: dict[str, Any]) -> None:
    spec["benchmark"]["datasets"] = [{**CODE_ALONE[0], "maxTokens": 256}]


def reshaped(spec: dict[str, Any]) -> None:
    spec["candidates"][0]["tree"]["numDraftTokens"] = 7


def renamed(spec: dict[str, Any]) -> None:
    spec["candidates"][0]["name"] = "broad"


def busier(spec: dict[str, Any]) -> None:
    """SGLang has room for 48 requests on every arm, whether 1 or 2 of them are measured at a time."""
    spec["pools"][0]["load"] = [{"concurrency": [1, 2]}]


def far_busier(spec: dict[str, Any]) -> None:
    """And for 128 where 64 are."""
    spec["pools"][0]["load"] = [{"concurrency": [1, 64]}]


def served(world: World) -> set[str]:
    """The revisions that are ready somewhere."""
    pods = world.cluster.of("Pod", component="server")
    return {pod["metadata"]["labels"][REVISION_LABEL] for pod in pods if pod["status"]["phase"] == "Running"}


@pytest.mark.parametrize(
    ("pool", "edit", "promotion", "replicas"),
    [
        ("latency", reshaped, "Automatic", 1),
        ("latency", loosened, "Automatic", 1),
        ("latency", longer, "Automatic", 1),
        ("latency", added, "Automatic", 1),
        ("throughput", removed, "Automatic", 1),
        ("latency", reshaped, "Manual", 1),
        ("latency", tolerant, "Automatic", 2),
        ("latency", renamed, "Automatic", 1),
    ],
)
def test_an_edit_takes_nothing_out_of_production(
    pool: str, edit: Edit, promotion: str, replicas: int, says: Says
) -> None:
    """Not for a moment, and nobody is told that nothing was ever shown; what has changed is told by name."""
    world = in_production(pool, promotion, replicas)
    (before,) = served(world)
    pods = {pod["metadata"]["uid"] for pod in world.cluster.of("Pod", component="server")}
    world.truths = {pool: {**THREE, "broad": LATENCY["wide"]} if pool == "latency" else world.truths[pool]}
    world.edit(edit.__name__, edit)
    for _ in range(2):
        if world.under_way("round"):
            world.round_ends()
            assert not world.condition("Ready").startswith("False")
    assert (served(world), world.condition("Ready"), world.condition("Stalled")) == ({before}, "True Serving", "")
    assert {pod["metadata"]["uid"] for pod in world.cluster.of("Pod", component="server")} == pods
    says(*(event for step in world.told for event in step.events))


def test_another_load_of_the_same_arguments_takes_nothing_out_of_production() -> None:
    """A new question, of the servers that there are: neither it nor a shape that is edited after it restarts any."""
    world = World()
    promoted(world, "latency")
    (before,), (first,) = served(world), world.runs("latency")
    pods = {pod["metadata"]["uid"] for pod in world.cluster.of("Pod", component="server")}
    for edit in (busier, reshaped):
        world.edit(edit.__name__, edit)
        assert (served(world), world.memory("latency")["target"]["revision"]) == ({before}, before)
        assert {pod["metadata"]["uid"] for pod in world.cluster.of("Pod", component="server")} == pods
        assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True StillPromoted")
    latest = world.runs("latency")[-1]
    assert (latest["spec"]["maxConcurrency"], first["spec"]["maxConcurrency"]) == (2, 1)
    assert world.under_way("round")


def test_a_load_for_which_the_engine_makes_room_moves_what_serves() -> None:
    """Another server of the same arm, and it speculates all along."""
    world = World()
    promoted(world, "latency")
    before = world.memory("latency")["target"]["revision"]
    world.edit("64 at a time", far_busier)
    target = world.memory("latency")["target"]
    assert (target["arm"], target["revision"] != before) == ("wide", True)


@told
def test_another_candidate_is_measured_beside_what_was_promoted(world: World) -> None:
    """And comes in its place once it is shown to be the faster one."""
    promoted(world, "latency")
    world.truths = {"latency": BETTER}
    world.edit("narrow is added", added)
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True StillPromoted")
    assert world.status()["summary"] == "latency=wide 1.36x"
    measured(world)
    assert (world.serving("latency"), world.condition("Promoted")) == ("narrow", "True AllPromoted")


@told
def test_a_verdict_takes_off_what_it_rejects(world: World) -> None:
    """Other prompts, on which what was promoted is slower: then it goes, and not before."""
    promoted(world, "latency")
    world.edit("another dataset", lambda spec: spec.update(benchmark={"datasets": CODE_ALONE}))
    while world.under_way("round"):
        assert world.serving("latency") == "wide"
        world.round_ends(truth=SLOWER)
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Promoted")) == ("baseline", "False BaselineFaster")


@told
def test_a_verdict_that_says_nothing_takes_nothing_off(world: World) -> None:
    """It ends Inconclusive: what was shown of other prompts is not contradicted."""
    promoted(world, "latency")
    world.edit("another dataset", lambda spec: spec.update(benchmark={"datasets": CODE_ALONE}))
    while world.under_way("round"):
        world.round_ends(truth=EVEN, baseline=noisy, wide=noisy)
    assert world.outcome("latency") == "Inconclusive"
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True StillPromoted")
    assert world.condition("Decided") == "False Inconclusive"


@told
def test_a_shape_that_is_edited_serves_until_the_new_one_is_decided(world: World) -> None:
    """The spec renders it no more: a verdict for or against the new one ends it, one without a verdict does not."""
    promoted(world, "latency")
    world.edit("numDraftTokens 7", reshaped)
    assert world.memory("latency")["target"]["revision"] in served(world)
    while world.under_way("round"):
        world.round_ends(truth=SLOWER)
    world.servers_ready()
    assert world.serving("latency") == "baseline"


def test_of_an_edited_shape_that_crashed_nothing_is_tried_again() -> None:
    """It is held, and what the spec no longer renders has no way back."""
    world = World()
    promoted(world, "latency")
    old = world.memory("latency")["target"]["revision"]
    world.edit("numDraftTokens 7", reshaped)
    (deployed,) = world.cluster.of("SpeculativeDeployment")
    question = {"fingerprint": world.memory("latency")["target"]["fingerprint"]}
    held = {"revision": old, "reason": "NotReady", "startTime": "2026-11-21T12:00:00Z", "internal": question}
    deployed["status"]["pools"][0]["holds"] = [held]
    world.settle("it is held", 0)
    world.servers_ready()
    assert served(world) == {world.memory("latency")["target"]["revision"]} != {old}
    world.wait(60)
    assert world.serving("latency") == "baseline"


@pytest.mark.parametrize(
    "edit",
    [
        lambda spec: spec["accelerator"].update(product="NVIDIA-H100"),
        lambda spec: spec["target"].update(revision="v2"),
        lambda spec: (spec.update(candidates=[NARROW]), spec["pools"][0].pop("candidates", None)),
    ],
    ids=["product", "target", "candidate"],
)
def test_what_cannot_serve_on_gives_way_to_the_baseline(edit: Edit, says: Says) -> None:
    """Of which nothing was shown; and that is what is told."""
    world = World(truths={"latency": THREE})
    promoted(world, "latency")
    world.edit("another server", edit)
    if world.under_way("fetch"):
        world.prefetch_ends()
    world.servers_ready()
    assert world.serving("latency") == "baseline"
    (event,) = (event for shown in world.told for event in shown.events if "RollingBack" in event)
    says(event)


def test_in_manual_mode_only_a_person_takes_it_off() -> None:
    """Rejected, it serves on; status says so, and by which annotation the baseline is served."""
    world = in_production("latency", "Manual")
    world.edit("another dataset", lambda spec: spec.update(benchmark={"datasets": CODE_ALONE}))
    while world.under_way("round"):
        world.round_ends(truth=SLOWER)
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "False AwaitingPromote")
    ((key, value),) = world.requests("promote")
    world.annotate(key, value.replace("TOKEN", "off"))
    world.servers_ready()
    assert (world.serving("latency"), world.condition("Promoted")) == ("baseline", "False BaselineFaster")


def test_what_is_edited_while_suspended_and_put_back_has_lost_no_round() -> None:
    world = World()
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends()
    world.edit("suspend", lambda spec: spec.update(suspend=True))
    world.edit("another gate", loosened)
    world.edit("the old gate", lambda spec: spec["gate"].pop("minImprovement"))
    world.edit("resume", lambda spec: spec.update(suspend=False))
    world.round_ends()
    world.servers_ready()
    (run,) = world.runs("latency")
    assert [record["round"] for record in run["rounds"]] == [0, 1, 2]
    assert world.serving("latency") == "wide"


def test_what_serves_is_named_where_it_serves() -> None:
    """The pods keep the name under which it was measured; status has the one that the spec gives it now."""
    world = World(truths={"latency": {**LATENCY, "broad": LATENCY["wide"]}})
    promoted(world, "latency")
    world.edit("renamed", renamed)
    (pod,) = world.cluster.of("Pod", component="server")
    assert (pod["metadata"]["labels"][ARM_LABEL], world.serving("latency")) == ("wide", "broad")
