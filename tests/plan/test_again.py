"""What is measured is one thing, how it is judged another (0033): no round is measured twice for another gate.

As test_stories."""

from typing import Any

import pytest
from tests.support.edits_of_specs import AS_THE_BASELINE, BETTER, THREE, added, in_production, loosened, removed
from tests.support.messages import Says
from tests.support.runs import made_by
from tests.support.stories import measured, measuring, promoted, told
from tests.support.world import World, example

from paceline.evidence import fingerprint, question


def jobs(world: World) -> int:
    return len(world.cluster.of("Job", component="round"))


def latest(world: World, pool: str = "latency") -> dict[str, Any]:
    found: dict[str, Any] = world.runs(pool)[-1]
    return found


@told
def test_a_looser_gate_is_judged_on_the_rounds_there_are(world: World) -> None:
    """No round is measured, no server moves, and the verdict says whose rounds it is of."""
    promoted(world, "latency")
    before = jobs(world)
    world.edit("minImprovement 0.04", loosened)
    run = latest(world)
    assert (len(world.runs("latency")), jobs(world)) == (2, before)
    assert run["status"]["cost"] == {"gpuSeconds": 0, "idleGpuSeconds": 0, "startingGpuSeconds": 0, "serverStarts": 0}
    assert (world.condition("Promoted"), world.condition("Decided")) == ("True AllPromoted", "True AllDecided")
    assert world.memory("latency")["target"]["evidence"]["run"] == run["metadata"]["name"]


@told
def test_a_stricter_gate_measures_only_what_it_needs_beyond(world: World) -> None:
    """1.365x was shown, more than 1.36x is asked: after three rounds that is open. The rounds go on where they were,
    with other prompts, and what was promoted serves on."""
    promoted(world, "latency")
    world.edit("minImprovement 0.36", lambda spec: spec["gate"].update({"minImprovement": "36%"}))
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True StillPromoted")
    while world.under_way("round"):
        world.round_ends()
    rounds = latest(world)["rounds"]
    assert [record["round"] for record in rounds] == list(range(len(rounds)))
    assert [bool(record.get("run")) for record in rounds[:4]] == [True, True, True, False]
    assert world.serving("latency") == "wide"


def test_a_gate_that_rejects_what_was_promoted_takes_it_off_without_a_round(says: Says) -> None:
    world = World()
    promoted(world, "latency")
    before = jobs(world)
    world.edit("minImprovement 0.5", lambda spec: spec["gate"].update({"minImprovement": "50%"}))
    world.servers_ready()
    assert (world.outcome("latency"), world.serving("latency"), jobs(world)) == ("Reject", "baseline", before)
    says(world.memory("latency")["target"]["message"])


def test_a_rejected_candidate_that_is_removed_costs_nothing() -> None:
    """Not even a run: a verdict on two candidates holds for the one that it promoted."""
    world = in_production("throughput")
    before = (len(world.runs("throughput")), jobs(world))
    world.edit("without wide", removed)
    assert (len(world.runs("throughput")), jobs(world)) == before
    assert (world.serving("throughput"), world.condition("Promoted")) == ("narrow", "True AllPromoted")


@pytest.mark.parametrize("looks", [[3, 5, 8], None])
def test_that_holds_also_where_the_looks_are_those_of_so_many_arms(looks: list[int] | None) -> None:
    """By default three arms are looked at after 3, 6 and 9 rounds and two after 4, 6 and 8."""
    world = World()
    manifest = example("throughput")
    manifest["spec"]["gate"] = {"decideAfterRounds": looks} if looks else {}
    manifest["spec"]["engine"]["env"] = AS_THE_BASELINE
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    measured(world)
    world.edit("without wide", removed)
    assert (len(world.runs("throughput")), world.serving("throughput")) == (1, "narrow")


def test_where_the_winner_is_removed_the_others_rounds_are_judged_again() -> None:
    world = World(truths={"latency": BETTER})
    manifest = example("latency")
    added(manifest["spec"])
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    measured(world)
    assert world.serving("latency") == "narrow"
    before = jobs(world)
    world.edit("without narrow", lambda spec: spec["candidates"].pop())
    for _ in range(2):  # by way of the baseline: what is to serve comes before what is to be judged
        world.servers_ready()
    assert (world.serving("latency"), jobs(world)) == ("wide", before)
    arms = {point["arm"] for record in latest(world)["rounds"] for point in record["points"]}
    assert arms == {"baseline", "wide"}


def test_an_added_candidate_is_measured_with_the_baseline_alone() -> None:
    """And joins: its verdict stands beside that of the one that was measured before. Each of the pair begins in turn,
    whoever was first in rounds without it."""
    world = World(truths={"latency": THREE})
    promoted(world, "latency")
    world.edit("narrow is added", added)
    while world.under_way("round"):
        world.round_ends()
    status = latest(world)["status"]
    mine = [record for record in latest(world)["rounds"] if not record.get("run")]
    assert {one["arm"] for record in mine for one in record["replicates"]} == {"baseline", "narrow"}
    first = [record["replicates"][0]["arm"] for record in mine]
    assert abs(first.count("baseline") - first.count("narrow")) <= 1
    assert {one["arm"]: one["outcome"] for one in status["armVerdicts"]} == {"wide": "promotable", "narrow": "rejected"}
    assert (world.serving("latency"), world.condition("Promoted")) == ("wide", "True AllPromoted")


def test_rounds_of_a_run_that_was_under_way_are_kept() -> None:
    """The gate changes after two of three rounds: one more is measured."""
    world = World()
    measuring(world, "latency")
    for _ in range(2):
        world.round_ends()
    world.edit("minImprovement 0.04", loosened)
    world.round_ends()
    world.servers_ready()
    old, new = world.runs("latency")
    assert world.condition("Failed", old) == "True Superseded"
    assert [record.get("run") for record in new["rounds"]] == [old["metadata"]["name"]] * 2 + [None]
    assert world.serving("latency") == "wide"


def test_the_rounds_of_a_run_in_error_are_nobody_elses() -> None:
    world = World()
    measuring(world, "latency")
    world.round_ends()
    for _ in range(3):
        world.round_dies("latency", 1, "the client is broken")
        world.wait(1)
    assert world.outcome("latency") == "Error"
    world.edit("minImprovement 0.04", loosened)
    assert "roundsOf" not in latest(world)["spec"]["gate"]


def test_what_a_person_asks_for_anew_is_measured_anew() -> None:
    """Inconclusive after all its rounds: the same ones would say the same."""
    world = World()
    promoted(world, "latency")
    world.edit("minImprovement 0.365", lambda spec: spec["gate"].update({"minImprovement": "36.5%"}))
    while world.under_way("round"):
        world.round_ends()
    assert world.outcome("latency") == "Inconclusive"
    world.annotate("retry.paceline.dev/latency", "now")
    assert made_by(latest(world)) | {"attempt": ""} == {"attempt": "", "trigger": "Retry", "token": "now"}
    assert "roundsOf" not in latest(world)["spec"]["gate"]
    assert world.under_way("round")
    assert world.serving("latency") == "wide"


def test_a_run_that_is_to_judge_rounds_that_are_gone_measures_its_own() -> None:
    world = World()
    promoted(world, "latency")
    world.away = True
    world.edit("minImprovement 0.04", loosened)
    (run,) = world.runs("latency")
    world.cluster.delete("BenchmarkRun", run["metadata"]["name"])
    world.away = False
    world.settle("the evidence is deleted", 0)
    assert world.under_way("round")
    assert world.serving("latency") == "wide"


def by_hand(world: World, **changes: Any) -> dict[str, Any]:
    (run,) = world.runs("latency")
    spec = {**run["spec"], **changes}
    spec["gate"] = {**spec["gate"], "roundsOf": run["metadata"]["name"]}
    world.apply({**run, "metadata": {"name": "mine", "namespace": "models"}, "spec": spec, "status": {}})
    found: dict[str, Any] = world.cluster.objects["BenchmarkRun", "mine"]
    return found


def test_a_person_may_judge_a_run_again_by_hand() -> None:
    world = World()
    promoted(world, "latency")
    gate = {"minImprovement": "50%", "decideAfterRounds": [3]}
    found = by_hand(world, gate=gate)
    assert found["status"]["verdict"]["outcome"] == "Reject"


@pytest.mark.parametrize(
    "changes", [{"maxConcurrency": 64}, {"arms": [{"name": "baseline"}]}], ids=["another server", "other candidates"]
)
def test_a_run_that_cannot_judge_them_says_so(changes: dict[str, Any], says: Says) -> None:
    world = World()
    promoted(world, "latency")
    if "arms" in changes:
        (run,) = world.runs("latency")
        shape = {"numSteps": 2, "topK": 2, "numDraftTokens": 4}
        changes = {"arms": [run["spec"]["arms"][0], {**run["spec"]["arms"][1], "tree": shape}]}
    message = by_hand(world, **changes)["status"]["conditions"][0]["message"]
    assert f"spec.gate.roundsOf: {world.runs('latency')[0]['metadata']['name']} " in message
    says(message)


def test_of_several_runs_the_one_with_the_most_rounds_is_taken() -> None:
    """Of a stricter gate there are more; its fingerprint is the same."""
    world = World()
    promoted(world, "latency")
    world.edit("0.36", lambda spec: spec["gate"].update({"minImprovement": "36%"}))
    while world.under_way("round"):
        world.round_ends()
    world.edit("0.04", loosened)
    first, second, third = world.runs("latency")
    assert third["spec"]["gate"]["roundsOf"] == second["metadata"]["name"]
    assert len({fingerprint(run["spec"]) for run in (first, second, third)}) == 1
    assert len({question(run["spec"]) for run in (first, second, third)}) == 3
