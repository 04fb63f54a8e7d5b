"""User stories of what is known already: how long it counts, how long it is kept, what it may cost.

As test_stories."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.answers import half_failed, noisy
from tests.support.campaigns import LATENCY
from tests.support.down import at_once
from tests.support.runs import made_by
from tests.support.stories import measuring, promoted, told
from tests.support.verdicts import question
from tests.support.world import World, example

from paceline.api.round import Round
from paceline.evidence import fingerprint
from paceline.evidence import question as asks
from paceline.plan.run.budget import exhausted
from paceline.plan.run.evidence import Evidence

MONTH = 30 * 24 * 60
"""Minutes: the default of maxEvidenceAge."""


def asked(world: World, improvement: str) -> None:
    """Another question: the gate wants more."""
    world.edit(f"minImprovement {improvement}", lambda spec: spec["gate"].update(minImprovement=improvement))


def of_image(world: World, image: str) -> None:
    """Another question, and other servers."""
    world.edit(f"image {image}", at_once(image))


def decided_keeping_one(world: World) -> None:
    """The latency pool, with `revisionHistoryLimit` 1, to its first verdict."""
    manifest = example("latency")
    manifest["spec"]["promotion"] = {"revisionHistoryLimit": 1}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    decided(world)


def decided(world: World) -> None:
    for _ in range(3):
        world.round_ends()
    world.servers_ready()


def names(world: World) -> list[str]:
    return [run["metadata"]["name"] for run in world.runs("latency")]


def final(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.runs("latency")[-1]["status"]
    return found


@told
def test_age_alone_starts_no_run(world: World) -> None:
    promoted(world, "latency")
    before = names(world)
    world.wait(2 * MONTH)
    assert (names(world), world.serving("latency")) == (before, "wide")


@pytest.mark.parametrize(("candidate", "arm"), [(150.0, "wide"), (50.0, "baseline")])
def test_age_alone_starts_no_run_where_status_is_lost(candidate: float, arm: str) -> None:
    """Which evidence the pool has gone by is told by its servers: those of the winner, or of the baseline where there
    is none."""
    world = World()
    measuring(world, "latency")
    truth = {name: dict.fromkeys(LATENCY["wide"], speed) for name, speed in (("baseline", 100.0), ("wide", candidate))}
    for _ in range(3):
        world.round_ends(truth=truth)
    world.servers_ready()
    (servers,), before = world.cluster.of("Deployment"), names(world)
    generation = servers["metadata"]["generation"]
    world.wait(2 * MONTH)
    (deployed,) = world.cluster.of("SpeculativeDeployment")
    del deployed["status"]
    world.settle("its status is lost, as after a restore from a backup", 0)
    world.servers_ready()
    assert (names(world), world.serving("latency"), servers["metadata"]["generation"]) == (before, arm, generation)


@told
def test_the_same_question_again_within_a_month(world: World) -> None:
    """Its evidence is named in status, and no GPU is used."""
    promoted(world, "latency")
    (first,) = names(world)
    asked(world, "4%")
    asked(world, "5%")
    assert len(names(world)) == 2
    assert world.pool("latency")["verdict"]["evidence"]["run"] == first


@told
def test_the_same_question_again_after_more_than_a_month(world: World) -> None:
    """It is measured anew, beside what was promoted, and the run says why: rounds that are judged again are as old as
    they are."""
    promoted(world, "latency")
    asked(world, "4%")
    world.wait(MONTH)
    asked(world, "5%")
    (again,) = world.runs("latency")[2:]
    assert made_by(again) == {"attempt": "3", "trigger": "Stale"}
    assert "roundsOf" not in again["spec"]["gate"]
    decided(world)
    assert world.pool("latency")["verdict"]["evidence"]["run"] == again["metadata"]["name"]


@told
def test_as_many_old_runs_are_kept_as_revisions(world: World) -> None:
    """One, here; and the one that what is served goes by."""
    decided_keeping_one(world)
    known = names(world)
    for improvement in ("4%", "3%"):
        asked(world, improvement)
        known = list(dict.fromkeys([*known, *names(world)]))
    assert (len(known), names(world)) == (3, known[1:])


@told
def test_runs_that_were_superseded_push_no_answer_out(world: World) -> None:
    """Three questions are given up before they are answered, one run is kept: the answer, which saves a run of it."""
    decided_keeping_one(world)
    (first,) = names(world)
    image = world.spec()["engine"]["image"]
    for another in ("one", "two", "three"):
        of_image(world, another)
        world.servers_ready()
    world.told.clear()
    of_image(world, image)
    assert world.pool("latency")["verdict"]["evidence"]["run"] == first
    assert not world.under_way("round")


def with_budget(world: World, hours: str) -> None:
    """A round holds four GPUs for 20 minutes: 1.33 GPU-hours."""
    manifest = example("latency")
    manifest["spec"]["benchmark"]["budget"] = {"gpuHours": hours}
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    world.told.clear()


@told
def test_the_budget_is_spent_before_a_look(world: World) -> None:
    """Two rounds fit. Nothing is known then, and that is no Error."""
    with_budget(world, "3")
    for _ in range(2):
        world.round_ends()
    assert not world.under_way("round")
    verdict = final(world)["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("Inconclusive", "BudgetExhausted")
    assert "2.67 are spent, and another round takes 1.33" in verdict["message"]
    assert world.condition("Decided") == "False Inconclusive"


@told
def test_the_budget_is_spent_between_two_looks(world: World) -> None:
    with_budget(world, "5.4")
    for _ in range(4):
        world.round_ends(baseline=noisy, wide=noisy)
    verdict = final(world)["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("Inconclusive", "BudgetExhausted")


@told
def test_a_budget_that_suffices(world: World) -> None:
    with_budget(world, "4")
    for _ in range(3):
        world.round_ends()
    assert final(world)["verdict"]["outcome"] == "Promote"
    assert final(world)["cost"]["gpuSeconds"] == 4 * 3600


@told
def test_what_gave_no_evidence_was_paid_for_too(world: World) -> None:
    with_budget(world, "4")
    world.round_ends(wide=half_failed)
    for _ in range(2):
        world.round_ends()
    assert final(world)["verdict"]["reason"] == "BudgetExhausted"


@pytest.mark.parametrize(("gpus", "seconds", "rounds"), [(1, 360, 3), (1, 420, 6), (4, 1080, 3), (8, 300, 7)])
def test_rounds_that_fit_the_budget_exactly_are_measured(gpus: int, seconds: int, rounds: int) -> None:
    """Six minutes are a tenth of an hour, and no float is a tenth."""
    asked = question("wide", ())
    server = replace(asked.server, accelerator=replace(asked.server.accelerator, count=gpus))
    tight = float(f"{gpus * seconds * rounds / 3600:.6f}")
    records = (Round(held_seconds=seconds),) * (rounds - 1)
    for hours, fits in ((tight, True), (tight - 0.0001, False)):
        spec = replace(asked, server=server, gpu_hours=hours)
        assert (exhausted(Evidence(spec=spec, records=records)) is None) is fits


def test_a_budget_is_part_of_the_question_not_of_what_is_measured_and_none_moves_nothing() -> None:
    plain, bounded = World(), World()
    measuring(plain, "latency")
    with_budget(bounded, "3.6")
    assert "budget" not in plain.runs("latency")[0]["spec"]
    assert bounded.runs("latency")[0]["spec"]["budget"] == {"gpuHours": "3.6"}
    (one,), (other,) = plain.runs("latency"), bounded.runs("latency")
    assert fingerprint(one["spec"]) == fingerprint(other["spec"])
    assert asks(one["spec"]) != asks(other["spec"])
