"""Where speculation stops paying: a Sweep that a person makes, and a pool that is asked to be two."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.support.answers import died
from tests.support.edits import example_run
from tests.support.messages import Says
from tests.support.stories import measuring, told
from tests.support.world import World

from paceline.core.manifest import Manifest
from paceline.evidence import Replicate
from paceline.plan.run.snapshot import RoundJob

COMMIT = "0123456789" * 4
GB10 = {"baseline": {"code@1": 25.0, "code@8": 316.0}, "narrow": {"code@1": 35.0, "code@8": 270.0}}
"""Reported in an article on one GB10, output tokens per second."""
ROUNDS = 3


def sweep(**edit: Any) -> Manifest:
    """Two concurrencies, one dataset, one candidate; no SpeculativeDeployment anywhere."""
    manifest: Manifest = example_run()
    spec = manifest["spec"]
    manifest["metadata"] |= {"name": "mine", "namespace": "models"}
    spec["target"]["commit"] = COMMIT
    spec["arms"] = spec["arms"][:2]
    spec["arms"][1]["draft"]["commit"] = COMMIT
    code = {"name": "code", "source": "builtin://code", "requests": 64, "maxTokens": 512, "weight": 1}
    del spec["maxConcurrency"], spec["gate"]
    spec |= {
        "workloads": [{**code, "concurrency": 1}, {**code, "concurrency": 8}],
        "sweep": {"rounds": ROUNDS},
        **edit,
    }
    return manifest


def swept(world: World, rounds: int = ROUNDS, **spoiled: Any) -> None:
    for _ in range(rounds):
        world.round_ends(truth=GB10, **spoiled)


def status(world: World) -> Mapping[str, Any]:
    (run,) = world.cluster.of("BenchmarkRun")
    found: Mapping[str, Any] = run["status"]
    return found


@told
def test_a_sweep_says_up_to_where_speculation_pays(world: World) -> None:
    """A person asks; nothing is deployed. One user is faster with the head, eight are not."""
    world.apply(sweep())
    swept(world)

    assert not world.cluster.of("SpeculativeDeployment")
    assert [(spot["concurrency"], spot["fastest"]) for spot in status(world)["crossover"]] == [
        (1, "narrow"),
        (8, "baseline"),
    ]
    verdict = status(world)["verdict"]
    assert verdict["reason"] == "BaselineTakesOver"


def test_a_sweep_over_two_images_has_no_table() -> None:
    """0017: two rounds are enough for a table, and the third is of another image."""
    world = World(image="lmsysorg/sglang@sha256:0123")
    world.apply(sweep())
    swept(world, 2)
    world.image = "lmsysorg/sglang@sha256:cdef"
    swept(world, 1)
    verdict = status(world)["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("Error", "ImageMoved")


@told
def test_a_pool_is_asked_to_be_two(world: World) -> None:
    """Its concurrency list reaches from one user to thirty-two, and the candidate is faster for the one alone."""
    measuring(world, "latency")
    world.edit("for one user and for many", lambda spec: spec["pools"][0].update(load=[{"concurrency": [1, 32]}]))
    world.servers_ready()
    for _ in range(3):
        world.round_ends(truth=CROSSING)

    verdict = world.pool("latency")["verdict"]
    crossing = verdict["internal"]["crossing"]
    assert verdict["outcome"] == "Reject"
    assert "terminal@32 0.7" in crossing
    assert crossing in world.message("Promoted")
    assert world.serving("latency") == "baseline"


def test_a_pool_of_one_dataset_here_and_another_there_is_not() -> None:
    """The prompts may be what differs."""
    world = World()
    measuring(world, "latency")
    loads = [{"concurrency": [1], "datasets": ["code"]}, {"concurrency": [32], "datasets": ["chat"]}]
    world.edit("other prompts for many", lambda spec: spec["pools"][0].update(load=loads))
    world.servers_ready()
    for _ in range(3):
        world.round_ends(truth=CROSSING)
    assert "crossing" not in world.pool("latency")["verdict"].get("internal", {})
    assert "crossover" not in world.runs("latency")[-1]["status"]


SETS = ("code", "swe", "terminal", "chat")
CROSSING = {
    "baseline": {f"{name}@{c}": 100.0 * c for name in SETS for c in (1, 32)},
    "wide": {f"{name}@{c}": 100.0 * c * x for name in SETS for c, x in ((1, 1.4), (32, 0.8))},
}


def test_all_rounds_are_measured_though_two_would_have_been_enough(says: Says) -> None:
    world = World()
    world.apply(sweep())
    swept(world, ROUNDS - 1)
    assert "verdict" not in status(world)
    says(status(world)["progress"]["message"])


def test_it_decides_nothing() -> None:
    """No outcome and no winner: nothing that a deployment could take for evidence."""
    world = World()
    world.apply(sweep())
    swept(world)
    assert set(status(world)["verdict"]) == {"rounds", "reason", "message"}
    assert {result["workload"] for result in status(world)["results"]} == {"code@1", "code@8"}
    assert "armVerdicts" not in status(world)


def test_one_server_for_all_concurrencies() -> None:
    """The request limit is pinned from the largest on every arm, so one process answers one user and many."""
    world = World()
    code, _ = sweep()["spec"]["workloads"]
    world.apply(sweep(workloads=[{**code, "requests": 320, "concurrency": c} for c in (1, 64)]))
    (job,) = world.under_way("round")
    asked = RoundJob(job=job, pod=None).plan
    assert [workload.name for workload in asked.workloads] == ["code@1", "code@64"]
    limits = [arm.argv[arm.argv.index("--max-running-requests") + 1] for arm in asked.arms]
    assert limits == ["128", "128"]


def fails_under_load(found: Replicate) -> Replicate:
    points = tuple(replace(p, retractions=3) if p.workload == "code@8" else p for p in found.points)
    return replace(found, points=points)


def test_an_arm_that_fails_under_load_is_known_alone(says: Says) -> None:
    world = World()
    world.apply(sweep())
    swept(world, narrow=fails_under_load)
    assert [spot.get("fastest") for spot in status(world)["crossover"]] == ["narrow", None]
    says(status(world)["verdict"]["message"])


def out_of_memory_under_load(found: Replicate) -> Replicate:
    said = "torch.OutOfMemoryError: CUDA out of memory."
    return replace(found, exit_code=1, error=said, points=tuple(p for p in found.points if p.workload == "code@1"))


@pytest.mark.parametrize("arm", ["baseline", "narrow"])
def test_an_arm_whose_server_ends_under_load_is_known_alone(arm: str, says: Says) -> None:
    world = World()
    world.apply(sweep())
    swept(world, **{arm: out_of_memory_under_load})
    spots = status(world)["crossover"]
    measured = [spot.get("internal", {}).get("rounds") for spot in spots]
    assert [(spot["concurrency"], spot.get("fastest"), of) for spot, of in zip(spots, measured, strict=True)] == [
        (1, "narrow", ROUNDS),
        (8, None, None),
    ]
    says(status(world)["verdict"]["message"])


def test_a_server_is_asked_the_lightest_load_first() -> None:
    world = World()
    world.apply(sweep(workloads=sweep()["spec"]["workloads"][::-1]))
    (job,) = world.under_way("round")
    assert [workload.name for workload in RoundJob(job=job, pod=None).plan.workloads] == ["code@1", "code@8"]


def no_points(found: Replicate) -> Replicate:
    return replace(died(found), points=())


def test_a_server_that_never_answers_is_an_error() -> None:
    world = World()
    world.apply(sweep())
    swept(world, 2, narrow=no_points)
    assert status(world)["verdict"]["outcome"] == "Error"
    assert "illegal memory access" in status(world)["verdict"]["message"]


@pytest.mark.parametrize("arm", ["baseline", "narrow"])
def test_it_costs_no_more_rounds_than_asked(arm: str) -> None:
    world = World()
    world.apply(sweep())
    swept(world, ROUNDS, **{arm: fails_under_load})
    assert not world.under_way("round")
    assert len(world.cluster.of("BenchmarkRound")) == ROUNDS


def test_a_spent_budget_leaves_the_table_of_what_was_measured(says: Says) -> None:
    """A round holds four GPUs for twenty minutes: a third one is not in three GPU-hours."""
    world = World()
    world.apply(sweep(budget={"gpuHours": "3"}))
    swept(world, 2)
    assert [spot["internal"]["rounds"] for spot in status(world)["crossover"]] == [2, 2]
    says(status(world)["verdict"]["message"])


def test_a_budget_that_is_spent_on_nothing_is_no_error() -> None:
    world = World()
    world.apply(sweep(budget={"gpuHours": "1"}))
    swept(world, 1)
    verdict = status(world)["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("Inconclusive", "BudgetExhausted")
