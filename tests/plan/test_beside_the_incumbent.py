"""A run about a changed spec: its last arm is what the pool serves; that or the new baseline may break."""

from collections.abc import Mapping
from typing import Any

from tests.plan.test_killed import order
from tests.support.answers import died, half_failed, refused
from tests.support.edits import example_run
from tests.support.messages import Says
from tests.support.stories import told
from tests.support.world import World

from paceline.api.round import with_rounds
from paceline.core.manifest import Manifest
from paceline.report.build import build_report

COMMIT = "0123456789" * 4
SPEEDS = {"baseline": {"code": 100.0}, "narrow": {"code": 120.0}, "incumbent": {"code": 119.0}}
NEW_IS_SLOWER = {"baseline": {"code": 70.0}, "narrow": {"code": 80.0}, "incumbent": {"code": 119.0}}
BASELINE_ONLY = {"baseline": {"code": 100.0}, "narrow": {"code": 90.0}, "incumbent": {"code": 100.0}}


def changed(*candidates: str) -> Manifest:
    """Of the example's new baseline, these candidates, and what served before: the older release."""
    manifest: Manifest = example_run()
    spec = manifest["spec"]
    manifest["metadata"] |= {"name": "mine", "namespace": "models"}
    spec["target"]["commit"] = COMMIT
    spec["arms"] = [spec["arms"][0], *(arm for arm in spec["arms"] if arm["name"] in candidates)]
    for arm in spec["arms"][1:]:
        arm["draft"]["commit"] = COMMIT
    spec["arms"].append({"name": "incumbent", "engine": {"image": "lmsysorg/sglang:v0.5.5", "version": "0.5.5"}})
    code = {"name": "code", "source": "builtin://code", "requests": 64, "maxTokens": 512, "weight": 1}
    spec |= {"workloads": [{**code, "concurrency": 1}], "gate": {}}
    return manifest


def measured(world: World, truth: Any, **spoiled: Any) -> list[list[str]]:
    """To the end of the run; the arms of each round."""
    found = []
    while world.under_way("round"):
        found.append(order(world))
        world.round_ends(truth=truth, **{arm: spoil for arm, spoil in spoiled.items() if arm in found[-1]})
    return found


def status(world: World) -> Mapping[str, Any]:
    (run,) = world.cluster.of("BenchmarkRun")
    found: Mapping[str, Any] = run["status"]
    return found


def verdict(world: World) -> tuple[str, str, dict[str, str]]:
    found = status(world)
    said = {one["arm"]: one["reason"].partition(":")[0] for one in found["armVerdicts"]}
    return found["verdict"]["outcome"], found["verdict"]["winner"], said


@told
def test_a_candidate_of_a_changed_spec_is_promoted(world: World) -> None:
    world.apply(changed("narrow"))
    assert measured(world, SPEEDS) == [
        ["baseline", "narrow", "incumbent"], ["narrow", "incumbent", "baseline"], ["incumbent", "baseline", "narrow"],
    ]  # fmt: skip
    assert verdict(world) == (
        "Promote", "narrow", {"baseline": "SlowerThanIncumbent", "narrow": "FasterThanMinimum"},
    )  # fmt: skip
    narrow = status(world)["armVerdicts"][1]
    assert 1.0 < float(narrow["incumbent"]["ratio"]) < 1.02
    assert {one["arm"] for one in status(world)["results"]} == {"narrow"}, "as today: beside the baseline"


def test_a_change_that_is_slower_is_rejected(says: Says) -> None:
    world = World()
    world.apply(changed("narrow"))
    measured(world, NEW_IS_SLOWER)
    assert verdict(world)[:2] == ("Reject", "")
    says(status(world)["verdict"]["message"])
    (run,) = world.cluster.of("BenchmarkRun")
    view = build_report([with_rounds(run, world.cluster.of("BenchmarkRound"))]).runs[0]
    assert [(one.name, one.outcome) for one in view.candidates] == [("baseline", "rejected"), ("narrow", "rejected")]
    says(view.asked, f"{view.decision}: {view.found}")


@told
def test_no_candidate_is_good_and_the_baseline_replaces_what_serves(world: World) -> None:
    world.apply(changed("narrow"))
    assert {*measured(world, BASELINE_ONLY)[-1]} >= {"baseline", "incumbent"}
    assert verdict(world)[:2] == ("Promote", "baseline")


def test_a_run_without_candidates() -> None:
    world = World()
    world.apply(changed())
    assert {frozenset(arms) for arms in measured(world, SPEEDS | {"baseline": {"code": 119.0}})} == {
        frozenset({"baseline", "incumbent"})
    }
    assert verdict(world) == ("Promote", "baseline", {"baseline": "AsFastAsIncumbent"})


@told
def test_what_serves_cannot_start_any_more(world: World) -> None:
    """Two rounds show it; the others are without it, by the rule of a run without an incumbent."""
    world.apply(changed("narrow"))
    rounds = measured(world, NEW_IS_SLOWER, incumbent=refused)
    assert ["incumbent" in arms for arms in rounds] == [True, True, *[False] * (len(rounds) - 2)]
    assert verdict(world) == (
        "Promote",
        "narrow",
        {"baseline": "IncumbentUnreliable", "narrow": "FasterThanMinimum", "incumbent": "Unreliable"},
    )


@told
def test_the_new_baseline_cannot_start(world: World) -> None:
    """A flag that the new release does not know. It alone is rejected, and what remains is compared with what serves,
    whose answers stand in for the baseline's."""
    world.apply(changed("narrow"))
    rounds = measured(world, SPEEDS, baseline=refused)
    assert ["baseline" in arms for arms in rounds] == [True, True, *[False] * (len(rounds) - 2)]
    assert verdict(world) == (
        "Promote", "narrow", {"baseline": "Unreliable", "narrow": "AsFastAsIncumbent"},
    )  # fmt: skip


def test_nothing_of_the_new_spec_starts() -> None:
    world = World()
    world.apply(changed())
    measured(world, SPEEDS, baseline=refused)
    assert verdict(world)[0] == "Reject"


def test_neither_starts() -> None:
    """Nobody's fault, and no verdict: after two rounds."""
    world = World()
    world.apply(changed("narrow"))
    assert len(measured(world, SPEEDS, baseline=died, incumbent=died)) == 2
    assert (status(world)["verdict"]["outcome"], status(world)["verdict"]["reason"]) == ("Error", "ServerCrashed")


def test_an_incumbent_of_which_requests_fail() -> None:
    world = World()
    world.apply(changed("narrow"))
    measured(world, NEW_IS_SLOWER, incumbent=half_failed)
    assert verdict(world)[:2] == ("Promote", "narrow")


@told
def test_the_container_of_what_serves_is_killed(world: World) -> None:
    """Each time the pod ends with it. It comes last then, so that the baseline lives to show whose fault it is."""
    world.truths = {"throughput": NEW_IS_SLOWER}
    world.apply(changed("narrow"))
    seen = []
    for _ in range(2):
        seen.append(order(world))
        world.arm_is_killed("incumbent")
    assert all("incumbent" in arms for arms in seen)
    rest = measured(world, NEW_IS_SLOWER)
    assert all("incumbent" not in arms for arms in rest)
    assert verdict(world)[:2] == ("Promote", "narrow")


def test_the_container_of_what_serves_is_killed_before_the_baseline_has_run() -> None:
    """Such a round counts against neither; the next one begins with the baseline."""
    world = World(truths={"throughput": NEW_IS_SLOWER})
    world.apply(changed("narrow"))
    for _ in range(2):
        world.round_ends()
    assert order(world)[0] == "incumbent"
    world.arm_is_killed("incumbent")
    for _ in range(2):
        assert order(world)[-1] == "incumbent" or "incumbent" not in order(world)
        world.arm_is_killed("incumbent")
    measured(world, NEW_IS_SLOWER)
    assert verdict(world)[2]["incumbent"] == "Unreliable"


@told
def test_the_container_of_the_new_baseline_is_killed(world: World) -> None:
    world.truths = {"throughput": SPEEDS}
    world.apply(changed("narrow"))
    assert order(world)[0] == "baseline"
    for _ in range(3):
        world.arm_is_killed("baseline")
        assert order(world)[-1] == "baseline" or "baseline" not in order(world)
    assert "baseline" not in order(world)
    measured(world, SPEEDS)
    assert verdict(world)[2]["baseline"] == "Unreliable"


def test_the_image_of_what_serves_is_gone() -> None:
    world = World(truths={"throughput": NEW_IS_SLOWER})
    world.apply(changed("narrow"))
    while world.under_way("round") and "incumbent" in order(world):
        world.image_is_missing("incumbent")
    measured(world, NEW_IS_SLOWER)
    assert verdict(world)[2]["incumbent"] == "Unreliable"
