"""Evidence that was measured without a cluster. As test_stories."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.plan.test_requests import RETRY, in_error
from tests.support import imported
from tests.support.answers import half_failed, noisy
from tests.support.edits_of_specs import loosened
from tests.support.imported import ALLOWED, NAME, SLOWER, allow, allowing, apply, brought, file, moved
from tests.support.messages import Says
from tests.support.planned import deployment_pools
from tests.support.stories import told
from tests.support.world import World, example

from paceline.api.round import Round, rounds_of, with_rounds
from paceline.measure import record

Manifest = dict[str, Any]


def run(world: World, name: str = NAME) -> Manifest:
    return with_rounds(world.cluster.objects["BenchmarkRun", name], world.cluster.of("BenchmarkRound"))


def jobs(world: World) -> int:
    return len(world.cluster.of("Job", component="round"))


def deployed(world: World, **spec: Any) -> None:
    manifest = example("latency")
    manifest["spec"] |= spec
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    world.servers_ready()


@told
def test_a_pool_promotes_on_what_was_measured_without_a_cluster(world: World) -> None:
    """Judged anew, it serves the pool as a run of its own would; nothing is measured, and everything says so."""
    allow(world)
    apply(world, file())
    deployed(world)
    assert (world.serving("latency"), jobs(world), world.runs("latency")) == ("wide", 0, [])
    status = run(world)["status"]
    assert (status["verdict"]["outcome"], status["imported"]) == ("Promote", True)
    assert "node" not in status, "it is another machine's"
    assert status["cost"] == {"gpuSeconds": 0, "idleGpuSeconds": 0, "startingGpuSeconds": 0, "serverStarts": 0}
    pool = world.pool("latency")
    every = (pool["serving"], pool["internal"]["target"], pool["verdict"], pool["history"][0])
    assert all("Imported" in one["evidence"]["caveats"] for one in every)


@told
def test_what_was_measured_elsewhere_counts_only_where_it_is_allowed(world: World) -> None:
    """The run ends, and says who must do what; the pool measures for itself."""
    apply(world, file())
    assert world.condition("Failed", run(world)) == "True ImportNotAllowed"
    assert "evidence.imported=true" in run(world)["status"]["conditions"][0]["message"]
    deployed(world)
    assert (jobs(world), len(world.runs("latency"))) == (1, 1)


@told
def test_what_was_measured_on_other_gpus_is_no_evidence(world: World) -> None:
    allow(world)
    apply(world, file(change=lambda result: replace(imported.real(result), gpu_model="NVIDIA A100-SXM4-80GB")))
    assert world.condition("Failed", run(world)) == "True ImportRefused"
    said = run(world)["status"]["conditions"][0]["message"]
    assert "spec.accelerator.product" in said
    assert "verdict" not in run(world)["status"]
    deployed(world)
    assert jobs(world) == 1


def test_a_claimed_verdict_is_not_believed() -> None:
    """It is slower, whatever the file says of it; an API server drops a status that is applied, this one does not."""
    world, claims = allowing(), file(truth=SLOWER)
    better = file()
    apply(world, {**claims, "status": {"verdict": {"outcome": "Promote", "winner": "wide"}}})
    assert run(world)["status"]["verdict"]["outcome"] == "Reject"
    assert better["rounds"] != claims["rounds"]
    deployed(world)
    assert (world.serving("latency"), jobs(world)) == ("baseline", 0)
    assert world.condition("Promoted") == "False BaselineFaster"


def test_an_invalid_point_is_no_evidence() -> None:
    """Half of a candidate's requests failed."""
    world = allowing()
    apply(world, file(wide=half_failed))
    points = [point for entry in run(world)["rounds"] for point in entry["points"]]
    assert {(point["arm"], point["valid"]) for point in points} == {("baseline", True), ("wide", False)}
    deployed(world)
    assert jobs(world) == 1


def test_a_file_is_waited_for_to_its_last_round(says: Says) -> None:
    """The run stands first in it. What is not there after five minutes was not in it."""
    world, whole = allowing(), file()
    document, *rounds = record.as_documents(whole)
    world.apply(document)
    assert world.condition("Complete", run(world)) == "False WaitingForCapacity"
    says(run(world)["status"]["conditions"][0]["message"])
    for one in rounds[:2]:
        world.cluster.apply(one)
    world.settle("two rounds are applied", 1)
    assert world.condition("Complete", run(world)) == "False WaitingForCapacity"
    world.settle("the third is not", 5)
    assert world.condition("Failed", run(world)) == "True ImportRefused"
    said = run(world)["status"]["conditions"][0]["message"]
    says(said)
    assert jobs(world) == 0


def test_its_rounds_go_with_it() -> None:
    world = allowing()
    apply(world, file())
    world.cluster.delete("BenchmarkRun", NAME)
    assert world.cluster.of("BenchmarkRound") == []


@pytest.mark.parametrize(
    ("rounds", "spoiled"), [(1, {}), (3, {"wide": noisy})], ids=["too few", "undecided at the first look"]
)
def test_rounds_that_decide_nothing_yet_start_no_job(rounds: int, spoiled: Any, says: Says) -> None:
    world = allowing()
    apply(world, file(rounds=rounds, **spoiled))
    assert world.condition("Failed", run(world)) == "True ImportRefused"
    says(run(world)["status"]["conditions"][0]["message"])
    assert jobs(world) == 0


# Which rounds are evidence of a spec, and which are none.


def first(change: Callable[[Round], Round]) -> Callable[[list[Round]], list[Round]]:
    return lambda results: [change(results[0]), *results[1:]]


def each(**changes: Any) -> Callable[[list[Round]], list[Round]]:
    return lambda results: [replace(result, **changes) for result in results]


def without_baseline(result: Round) -> Round:
    return replace(result, replicates=result.replicates[1:])


def renamed(result: Round) -> Round:
    return replace(result, replicates=(result.replicates[0], replace(result.replicates[1], arm="other")))


def twice(result: Round) -> Round:
    return replace(result, replicates=(*result.replicates, result.replicates[1]))


def of_another_load(result: Round) -> Round:
    return replace(result, points=(replace(result.points[0], workload="code@99"), *result.points[1:]))


REFUSED: dict[str, Callable[[list[Round]], list[Round]]] = {
    "none": lambda results: [],
    "one is missing": lambda results: [results[0], results[2]],
    "a try has two results": lambda results: [results[0], replace(results[0], try_=1), *results[1:]],
    "too many": lambda results: [replace(results[0], round=number) for number in range(13)],
    "no baseline": first(without_baseline),
    "an arm of another spec": first(renamed),
    "an arm twice": first(twice),
    "a workload of another spec": first(of_another_load),
    "of the future": first(lambda one: moved(one, timedelta(days=2).total_seconds())),
    "ends before it begins": first(lambda one: replace(one, start_time="2026-11-22T09:00:00Z")),
    "two at once": lambda results: [results[0], replace(results[0], round=1), *results[2:]],
    "of an emulator": each(emulated=True),
    "of another engine": each(engine_version="0.5.23"),
    "of an unknown engine": each(engine_version=""),
    "of unknown GPUs": each(gpu_model=""),
    "of fewer GPUs": each(gpus=("GPU-0",)),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_evidence_is_refused(case: str, says: Says) -> None:
    honest = file()
    world = allowing()
    apply(world, brought(honest["spec"], REFUSED[case](list(rounds_of(honest)))))
    assert world.condition("Failed", run(world)) == "True ImportRefused"
    says(run(world)["status"]["conditions"][0]["message"])
    assert "verdict" not in run(world)["status"]
    assert jobs(world) == 0


def test_an_unchanged_file_is_evidence() -> None:
    """Or none of the refusals above would show anything."""
    world = allowing()
    apply(world, file())
    assert world.condition("Complete", run(world)) == "True Promote"


def test_what_the_machine_did_otherwise_is_said() -> None:
    world, honest = allowing(), file()
    differs = ["the servers had X (--env), but engine.env does not"]
    apply(world, brought(honest["spec"], rounds_of(honest), differs=differs))
    assert run(world)["status"]["conditions"][0]["message"].endswith(differs[0])


def test_prompts_of_the_cluster_cannot_be_compared(says: Says) -> None:
    world, honest = allowing(), file()
    loads = [{**load, "source": "configMap://prompts/code.jsonl"} for load in honest["spec"]["workloads"]]
    apply(world, brought({**honest["spec"], "workloads": loads}, rounds_of(honest)))
    says(run(world)["status"]["conditions"][0]["message"])


def test_speeds_of_an_emulator_are_evidence_of_an_emulator() -> None:
    world, honest = allowing(), file(change=lambda result: replace(result, emulated=True))
    engine = {**honest["spec"]["engine"], "image": "localhost/paceline-sglang-emulator:dev"}
    apply(world, brought({**honest["spec"], "engine": engine}, rounds_of(honest)))
    assert (world.condition("Complete", run(world)), run(world)["status"]["emulated"]) == ("True Promote", True)


# A pool and the runs that are brought to it.


def test_what_was_measured_long_ago_is_as_old_as_that(says: Says) -> None:
    """Not as young as the day on which it was applied."""
    world = allowing()
    world.cluster.now += timedelta(days=40)
    apply(world, file())
    assert world.condition("Complete", run(world)) == "True Promote"
    deployed(world)
    assert jobs(world) == 1
    assert "maxEvidenceAge" in world.status()["notes"][0]
    says(*world.status()["notes"])


def test_of_another_question_it_is_said_what_differs(says: Says) -> None:
    world = allowing()
    apply(world, file())
    engine = example("latency")["spec"]["engine"]
    deployed(world, engine={**engine, "args": [*engine["args"], "--chunked-prefill-size=4096"]})
    assert jobs(world) == 1
    assert "--chunked-prefill-size" in world.status()["notes"][0]
    says(*world.status()["notes"])


def test_under_another_gate_its_rounds_are_judged_again() -> None:
    """As those of a run of the pool's own (0033), and they stay marked."""
    world = allowing()
    apply(world, file())
    manifest = example("latency")
    loosened(manifest["spec"])
    deployed(world, gate=manifest["spec"]["gate"])
    (own,) = world.runs("latency")
    assert (own["spec"]["gate"]["roundsOf"], own["status"]["imported"], jobs(world)) == (NAME, True, 0)
    serving = world.pool("latency")["serving"]
    assert (serving["arm"], serving["evidence"]["caveats"]) == ("wide", ["Imported"])


def test_a_verdict_of_this_cluster_stands() -> None:
    """What is brought along later does not overrule it."""
    world = World(truths={"latency": SLOWER}, settings=ALLOWED)
    world.apply(example("latency"))
    world.prefetch_ends()
    world.servers_ready()
    while world.under_way("round"):
        world.round_ends()
    assert world.outcome("latency") == "Reject"
    world.cluster.now += imported.LATER
    apply(world, file(change=lambda one: imported.real(moved(one, 9000))))
    assert world.condition("Complete", run(world)) == "True Promote"
    assert (world.serving("latency"), world.pool("latency")["verdict"]["outcome"]) == ("baseline", "Reject")


@pytest.mark.parametrize("asked_again", [False, True])
def test_it_takes_the_place_of_an_error(asked_again: bool) -> None:
    """Also where a person has asked for another attempt: they doubted the first, and not what they bring."""
    world = World()
    in_error(world)
    allow(world)
    if asked_again:
        world.annotate(RETRY, "monday")
    apply(world, file())
    world.servers_ready()
    assert (world.serving("latency"), world.pool("latency")["verdict"]["evidence"]["run"]) == ("wide", NAME)


def test_the_one_that_was_measured_last_counts() -> None:
    world = allowing()
    apply(world, file())
    later = file(
        truth=SLOWER,
        change=lambda one: imported.real(moved(one, 9000)),
    )
    later["metadata"]["name"] = "z-measured-later"
    apply(world, later)
    deployed(world)
    assert world.pool("latency")["verdict"]["evidence"]["run"] == "z-measured-later"


def test_whoever_has_applied_it_deletes_it() -> None:
    """The pool does not, however many there are; and what was earned stays when it is gone."""
    world = allowing()
    for number in range(15):
        copy = file()
        copy["metadata"]["name"] = f"{NAME}-{number}"
        apply(world, copy)
    deployed(world)
    assert len(world.cluster.of("BenchmarkRun")) == 15
    assert all("ownerReferences" not in found["metadata"] for found in world.cluster.of("BenchmarkRun"))
    for number in range(15):
        world.cluster.delete("BenchmarkRun", f"{NAME}-{number}")
    world.wait(5)
    assert world.serving("latency") == "wide"


def test_of_a_pool_of_another_name_it_is_nothing() -> None:
    """Although it runs on the same server."""
    world, renamed = allowing(), example("latency")
    apply(world, file())
    renamed["spec"]["pools"][0]["name"] = "other"
    deployed(world, pools=renamed["spec"]["pools"])
    (pool,) = deployment_pools(world)
    assert [one.name for one in pool.runs] == [one["metadata"]["name"] for one in world.runs("other")]
    assert "notes" not in world.status()


def test_where_it_is_forbidden_again_it_is_evidence_no_more() -> None:
    """What was promoted serves on, as after the run was deleted, and the pool measures."""
    world = allowing()
    apply(world, file())
    deployed(world)
    world.settings = replace(ALLOWED, imported_evidence=False)
    world.wait(5)
    assert (world.serving("latency"), world.condition("Promoted"), jobs(world)) == ("wide", "True StillPromoted", 1)


def test_a_suspended_pool_serves_what_it_did() -> None:
    world = allowing()
    deployed(world, suspend=True)
    apply(world, file())
    assert world.condition("Complete", run(world)) == "True Promote"
    world.servers_ready()
    assert (world.serving("latency"), jobs(world)) == ("baseline", 0)
