"""A search with `schedule: true`: chains at every load, a table of depths written from the fastest, and a gate about
it beside the tree that was found and the engine's own adaptive mode."""

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.support.searched import searching
from tests.support.world import World

from paceline import api
from paceline.core import Tree, ramp
from paceline.report import read
from paceline.search import Cell, Option, Point, Question, schedule

POOL = "latency"
LOADS = [1, 8, 32]
DATASETS = ("code", "chat")
ACCEPTED = 0.7
OVERHEAD = 0.99
"""What a server at depth 0 keeps of the baseline's speed: its head reads along."""
Depths = Callable[[int], int]


def plain(load: int) -> float:
    """Tokens per second of all requests at the baseline, over those of one alone."""
    return float(load**0.85)


def tokens(steps: int) -> float:
    return float(sum(ACCEPTED**level for level in range(steps + 1)))


def chain(steps: int, load: int) -> float:
    """Over the baseline: a step of the head and its token cost more, the more requests there are."""
    return tokens(steps) / (1 + steps * 0.06 * load**0.75) if steps else OVERHEAD


def best(load: int) -> int:
    return max((0, 1, 2, 3, 5, 7), key=lambda steps: chain(steps, load))


def one_too_deep(load: int) -> int:
    return best(load) + 1


class Speeds(dict[str, Mapping[str, float]]):
    """Arm → workload → tokens per second, for every arm that there may be. `adaptive` is the depth that the engine's
    own table has at a load; `collapse` the loads at which a schedule falls to a third (vllm#49548)."""

    def __init__(self, world: World, adaptive: Depths, collapse: tuple[int, ...] = (), same: bool = False) -> None:
        super().__init__()
        for run in world.runs(POOL):
            for arm in run["spec"]["arms"]:
                self[arm["name"]] = {
                    read.workload(load): 100.0 * self.under(load, arm, adaptive, collapse, same=same)
                    for load in run["spec"]["workloads"]
                } | dict(self.get(arm["name"], {}))

    def under(
        self,
        load: Mapping[str, Any],
        arm: Mapping[str, Any],
        adaptive: Depths,
        collapse: tuple[int, ...],
        *,
        same: bool,
    ) -> float:
        """On a ramp the speed of a request: over all of its requests, of which one at load n waits for n of them."""
        levels = ramp.under_way(load["rampFrom"], load["concurrency"], load["requests"]) if "rampFrom" in load else ()
        speeds = [
            self.ratio(arm, 4 if same else one, one, adaptive, collapse) for one in levels or [load["concurrency"]]
        ]
        waits = [one / plain(one) for one in levels or [load["concurrency"]]]
        return sum(waits) / sum(wait / speed for wait, speed in zip(waits, speeds, strict=True))

    @staticmethod
    def ratio(arm: Mapping[str, Any], load: int, batch: int, adaptive: Depths, collapse: tuple[int, ...]) -> float:
        if arm["name"] == "baseline":
            return 1.0
        if arm["name"] == "adaptive":
            return chain(adaptive(load), load)
        if table := arm.get("schedule"):
            (steps,) = [depth["numSteps"] for depth in table if depth["fromBatchSize"] <= batch][-1:]
            return chain(steps, load) / (3 if batch in collapse else 1)
        tree = arm["tree"]
        return chain(tree["numSteps"], load) * (1.0 if tree["topK"] == 1 else 0.9)


def over_loads() -> dict[str, Any]:
    manifest = searching(POOL, schedule=True)
    manifest["spec"]["pools"][0]["concurrency"] = LOADS
    manifest["spec"]["engine"] |= {"version": "0.5.23", "image": "lmsysorg/sglang:v0.5.23", "env": []}
    manifest["spec"]["engine"].pop("eagle3Targets")
    manifest["spec"]["benchmark"] = {
        "datasets": [{"name": name, "source": f"builtin://{name}", "requests": 160} for name in DATASETS]
    }
    return manifest


def length_of(arm: str, _: str) -> float:
    return tokens(int(arm.split("-")[1])) if arm.startswith("tree") else 2.0


def decided(adaptive: Depths, collapse: tuple[int, ...] = (), same: bool = False, **benchmark: Any) -> World:
    world, manifest = World(), over_loads()
    manifest["spec"]["benchmark"] |= benchmark
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    while world.under_way("round"):
        world.round_ends(truth=Speeds(world, adaptive, collapse, same), lengths=length_of)
    world.servers_ready()
    return world


def gate_of(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.runs(POOL)[-1]
    assert found["spec"]["purpose"] == "Gate"
    return found


def schedule_of(run: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = [arm for arm in run["spec"]["arms"] if arm.get("schedule")]
    return dict(found)


def test_the_fastest_depth_at_each_load_is_written_as_a_table() -> None:
    world = decided(one_too_deep)
    search = world.runs(POOL)[0]["status"]["search"]
    assert [(level["concurrency"], level["numSteps"]) for level in search["levels"]] == [(1, 5), (8, 2), (32, 0)]
    table = [(step["fromBatchSize"], step["numSteps"]) for step in search["schedule"]]
    assert table == [(1, 5), (3, 2), (17, 0)]
    assert (
        "the schedule written from them: 5 from 1 on, 2 from 3 on, 0 from 17 on"
        in world.runs(POOL)[0]["status"]["verdict"]["message"]
    )


def test_the_gate_compares_it_on_both_sides_of_every_threshold() -> None:
    gate = gate_of(decided(one_too_deep))
    names = [arm["name"] for arm in gate["spec"]["arms"]]
    assert names[0] == "baseline"
    assert len(names) == 4
    assert "adaptive" in names
    code = sorted(load["concurrency"] for load in gate["spec"]["workloads"] if load["name"] == "code")
    assert code == [1, 2, 3, 8, 16, 17, 32]
    assert len(names) * len(gate["spec"]["workloads"]) <= 48


def test_where_the_engines_own_table_is_wrong_by_one_step_the_measured_one_is_promoted() -> None:
    world = decided(one_too_deep)
    gate = gate_of(world)
    verdicts = {one["arm"]: one["outcome"] for one in gate["status"]["armVerdicts"]}
    assert gate["status"]["verdict"]["winner"] == schedule_of(gate)["name"] == world.serving(POOL)
    assert verdicts["adaptive"] == "rejected"


def test_where_the_engines_own_table_is_right_both_are_promotable_and_it_is_told_where_one_is_better() -> None:
    gate = gate_of(decided(best))
    assert gate["status"]["verdict"]["winner"] in (schedule_of(gate)["name"], "adaptive")
    verdicts = {one["arm"]: one["outcome"] for one in gate["status"]["armVerdicts"]}
    assert verdicts["adaptive"] == verdicts[schedule_of(gate)["name"]] == "promotable"
    assert "code@17 is 15% faster with adaptive" in gate["status"]["verdict"]["message"]


def test_a_table_that_collapses_at_its_threshold_is_not_promoted() -> None:
    """vllm#49548: 232 tokens per second fall to 24 to 157 where the depth changes."""
    gate = gate_of(decided(one_too_deep, collapse=(17,)))
    (verdict,) = [one for one in gate["status"]["armVerdicts"] if one["arm"] == schedule_of(gate)["name"]]
    assert verdict["outcome"] == "rejected"
    assert "@17" in verdict["reason"]


def test_where_one_depth_is_fastest_at_every_load_no_table_is_written() -> None:
    world = decided(best, same=True)
    assert (
        "no schedule is written, as one depth is fastest at every load"
        in world.runs(POOL)[0]["status"]["verdict"]["message"]
    )
    assert len(gate_of(world)["spec"]["arms"]) == 2


def test_the_written_schedule_serves_on_when_its_search_is_deleted() -> None:
    world = decided(one_too_deep)
    serving = world.serving(POOL)
    world.delete("BenchmarkRun", world.runs(POOL)[0]["metadata"]["name"])
    assert world.serving(POOL) == serving
    assert world.condition("Promoted") == "True StillPromoted"


def test_the_gate_has_a_ramp_through_all_loads_and_back() -> None:
    """As many requests as the dataset is sent at the highest load, for which its file must have prompts anyway."""
    gate = gate_of(decided(one_too_deep))
    (found,) = [load for load in gate["spec"]["workloads"] if "rampFrom" in load]
    assert (found["name"], found["rampFrom"], found["concurrency"]) == ("code-ramp", 1, 32)
    assert (found["requests"], found["weight"]) == (160, 1)
    assert "fewestRequests" not in found
    points = [
        one for entry in gate["status"]["rounds"] for one in entry["points"] if one["workload"] == "code-ramp@1-32"
    ]
    assert all(point["valid"] and point["requestSpeed"] and "steadyThroughput" not in point for point in points)
    assert len(points) >= 4 * 4, "four arms, in four rounds"


def test_without_room_for_it_the_sides_of_the_thresholds_go_first() -> None:
    """Four datasets at two loads are eight points of an arm, and one dataset on both sides of a threshold two: of the
    twelve that a round of four arms can report there are two left."""
    datasets = [{"name": name, "source": f"builtin://{name}"} for name in ("code", "chat", "swe", "terminal")]
    world, manifest = World(), over_loads()
    manifest["spec"]["pools"][0]["concurrency"] = [1, 32]
    manifest["spec"]["benchmark"]["datasets"] = [*datasets, {"name": "more", "source": "builtin://code"}]
    world.apply(manifest)
    world.prefetch_ends()
    world.servers_ready()
    while world.under_way("round"):
        world.round_ends(truth=Speeds(world, best), lengths=length_of)
    loads = gate_of(world)["spec"]["workloads"]
    assert len(loads) == 12
    assert not [load for load in loads if "rampFrom" in load]


def test_what_the_gate_is_asked_is_admitted_though_requests_are_the_default() -> None:
    """Rounds after the first may send fewer: of a load at a threshold no fewer than five times it."""
    datasets = [{"name": name, "source": f"builtin://{name}"} for name in DATASETS]
    gate = gate_of(decided(best, datasets=datasets))
    assert api.problems(gate) == []


def test_a_collapse_at_loads_that_no_closed_loop_has_is_seen_on_the_ramp() -> None:
    """At 17 and 32 it is right, and in between it falls to a third."""
    gate = gate_of(decided(one_too_deep, collapse=tuple(range(18, 32))))
    (verdict,) = [one for one in gate["status"]["armVerdicts"] if one["arm"] == schedule_of(gate)["name"]]
    assert verdict["outcome"] == "rejected"
    assert verdict["reason"].startswith("WorkloadRegressed: code-ramp@1-32 0.53"), verdict
    assert (
        "code-ramp@1-32 is a ramp: requests under way rise from 1 to 32 and fall back, and the speed of a request is"
        in gate["status"]["verdict"]["message"]
    )


def test_a_collapse_that_leaves_it_no_slower_than_the_baseline_on_the_ramp_is_told() -> None:
    """Four loads of 32, where the others gain what these lose."""
    gate = gate_of(decided(one_too_deep, collapse=tuple(range(4, 8))))
    assert gate["status"]["verdict"]["winner"] == schedule_of(gate)["name"]
    assert "code-ramp@1-32 is 15% faster with adaptive" in gate["status"]["verdict"]["message"]


def test_loads_beside_thresholds_must_not_regress_and_hardly_count() -> None:
    gate = gate_of(decided(one_too_deep))
    weights = {load["concurrency"]: load["weight"] for load in gate["spec"]["workloads"] if load["name"] == "code"}
    assert weights == {1: 100, 8: 100, 32: 100, 2: 1, 3: 1, 16: 1, 17: 1}


@pytest.mark.parametrize("hours", ["0.5", "2", "6", "12"])
def test_a_budget_that_runs_out_anywhere_gives_the_best_so_far(hours: str) -> None:
    world = decided(one_too_deep, budget={"gpuHours": hours})
    verdict = world.runs(POOL)[0]["status"]["verdict"]
    assert verdict["reason"] in ("BudgetExhausted", "Found")
    assert verdict["reason"] == "Found" or "the search was not finished" in verdict["message"]


class OnlyAlone(Speeds):
    """A depth of 3 pays for one user, and nothing does for more: no arm is faster in the mean."""

    @staticmethod
    def ratio(arm: Mapping[str, Any], load: int, batch: int, adaptive: Depths, collapse: tuple[int, ...]) -> float:
        if arm["name"] == "baseline":
            return 1.0
        steps = 3
        if table := arm.get("schedule"):
            (steps,) = [depth["numSteps"] for depth in table if depth["fromBatchSize"] <= batch][-1:]
        elif tree := arm.get("tree"):
            steps = tree["numSteps"]
        if steps == 0:
            return 0.995
        return (1.4 if load < 4 else 0.6) - 0.05 * abs(steps - 3)


def test_a_schedule_meets_the_gate_though_no_single_arm_is_faster() -> None:
    """That is where one pays."""
    world = World()
    world.apply(over_loads())
    world.prefetch_ends()
    world.servers_ready()
    while world.under_way("round"):
        world.round_ends(truth=OnlyAlone(world, best), lengths=length_of)
    gate = gate_of(world)
    assert gate["status"]["verdict"]["winner"] == schedule_of(gate)["name"]


@pytest.mark.parametrize("seed", range(4))
def test_noise_writes_no_table(seed: int) -> None:
    """Five depths that are equally fast at each load, and points of a CV of 2 %."""
    chance = random.Random(seed)
    names = [f"tree-{steps}-1-{steps + 1}" for steps in schedule.DEPTHS]
    loads = {f"{name}@{load}": load for load in LOADS for name in DATASETS}
    question = Question(
        options=(
            Option(name="baseline"),
            *(
                Option(name=name, tree=Tree(num_steps=steps, top_k=1, num_draft_tokens=steps + 1))
                for name, steps in zip(names, schedule.DEPTHS, strict=True)
            ),
        ),
        workloads=dict.fromkeys(loads, 1.0),
    )
    points = [
        Point(round=0, cell=Cell(arm=arm, workload=workload), throughput=speed * math.exp(chance.gauss(0, 0.015)))
        for arm, speed in {"baseline": 100.0, **dict.fromkeys(names, 130.0)}.items()
        for workload in loads
    ]
    assert schedule.written(schedule.levels(question, points, loads), lambda size: size) == ()
