"""Two pools that search the same trees (0075): each server that the first search starts is measured at both loads, and
the other search goes on from these points."""

import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from tests.support.answers import died
from tests.support.searched import Served, searching
from tests.support.stories import told
from tests.support.world import World

LOADS = {"latency": 1, "throughput": 32}
ALONE = Served("latency", 1)
SERVED = {"latency": ALONE, "throughput": ALONE.at_higher_load(12.0)}


def two_pools(**throughput: Any) -> dict[str, Any]:
    manifest = searching("latency", "throughput")
    manifest["spec"]["pools"][1]["search"].update(throughput)
    return manifest


def applied(manifest: dict[str, Any]) -> World:
    world = World()
    world.apply(manifest)
    world.prefetch_ends()
    return world


def begun(manifest: dict[str, Any] | None = None) -> World:
    world = applied(manifest or two_pools())
    world.servers_ready()
    return world


def answered(world: World, **spoiled: Any) -> None:
    """The rounds under way end, each load with its own speeds."""
    for job in world.under_way("round"):
        pool = job["metadata"]["labels"]["paceline.dev/pool"]
        arms = {arm["name"] for run in world.runs(pool) for arm in run["spec"]["arms"]}
        truth: dict[str, dict[str, float]] = {arm: {} for arm in arms}
        for name, load in LOADS.items():
            for arm, speeds in SERVED[name].speeds(sorted(arms), f"@{load}").items():
                truth[arm].update(speeds)
        world.round_ends(pool, truth=truth, lengths=ALONE.length, **spoiled)


def ended(world: World) -> World:
    while world.under_way("round"):
        answered(world)
        world.servers_ready()
    world.servers_ready()
    return world


@cache
def undisturbed() -> World:
    """Only to be read."""
    return ended(begun())


def search_of(world: World, pool: str) -> Mapping[str, Any]:
    (run,) = [run for run in world.runs(pool) if run["spec"]["purpose"] == "Search"]
    return run


def starts(world: World, pool: str) -> int:
    return int(search_of(world, pool)["status"]["search"]["serverStarts"])


def regret(world: World, pool: str) -> float:
    arms = [arm["name"] for arm in search_of(world, pool)["spec"]["arms"]]
    found = search_of(world, pool)["status"]["verdict"]["winner"]
    return 1 - SERVED[pool].mean(found) / max(map(SERVED[pool].mean, arms))


@told
def test_two_pools_search_with_one_set_of_servers(world: World) -> None:
    """Thirteen candidates, four of them chains."""
    few = {"numSteps": {"min": 1, "max": 4}, "topK": {"min": 1, "max": 4}, "numDraftTokens": {"min": 2, "max": 8}}
    manifest = two_pools()
    for pool in manifest["spec"]["pools"]:
        pool["search"] = few
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    world.told.clear()
    ended(world)


def test_each_finds_its_tree_and_the_second_starts_few_servers() -> None:
    together = undisturbed()
    alone = ended(begun(two_pools(numSteps={"min": 1, "max": 6})))
    assert "sharedWorkloads" not in search_of(alone, "throughput")["spec"]
    assert starts(together, "latency") <= 0.6 * starts(alone, "latency")
    found = {pool: search_of(together, pool)["status"]["verdict"]["winner"] for pool in LOADS}
    assert found["latency"] != found["throughput"]
    assert max(regret(together, pool) for pool in LOADS) < 0.025
    assert {pool: together.serving(pool) for pool in LOADS} == found


def test_the_servers_of_the_largest_load_go_first_and_the_other_pool_says_what_it_waits_for() -> None:
    world = begun()
    assert (len(world.runs("throughput")), world.runs("latency")) == (1, [])
    shared = search_of(world, "throughput")["spec"]["sharedWorkloads"]
    assert {(load["name"], load["concurrency"]) for load in shared} == {
        (name, 1) for name in ("code", "swe", "terminal", "chat")
    }
    first = world.runs("throughput")[0]["metadata"]["name"]
    waits = f"{first}, the search of pool throughput, measures its loads too"
    assert world.pool("latency")["progress"] == {"step": "WaitingForSearch", "message": waits}


def test_its_points_are_those_of_the_other_run_and_cost_it_nothing() -> None:
    world = undisturbed()
    first, run = search_of(world, "throughput"), search_of(world, "latency")
    assert run["spec"]["roundsOf"] == first["metadata"]["name"]
    brought = [record for record in run["status"]["rounds"] if record.get("run")]
    measured = {(point["arm"], point["workload"]) for record in brought for point in record["points"]}
    assert {workload for _, workload in measured} == {f"{name}@1" for name in ("code", "swe", "terminal", "chat")}
    own = [record for record in run["status"]["rounds"] if not record.get("run")]
    assert [record["round"] for record in (*brought, *own)] == list(range(len(brought) + len(own)))
    assert run["status"]["cost"]["serverStarts"] == sum(len(record["replicates"]) for record in own)
    assert f"points and {len(measured)} of {first['metadata']['name']}" in run["status"]["verdict"]["message"]


def test_the_first_search_judges_by_its_own_loads_alone() -> None:
    """Its results, points and question are those that it would have without a second pool."""
    one = applied(searching("throughput"))
    one.servers_ready()
    ended(one)
    both = undisturbed()
    alone, beside = search_of(one, "throughput"), search_of(both, "throughput")
    assert alone["status"]["search"] == beside["status"]["search"]
    assert alone["metadata"]["name"] == beside["metadata"]["name"]


@pytest.mark.parametrize("seed", range(3))
def test_killed_anywhere_both_end_as_they_would_have(seed: int) -> None:
    calm = undisturbed()
    chance, world = random.Random(seed), applied(two_pools())
    world.crash = lambda actions: actions[: chance.randint(0, len(actions))] if chance.random() < 0.5 else actions
    world.servers_ready()
    ended(world)
    world.crash = lambda actions: actions
    world.wait(15)
    ended(world)
    for pool in LOADS:
        assert world.serving(pool) == calm.serving(pool)
        jobs = [[record["job"] for record in run["status"]["rounds"]] for run in world.runs(pool)]
        assert jobs == [[record["job"] for record in run["status"]["rounds"]] for run in calm.runs(pool)]


# What the second pool does where the first does not measure for it.


def test_a_pool_whose_servers_never_come_up_keeps_the_other_no_longer_than_the_progress_deadline() -> None:
    manifest = two_pools()
    manifest["spec"]["promotion"] = {**manifest["spec"].get("promotion", {}), "progressDeadline": "40m"}
    world = applied(manifest)
    world.server_ready("latency", 0)
    assert world.runs("latency") == []
    assert world.pool("latency")["progress"]["step"] == "WaitingForSearch"
    assert "the search of pool throughput is about to begin" in world.message("Measuring")
    world.wait(41)
    assert (len(world.runs("latency")), world.runs("throughput")) == (1, [])
    assert "roundsOf" not in search_of(world, "latency")["spec"]


def test_a_first_search_that_is_held_keeps_nobody_waiting() -> None:
    world = begun()
    answered(world)
    world.annotate("abort.paceline.dev/throughput", "monday")
    assert len(world.runs("latency")) == 1


def test_a_first_search_that_ends_in_error_is_no_evidence_for_the_other() -> None:
    world = begun()
    while not world.runs("latency"):
        answered(world, **{arm["name"]: died for arm in search_of(world, "throughput")["spec"]["arms"]})
    assert search_of(world, "throughput")["status"]["verdict"]["outcome"] == "Error"
    assert "roundsOf" not in search_of(world, "latency")["spec"]


def test_a_first_search_that_is_deleted_is_made_again_with_the_others_loads() -> None:
    world = begun()
    answered(world)
    world.delete("BenchmarkRun", search_of(world, "throughput")["metadata"]["name"])
    assert search_of(world, "throughput")["spec"]["sharedWorkloads"]
    ended(world)
    assert {pool: world.serving(pool) for pool in LOADS} == {
        pool: search_of(world, pool)["status"]["verdict"]["winner"] for pool in LOADS
    }


def test_a_pool_that_is_added_later_makes_nobody_search_again() -> None:
    both = two_pools()
    late = both["spec"]["pools"].pop(0)
    world = begun(both)
    ended(world)
    before = search_of(world, "throughput")["metadata"]["name"]
    world.edit("another pool", lambda spec: spec["pools"].append(late))
    world.servers_ready()
    assert search_of(world, "throughput")["metadata"]["name"] == before
    assert "roundsOf" not in search_of(world, "latency")["spec"]


@pytest.mark.parametrize(
    "more", [{"candidates": True}, {"numSteps": {"min": 1, "max": 6}}], ids=["candidates", "ranges"]
)
def test_pools_of_other_arms_search_each_for_itself(more: dict[str, Any]) -> None:
    manifest = two_pools(**({} if "candidates" in more else more))
    if "candidates" in more:
        manifest["spec"]["pools"][1]["candidates"] = [
            {"name": "deep", "tree": {"numSteps": 9, "topK": 1, "numDraftTokens": 10}}
        ]
    world = begun(manifest)
    assert [len(world.runs(pool)) for pool in LOADS] == [1, 1]


def test_a_repeated_search_measures_for_itself() -> None:
    """Who asks to repeat wants other points."""
    world = begun()
    while not world.runs("latency"):
        answered(world)
    world.annotate("abort.paceline.dev/latency", "monday")
    world.annotate("retry.paceline.dev/latency", "tuesday")
    assert len(world.runs("latency")) == 2
    assert "roundsOf" not in world.runs("latency")[-1]["spec"]
